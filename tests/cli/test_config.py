"""`penstock config`, and what the command line does with errors and with missing parts."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from penstock.cli.main import COMMANDS, load_command, penstock
from penstock.cli.operate.config import command
from tests.harness.processes import nursery


def run(*arguments: str, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if "PENSTOCK" not in name}
    return nursery.run(arguments, {**inherited, **environ}, cwd)


def test_each_value_is_printed_with_its_source_in_columns(tmp_path: Path) -> None:
    (tmp_path / "penstock.toml").write_text("[server]\nmax_page = 5")
    shown = run("config", "--port", "99", cwd=tmp_path, PENSTOCK__LOG__LEVEL="debug")
    lines = {line.split()[0]: line for line in shown.stdout.splitlines()}
    assert shown.returncode == 0
    assert lines["server.port"].split() == ["server.port", "99", "--port"]
    assert lines["server.max_page"].split() == ["server.max_page", "5", "penstock.toml"]
    assert lines["log.level"].split() == ["log.level", '"debug"', "PENSTOCK__LOG__LEVEL"]
    assert lines["log.level"].index("PENSTOCK") == lines["server.port"].index("--port")


def test_a_settings_problem_is_one_line_on_stderr_and_exit_code_2(tmp_path: Path) -> None:
    shown = run("config", "--port", "many", cwd=tmp_path)
    assert (shown.returncode, shown.stdout) == (2, "")
    assert shown.stderr == (
        'penstock: bad value server.port = "many" (from --port): '
        "it must be a whole number from 0 to 65535\n"
    )


def test_config_and_help_import_nothing_of_the_server(tmp_path: Path) -> None:
    code = (
        "import sys; from penstock.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "parts = ('server', 'catalog', 'database', 'lance', 'jobs')\n"
        "heavy = {'uvicorn', 'apsw', 'asyncpg', 'lance', 'obstore', 'pyarrow', 'httpx'}\n"
        "heavy |= {f'penstock.{part}' for part in parts}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    for arguments in (["config"], ["--help"]):
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.splitlines()[-1] == "[]"


def test_json_has_value_and_source_of_each_key_without_secrets(tmp_path: Path) -> None:
    url = "postgresql://me:hush@host/db"
    shown = run(
        *("config", "--json", "--no-runner", "--database", url),
        cwd=tmp_path,
        PENSTOCK__STORAGE__OPTIONS="key=hush",
    )
    entries = json.loads(shown.stdout)
    assert "hush" not in shown.stdout
    assert entries["runner.start"] == {"value": False, "source": "--no-runner"}
    assert entries["database.url"]["value"] == "postgresql://me:***@host/db"
    assert entries["storage.options"]["value"] == {"key": "***"}


def test_config_names_a_settings_file(tmp_path: Path) -> None:
    named = tmp_path / "named.toml"
    named.write_text("[server]\nport = 7")
    shown = CliRunner().invoke(command, ["--config", str(named), "--json"])
    assert json.loads(shown.output)["server.port"] == {"value": 7, "source": str(named)}


def test_help_lists_every_command() -> None:
    shown = CliRunner().invoke(penstock, ["--help"])
    assert all(f"  {name} " in shown.output for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_listed_command_exists(name: str) -> None:
    assert load_command(name).help


def test_an_unknown_command_is_exit_code_2() -> None:
    assert CliRunner().invoke(penstock, ["sevre"]).exit_code == 2


def test_every_command_has_an_example_in_its_help() -> None:
    def leaves(root: click.Command) -> Iterator[click.Command]:
        below = getattr(root, "commands", None)
        if below is None:
            yield root
        for each in (below or {}).values():
            yield from leaves(each)

    for name in COMMANDS:
        for leaf in leaves(load_command(name)):
            assert "Examples:\n" in (leaf.help or ""), f"{name} {leaf.name}"
