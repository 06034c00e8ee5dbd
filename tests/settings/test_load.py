"""Where values come from, and which of two sources wins."""

from collections.abc import Mapping
from contextlib import chdir
from pathlib import Path

import pytest

from penstock.settings.load import LoadedSettings, SettingsError, load
from penstock.settings.sections import clusters_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def load_in(
    folder: Path,
    *,
    file: str = "",
    environ: Mapping[str, str] | None = None,
    flags: Mapping[str, object] | None = None,
) -> LoadedSettings:
    if file:
        (folder / "penstock.toml").write_text(file)
    with chdir(folder):
        return load(None, environ or {}, flags or {})


def test_without_any_source_all_values_are_defaults(folder: Path) -> None:
    loaded = load_in(folder)
    assert loaded.settings.server.port == 2333
    assert loaded.settings.storage.data == "./penstock-data"
    assert set(loaded.sources.values()) == {"default"}


def test_the_file_in_the_working_directory_is_read(folder: Path) -> None:
    loaded = load_in(folder, file="[server]\nport = 1\n[log]\nlevel = 'debug'")
    assert (loaded.settings.server.port, loaded.settings.log.level) == (1, "debug")
    assert loaded.sources["server.port"] == "penstock.toml"
    assert loaded.sources["server.host"] == "default"


def test_environment_beats_file_and_flag_beats_environment(folder: Path) -> None:
    file = "[server]\nhost = 'file'\nport = 1\nmax_page = 10"
    environ = {"PENSTOCK__SERVER__HOST": "environment", "PENSTOCK__SERVER__PORT": "2"}
    loaded = load_in(folder, file=file, environ=environ, flags={"server.port": "3"})
    server = loaded.settings.server
    assert (server.max_page, server.host, server.port) == (10, "environment", 3)
    assert loaded.sources["server.max_page"] == "penstock.toml"
    assert loaded.sources["server.host"] == "PENSTOCK__SERVER__HOST"
    assert loaded.sources["server.port"] == "--port"


def test_a_named_file_replaces_the_one_in_the_working_directory(folder: Path) -> None:
    (folder / "named.toml").write_text("[server]\nport = 7")
    (folder / "penstock.toml").write_text("[server]\nport = 8\nhost = 'unread'")
    with chdir(folder):
        by_argument = load(Path("named.toml"), {"PENSTOCK_CONFIG": "gone.toml"}, {})
        by_environment = load(None, {"PENSTOCK_CONFIG": "named.toml"}, {})
    assert by_argument == by_environment
    assert by_argument.settings.server.port == 7
    assert by_argument.settings.server.host == "127.0.0.1"
    assert by_argument.sources["server.port"] == "named.toml"


@pytest.mark.parametrize("text", ["s3://a, /b", '["s3://a", "/b"]'])
def test_a_list_in_the_environment_is_json_or_a_comma_list(folder: Path, text: str) -> None:
    loaded = load_in(folder, environ={"PENSTOCK__STORAGE__ALLOWED_ROOTS": text})
    assert loaded.settings.storage.allowed_roots == ("s3://a", "/b")


@pytest.mark.parametrize("text", ["region=eu, key=a=b", '{"region": "eu", "key": "a=b"}'])
def test_a_map_in_the_environment_is_json_or_a_comma_list(folder: Path, text: str) -> None:
    loaded = load_in(folder, environ={"PENSTOCK__STORAGE__OPTIONS": text})
    assert loaded.settings.storage.options == {"region": "eu", "key": "a=b"}


def test_a_map_is_replaced_as_a_whole(folder: Path) -> None:
    file = "[storage.options]\nregion = 'eu'\nkey = 'a'"
    loaded = load_in(folder, file=file, environ={"PENSTOCK__STORAGE__OPTIONS": "region=us"})
    assert loaded.settings.storage.options == {"region": "us"}


@pytest.mark.parametrize(("text", "value"), [("false", False), ("true", True), ("0", False)])
def test_a_switch_in_the_environment_is_true_or_false(folder: Path, text: str, value: bool) -> None:
    loaded = load_in(folder, environ={"PENSTOCK__RUNNER__START": text})
    assert loaded.settings.runner.start is value


def test_environment_variables_of_others_are_left_alone(folder: Path) -> None:
    loaded = load_in(folder, environ={"PATH": "/bin", "PENSTOCK_TOKEN": "x", "PENSTOCKS": "y"})
    assert set(loaded.sources.values()) == {"default"}


def test_clusters_are_tables_of_their_own(folder: Path) -> None:
    file = "[clusters.prod]\nmaster = 'spark://host:7077'\nconf = { 'spark.ui.enabled' = 'false' }"
    clusters = clusters_of(load_in(folder, file=file).settings)
    assert clusters["prod"].master == "spark://host:7077"
    assert clusters["prod"].conf == {"spark.ui.enabled": "false"}
    assert clusters["local"].master == "local[*,4]"


def test_the_file_that_was_read_is_told(folder: Path) -> None:
    assert load_in(folder).file == ""
    assert load_in(folder, file="[server]").file == "penstock.toml"


@pytest.mark.parametrize(
    "text", ["", "master = 'local'\nremote = 'sc://x'", "conf = {}", "worker = 'x'"]
)
def test_a_cluster_has_either_a_master_or_a_remote(folder: Path, text: str) -> None:
    with pytest.raises(SettingsError, match="either master or remote"):
        load_in(folder, file=f"[clusters.a]\n{text}")
