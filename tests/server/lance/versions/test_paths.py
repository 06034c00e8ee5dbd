"""CreateTableVersion never reads or moves a file that is not the table's own."""

from pathlib import Path

import pytest

from tests.harness.data.manifests import make_manifest
from tests.harness.data.tables import Table, code, declare


@pytest.fixture
def outsider(tmp_path: Path) -> Path:
    """A perfectly good manifest that is none of the table's business."""
    path = tmp_path / f"{2**64 - 2}.manifest-0"
    path.write_bytes(make_manifest(1))
    return path


def assert_refused(table: Table, path: str, victim: Path) -> None:
    content = victim.read_bytes()
    assert code(table.create(1, path)) == (400, 13)
    assert victim.read_bytes() == content
    assert table.listed() == []
    assert not table.file(1).exists()


def test_an_absolute_path_elsewhere_is_refused(table: Table, outsider: Path) -> None:
    assert_refused(table, str(outsider), outsider)


def test_a_bare_path_elsewhere_is_refused(table: Table, outsider: Path) -> None:
    assert_refused(table, str(outsider).lstrip("/"), outsider)


def test_a_path_that_climbs_out_is_refused(table: Table, outsider: Path) -> None:
    table.stage(1)
    climb = "/".join(["_versions"] + [".."] * (len(table.location.parts)))
    assert_refused(table, f"{climb}{outsider}", outsider)
    assert_refused(table, f"{table.location}/{climb}{outsider}", outsider)


def test_a_percent_encoded_climb_is_no_climb(table: Table, outsider: Path) -> None:
    table.stage(1)
    climb = "/".join(["_versions"] + ["%2e%2e"] * (len(table.location.parts)))
    assert_refused(table, f"{climb}{outsider}", outsider)


def test_a_symbolic_link_to_elsewhere_is_refused(table: Table, outsider: Path) -> None:
    link = Path("/" + table.stage(1))
    link.unlink()
    link.symlink_to(outsider)
    assert_refused(table, str(link), outsider)
    assert link.is_symlink()


def test_a_linked_folder_is_refused(table: Table, outsider: Path) -> None:
    table.location.mkdir(parents=True)
    (table.location / "_versions").symlink_to(outsider.parent)
    assert_refused(table, f"_versions/{outsider.name}", outsider)


def test_a_sibling_whose_name_begins_alike_is_refused(table: Table) -> None:
    sibling = Path(f"{table.location}-2/_versions/x.manifest-1")
    sibling.parent.mkdir(parents=True)
    sibling.write_bytes(make_manifest(1))
    assert_refused(table, str(sibling), sibling)


def test_another_tables_staged_file_is_refused(table: Table) -> None:
    other = declare(table.server, f"{table.parts[0]}$other")
    staged = Path("/" + other.stage(1))
    assert_refused(table, str(staged), staged)


def test_a_committed_manifest_of_another_version_is_not_moved(table: Table) -> None:
    table.commit(1)
    before = table.file(1).read_bytes()
    assert code(table.create(2, str(table.file(1)))) == (400, 13)
    assert table.file(1).read_bytes() == before
    assert table.listed() == [1]


def test_a_folder_is_no_manifest(table: Table) -> None:
    table.stage(1)
    assert code(table.create(1, "_versions")) == (400, 13)


def test_a_file_of_another_scheme_is_refused(table: Table) -> None:
    for path in ("s3://bucket/x", "http://127.0.0.1/x", "memory:///x"):
        assert code(table.create(1, path)) == (400, 13)
