"""Versions that are held back: readable for who made them, and seen by nobody else."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance.fragment import write_fragments

from penstock.errors import PenstockError
from penstock.lance.commit.replacement import commit_operation
from penstock.lance.session.remote import Location, RemoteCatalog, open_newest, open_version
from penstock.lance.session.unpublished import UnpublishedCatalog
from tests.harness.data.tables import new_name
from tests.harness.processes.s3 import BUCKET, running_store

TABLE = ("n", "t")


class OneTable(RemoteCatalog):
    """A catalog of one table, by its path."""

    def __init__(self, location: Location) -> None:
        self.location = location

    def locate(self, table: Sequence[str], branch: str) -> Location:
        return self.location

    def open_latest(self, table: Sequence[str], branch: str) -> lance.LanceDataset:
        return open_newest(self.location)


@pytest.fixture(params=["folder", "s3"])
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OneTable]:
    """A table with three rows, in a folder and on S3."""
    with contextlib.ExitStack() as stack:
        location = Location(str(tmp_path / "t.lance"), "")
        if request.param == "s3":
            store = stack.enter_context(running_store())
            location = Location(f"s3://{BUCKET}/{new_name()}/t.lance", "", store.options)
        lance.write_dataset(
            pa.table({"a": [1, 2, 3]}),
            location.uri,
            storage_options=dict(location.options) or None,
            enable_stable_row_ids=True,
        )
        yield OneTable(location)


def append(catalog: OneTable, dataset: lance.LanceDataset, value: int) -> int:
    options = dict(catalog.location.options) or None
    made = write_fragments(pa.table({"a": [value]}), catalog.location.uri, storage_options=options)
    return commit_operation(dataset, lance.LanceOperation.Append(made), {"who": "me"})


def values(dataset: lance.LanceDataset) -> list[int]:
    return sorted(dataset.to_table()["a"].to_pylist())


def test_a_held_version_is_read_by_who_made_it_alone(catalog: OneTable) -> None:
    held = UnpublishedCatalog(catalog, "job")
    newest = catalog.open_latest(TABLE, "")
    assert held.hold(TABLE, newest, lambda dataset: append(catalog, dataset, 9)) == 2
    assert open_newest(catalog.location).version == 1
    mine = held.open_latest(TABLE, "")
    assert (mine.version, values(mine)) == (2, [1, 2, 3, 9])
    transaction = mine.read_transaction(2)
    assert transaction is not None
    assert transaction.transaction_properties == {"who": "me"}
    # A worker has nothing but the location; it may want older versions, too.
    where = held.locate(TABLE, "")
    assert values(open_version(where, 2, "worker")) == [1, 2, 3, 9]
    assert values(open_version(where, 1, "worker")) == [1, 2, 3]
    assert values(mine.checkout_version(1)) == [1, 2, 3]
    (request,) = held.requests
    assert (request["id"], request["version"]) == (["n", "t"], 2)
    with pytest.raises(PenstockError):
        append(catalog, mine, 10)


def test_a_pinned_table_stays_as_it_is(catalog: OneTable) -> None:
    held = UnpublishedCatalog(catalog, "job")
    held.pin(TABLE, 1)
    append(catalog, catalog.open_latest(TABLE, ""), 9)
    assert values(held.open_latest(TABLE, "")) == [1, 2, 3]
    assert values(catalog.open_latest(TABLE, "")) == [1, 2, 3, 9]
