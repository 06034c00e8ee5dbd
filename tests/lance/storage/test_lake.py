"""Which locations the lake accepts, and what it makes of them."""

from pathlib import Path

import pytest

from penstock.errors import InvalidRequest
from penstock.lance.storage.lake import Lake


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(str(tmp_path / "lake"), [str(tmp_path / "more"), "memory:///shelf"])


def test_a_relative_location_lies_in_the_lake(lake: Lake) -> None:
    assert lake.accept("a/b.lance") == f"{lake.root}/a/b.lance"


@pytest.mark.parametrize("form", ["{0}", "{0}/", "file://{0}", "{0}/./"])
def test_every_spelling_of_a_location_has_one_form(lake: Lake, form: str) -> None:
    assert lake.accept(form.format(f"{lake.root}/t.lance")) == f"{lake.root}/t.lance"


def test_further_roots_are_allowed(lake: Lake, tmp_path: Path) -> None:
    assert lake.accept(f"{tmp_path}/more/t") == f"{tmp_path}/more/t"
    assert lake.accept("memory:///shelf/t/") == "memory://shelf/t"


@pytest.mark.parametrize(
    "location",
    [
        "/etc",
        "../outside",
        "a/../../outside",
        "s3://bucket/t",
        "ftp://host/t",
        "",
        "a\x00b",
        "a\nb",
        "x" * 2000,
    ],
)
def test_a_location_outside_the_roots_is_refused(lake: Lake, location: str) -> None:
    with pytest.raises(InvalidRequest):
        lake.accept(location)


def test_a_root_itself_is_no_location(lake: Lake) -> None:
    with pytest.raises(InvalidRequest, match="whole root"):
        lake.accept(lake.root)


def test_a_symbolic_link_does_not_lead_out(lake: Lake, tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "link").symlink_to("/etc")
    with pytest.raises(InvalidRequest, match="outside the roots"):
        lake.accept("link/t")


@pytest.mark.parametrize("name", ["a/b", "../../x", "ünïcödé", "a b+c%2F", "." * 40, "n" * 300])
def test_a_new_location_is_one_safe_folder_of_the_root(lake: Lake, name: str) -> None:
    location = lake.new_location(name, "0123456789abcdef")
    folder, _, last = location.rpartition("/")
    assert folder == lake.root
    assert last.isascii()
    assert len(last) < 80


def test_secrets_are_not_among_the_public_options() -> None:
    options = {"aws_region": "eu", "aws_secret_access_key": "s", "aws_session_token": "t"}
    lake = Lake("memory:///x", options=options)
    assert lake.public_options() == {"aws_region": "eu"}
