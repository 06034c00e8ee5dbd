"""Rows of any source get into a table whole or not at all, within bounded memory."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import penstock
from penstock.errors import OutcomeUnknown, SchemaMismatch, Unavailable
from penstock.sdk.rows import sending
from tests.harness.processes.flaky_proxy import flaky
from tests.harness.processes.servers import Server

# More than is kept to be sent again, in pieces that arrive one by one.
PIECE = pa.record_batch({"id": pa.array(range(100_000)), "text": ["x" * 100] * 100_000})
PIECES = sending.KEPT_BYTES // PIECE.nbytes + 3


def pieces(error: Exception | None = None) -> Iterator[Any]:
    yield from (PIECE for _ in range(PIECES))
    if error is not None:
        raise error


def test_a_creation_that_fails_midway_leaves_no_table(
    lake: penstock.Lake, server: Server, space: str, tmp_path: Path
) -> None:
    lines = "".join(f"{n},{'x' * 100}\n" for n in range(200_000))
    (tmp_path / "a.csv").write_text(f"id,text\n{lines}one,b\n")
    sources: dict[str, Any] = {
        "generator": pieces(KeyError("mine")),
        "file": tmp_path / "a.csv",
        "dicts": ({"id": n if n < 50_000 else "x"} for n in range(60_000)),
    }
    folders = set((server.data / "lake").iterdir())
    for name, source in sources.items():
        with pytest.raises((KeyError, SchemaMismatch)):
            lake.create_table(f"{space}.{name}", source)
        assert f"{space}.{name}" not in lake
    assert set((server.data / "lake").iterdir()) == folders


def test_an_append_that_fails_midway_changes_nothing(
    lake: penstock.Lake, server: Server, space: str
) -> None:
    table = lake.create_table(f"{space}.t", PIECE.slice(0, 1))
    changes: list[Callable[[Any], object]] = [table.append, table.overwrite]
    changes.append(lambda rows: table.merge(rows, on="id"))
    for change in changes:
        with pytest.raises(KeyError, match="mine"):
            change(pieces(KeyError("mine")))
    assert (table.version(), len(table)) == (1, 1)
    (folder,) = (server.data / "lake").glob(f"{space}.t-*")
    assert len(list((folder / "data").iterdir())) == 1


def test_rows_that_can_be_read_once_are_sent_again_while_they_are_few(
    server: Server, space: str
) -> None:
    with flaky(server.url) as way, penstock.connect(way.url) as lake:
        way.fates = ["503", "lose"]
        made = lake.create_table(f"{space}.t", ({"id": n} for n in range(10)))
        assert (len(made), made.version()) == (10, 1)


def test_rows_that_cannot_be_sent_again_tell_what_became_of_them(
    server: Server, space: str
) -> None:
    with flaky(server.url) as way, penstock.connect(way.url) as lake:
        way.fates = ["lose"]
        with pytest.raises(OutcomeUnknown, match="all rows were sent") as unknown:
            lake.create_table(f"{space}.t", pieces())
        assert "look whether they came in" in unknown.value.detail
        assert len(lake.table(f"{space}.t")) == PIECES * PIECE.num_rows
        way.fates = ["503"]
        with pytest.raises(Unavailable) as refused:
            lake.create_table(f"{space}.u", pieces())
        assert "nothing was written" in refused.value.detail
        assert f"{space}.u" not in lake


def test_a_table_is_made_of_a_schema_alone(lake: penstock.Lake, space: str) -> None:
    made = lake.create_table(f"{space}.t", schema={"id": int, "v": penstock.vector(2)})
    assert (len(made), made.schema().names) == (0, ["id", "v"])
    assert len(lake.table(f"{space}.t").at(made.append({"id": [1], "v": [[1, 2]]}).version)) == 1


def test_files_take_on_the_types_of_the_table(
    lake: penstock.Lake, space: str, tmp_path: Path
) -> None:
    made = lake.create_table(f"{space}.t", schema={"id": "int32", "v": penstock.vector(2)})
    (tmp_path / "a.csv").write_text('v,id\n"[1, 2]",1\n')
    (tmp_path / "b.jsonl").write_text('{"id": 2, "v": [3, 4]}\n')
    made.append(tmp_path)
    assert made.to_list() == [{"id": 1, "v": [1.0, 2.0]}, {"id": 2, "v": [3.0, 4.0]}]
