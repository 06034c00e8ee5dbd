"""The log of earlier metadata files."""

import pytest

from penstock.iceberg.metadata import Json
from penstock.iceberg.tables.log import with_log
from tests.iceberg.tables.tables import LOCATION, NOW, committed, created, update

MAX = "write.metadata.previous-versions-max"
DELETE = "write.metadata.delete-after-commit.enabled"
PATH = "write.metadata.path"


def place(number: int) -> str:
    return f"{LOCATION}/metadata/{number:05d}-x.metadata.json"


def logged(document: Json) -> list[str]:
    return [each["metadata-file"] for each in document["metadata-log"]]


def after(commits: int, **properties: str) -> tuple[Json, list[str]]:
    """The table after some commits, and all files that may be deleted."""
    table, deleted = created(properties={MAX: "3", **properties}), []
    for number in range(commits):
        change = update("set-properties", updates={"n": str(number)})
        table, gone = with_log(committed(table, change, now_ms=NOW + number), table, place(number))
        deleted += gone
    return table, deleted


def test_a_new_table_has_no_earlier_files() -> None:
    table = created()
    assert with_log(table, None, None) == (table, [])


def test_the_log_names_earlier_files_with_the_time_of_their_writing() -> None:
    table, _ = after(2)
    assert table["metadata-log"] == [
        {"timestamp-ms": NOW, "metadata-file": place(0)},
        {"timestamp-ms": NOW, "metadata-file": place(1)},
    ]


def test_the_log_is_as_long_as_the_property_says() -> None:
    table, deleted = after(5)
    assert (logged(table), deleted) == ([place(2), place(3), place(4)], [])


def test_files_that_fall_out_are_deleted_only_if_the_property_says_so() -> None:
    table, deleted = after(5, **{DELETE: "true"})
    assert logged(table) == [place(2), place(3), place(4)]
    assert deleted == [place(0), place(1)]


def test_a_shorter_log_lets_several_fall_out_at_once() -> None:
    table, _ = after(5, **{MAX: "100"})
    short = update("set-properties", updates={MAX: "1", DELETE: "True"})
    table, deleted = with_log(committed(table, short), table, place(5))
    assert logged(table) == [place(5)]
    assert deleted == [place(n) for n in range(5)]


@pytest.mark.parametrize("number", ["0", "-7"])
def test_one_earlier_file_is_always_known(number: str) -> None:
    table, _ = after(3, **{MAX: number})
    assert logged(table) == [place(2)]


@pytest.mark.parametrize(
    "elsewhere",
    [
        "s3://lake/ns/other/metadata/00000-x.metadata.json",
        "s3://lake/ns/table2/00000-x.metadata.json",
        "/etc/passwd",
        f"{LOCATION}/data/00000-x.parquet",
        f"{LOCATION}/../other/00000-x.metadata.json",
    ],
)
def test_a_log_that_somebody_else_wrote_deletes_nothing_outside_the_table(elsewhere: str) -> None:
    table = created(properties={MAX: "1", DELETE: "true"})
    table["metadata-log"] = [{"timestamp-ms": NOW, "metadata-file": elsewhere}]
    assert with_log(table, table, place(1))[1] == []


def test_files_where_the_property_puts_them_are_the_tables_own() -> None:
    folder = "s3://lake/files"
    table = created(properties={MAX: "1", DELETE: "true", PATH: f"{folder}/"})
    old = f"{folder}/00000-x.gz.metadata.json"
    table["metadata-log"] = [{"timestamp-ms": NOW, "metadata-file": old}]
    assert with_log(table, table, place(1))[1] == [old]
