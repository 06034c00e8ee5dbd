"""What a person reads when a setting is wrong."""

from pathlib import Path

import pytest

from penstock.errors import PenstockError
from penstock.settings.load import SettingsError, load


def problems_of_file(path: Path, text: str) -> list[str]:
    path.write_text(text)
    with pytest.raises(SettingsError) as caught:
        load(path, {}, {})
    return caught.value.message.replace(str(path), "FILE").splitlines()


def problems_of_environment(tmp_path: Path, **environ: str) -> list[str]:
    empty = tmp_path / "empty.toml"
    empty.touch()
    with pytest.raises(SettingsError) as caught:
        load(empty, environ, {})
    return caught.value.message.splitlines()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[sever]\nport = 1", "unknown section [sever] in FILE; the nearest is server"),
        ("[server]\nprot = 1", "unknown key server.prot in FILE; the nearest is server.port"),
        (
            "[server]\npool_size = 1",
            "unknown key server.pool_size in FILE; the nearest is database.pool_size",
        ),
        ("server = 1", "server in FILE is a section: write [server] and its keys below"),
        (
            "[server]\nport = 65536",
            "bad value server.port = 65536 (from FILE): it must be a whole number from 0 to 65535",
        ),
        (
            "[server]\nport = '80'",
            'bad value server.port = "80" (from FILE): it must be a whole number from 0 to 65535',
        ),
        (
            "[runner]\nstart = 1",
            "bad value runner.start = 1 (from FILE): it must be true or false",
        ),
        (
            "[log]\nlevel = 'loud'",
            'bad value log.level = "loud" (from FILE): it must be debug, info, warning or error',
        ),
        (
            "[catalog]\nmaintain_seconds = 1979-05-27",
            'bad value catalog.maintain_seconds = "1979-05-27" (from FILE): '
            "it must be a whole number of at least 1",
        ),
        (
            "[storage]\nroot = 'ftp://x'",
            'bad value storage.root = "ftp://x" (from FILE): '
            "it must be a path or an s3://, gs://, az://, file:// or memory:// URI",
        ),
    ],
)
def test_a_problem_in_a_file_names_itself_and_what_is_right(
    tmp_path: Path, text: str, problem: str
) -> None:
    assert problems_of_file(tmp_path / "penstock.toml", text) == [problem]


def test_malformed_toml_is_reported_with_its_position(tmp_path: Path) -> None:
    [problem] = problems_of_file(tmp_path / "penstock.toml", "[server]\nport = \n")
    assert problem == "FILE is not valid TOML: Invalid value (at line 2, column 8)"


def test_a_file_that_is_not_text_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "penstock.toml"
    path.write_bytes(b"a\xff")
    with pytest.raises(SettingsError, match=r"is not UTF-8 text \(at byte 1\)"):
        load(path, {}, {})


def test_a_named_file_must_exist(tmp_path: Path) -> None:
    gone = tmp_path / "gone.toml"
    with pytest.raises(SettingsError, match=r"gone\.toml: No such file or directory"):
        load(gone, {}, {})
    with pytest.raises(SettingsError, match=r"gone\.toml: No such file or directory"):
        load(None, {"PENSTOCK_CONFIG": str(gone)}, {})


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("PENSTOCK__SERVER__PRT", "PENSTOCK__SERVER__PORT"),
        ("PENSTOCK__SEVER__PORT", "PENSTOCK__SERVER__PORT"),
        ("PENSTOCK__PORT", "PENSTOCK__SERVER__PORT"),
        ("PENSTOCK_DATABASE_URL", "PENSTOCK__DATABASE__URL"),
        ("PENSTOCK__SERVER_MAX_PAGE", "PENSTOCK__SERVER__MAX_PAGE"),
    ],
)
def test_an_unknown_variable_names_the_nearest_right_one(
    tmp_path: Path, name: str, nearest: str
) -> None:
    assert problems_of_environment(tmp_path, **{name: "1"}) == [
        f"unknown environment variable {name}; the nearest is {nearest}"
    ]


def test_a_bad_flag_names_the_flag(tmp_path: Path) -> None:
    empty = tmp_path / "empty.toml"
    empty.touch()
    with pytest.raises(SettingsError, match=r'server\.port = "many" \(from --port\)'):
        load(empty, {}, {"server.port": "many"})


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    problems = problems_of_environment(
        tmp_path, PENSTOCK__SERVER__PORT="x", PENSTOCK__LOG__LEVEL="y", PENSTOCK__A__B="z"
    )
    assert len(problems) == 3


@pytest.mark.parametrize("options", ["secret", "key=secret,other", '{"key": secret}', '{"a": 1}'])
def test_a_bad_secret_is_not_repeated(tmp_path: Path, options: str) -> None:
    [problem] = problems_of_environment(tmp_path, PENSTOCK__STORAGE__OPTIONS=options)
    assert problem.startswith('bad value storage.options = "***" (from PENSTOCK__STORAGE__OPTIONS)')


def test_a_settings_error_is_one_of_ours() -> None:
    assert issubclass(SettingsError, PenstockError)
