"""Arrow bodies that are damaged, that lie about their sizes, or that bring what they must not."""

import io
import random
import struct
from collections.abc import Iterator
from functools import cache

import pyarrow as pa

from tests.attack.attack import HANDLED, REFUSED, Attack, send_arrow
from tests.attack.place import MINE, OWNER, PIT, Place

FAMILY = "arrow"
# The same damage in every run.
SEED = 15
TABLE = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int64()),
        "name": ["a", None, "ccc"],
        "words": [["x"], [], ["y", "z"]],
        "kind": pa.array(["k", "k", "l"]).dictionary_encode(),
    }
)
# Metadata that means something to us, which only we write.
RESERVED = (
    *("penstock.function", "penstock.computed", "penstock.binding", "virtual_column"),
    *("virtual_column.udf", "virtual_column.udf_name", "virtual_column.input_columns"),
    *("penstock.column", "penstock.anything", "PENSTOCK.function"),
)


def make(place: Place) -> Iterator[Attack]:
    plain = stream(TABLE)
    insert, create = f"/v1/table/{PIT}$t/insert", f"/v1/table/{PIT}$arrow/create?mode=overwrite"
    merge = f"/v1/table/{PIT}$t/merge_insert?on=id&when_not_matched_insert_all=true"
    for name, content in (*_cut(plain), *_flipped(plain), *_lengths(plain), *_other()):
        for path in (create, insert):
            yield Attack(FAMILY, f"{name} to {path}", OWNER, send_arrow(path, content))
    for name, content in _other():
        yield Attack(FAMILY, f"{name} to {merge}", OWNER, send_arrow(merge, content))
    for name, content in _bombs():
        for path in (create, insert, merge):
            request = send_arrow(path, content)
            yield Attack(FAMILY, f"{name} to {path}", OWNER, request, frozenset({400, 413}))
    for name, content in _reserved():
        for path in (create, f"{insert}?mode=overwrite"):
            request = send_arrow(path, content)
            yield Attack(FAMILY, f"{name} to {path}", OWNER, request, REFUSED)
        # Rows that were read from a table have its metadata; an append takes none of it.
        yield Attack(FAMILY, f"{name} to {insert}", OWNER, send_arrow(insert, content), HANDLED)
    for kind in (
        "",
        "text/plain",
        "application/json",
        "application/vnd.apache.arrow.file",
        "x" * 5_000,
    ):
        request = send_arrow(create, plain, content_type=kind)
        yield Attack(FAMILY, f"sent as {kind[:30]!r}", OWNER, request, HANDLED)
    yield from _repeated()
    # Nobody sends rows to a view that the runner writes, nor to another's table.
    for path in (
        f"/v1/table/{MINE}$m/insert",
        "/v1/table/veil$t/insert",
        "/v1/table/them$t/insert",
    ):
        yield Attack(FAMILY, f"rows to {path}", OWNER, send_arrow(path, plain), REFUSED)


def stream(table: pa.Table, compression: str | None = None) -> bytes:
    sink = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _cut(content: bytes) -> Iterator[tuple[str, bytes]]:
    for end in range(0, len(content), max(1, len(content) // 60)):
        yield f"cut at {end}", content[:end]
    for start in (1, 4, 8, 100):
        yield f"without its first {start}", content[start:]
    yield "twice", content * 2
    yield "with more after it", content + b"x" * 1_000
    yield "in two halves, reversed", content[len(content) // 2 :] + content[: len(content) // 2]


def _flipped(content: bytes) -> Iterator[tuple[str, bytes]]:
    chance = random.Random(SEED)
    for number in range(150):
        damaged = bytearray(content)
        for _ in range(chance.choice((1, 1, 2, 8))):
            place = chance.randrange(len(damaged))
            damaged[place] ^= 1 << chance.randrange(8)
        yield f"flipped {number}", bytes(damaged)


def _lengths(content: bytes) -> Iterator[tuple[str, bytes]]:
    """Every number of eight bytes that looks like a size, made another."""
    places = [at for at in range(0, len(content) - 8, 8) if 0 < _number(content, at) < 1_000]
    for at in places[:40]:
        for value in (2**31, 2**62, -1):
            damaged = bytearray(content)
            damaged[at : at + 8] = struct.pack("<q", value)
            yield f"the number at {at} is {value}", bytes(damaged)
    for value in (0, 1, 2**31 - 1, -1, 2**24):
        yield f"a head of {value}", b"\xff\xff\xff\xff" + struct.pack("<i", value) + content[8:]


def _number(content: bytes, at: int) -> int:
    return int(struct.unpack("<q", content[at : at + 8])[0])


@cache
def _bombs() -> tuple[tuple[str, bytes], ...]:
    """A little that becomes a great deal; made once, because that takes a while."""
    ids = pa.array(range(9_000, 10_000), pa.int64())
    zeros = pa.table({"id": ids, "name": ["\x00" * 300_000] * 1_000})
    found = [("zstd of zeros", stream(zeros, "zstd")), ("lz4 of zeros", stream(zeros, "lz4"))]
    wide = pa.table({"id": pa.nulls(40_000_000, pa.int64())})
    found.append(("zstd of nulls", stream(wide, "zstd")))
    # What a buffer says of its own size, which is believed before it is read.
    for name, size in {"7 GB": 7 * 2**30, "2^62": 2**62, "less than nothing": -5}.items():
        small = bytearray(stream(pa.table({"id": [0] * 1_000}), "zstd"))
        at = small.find(struct.pack("<q", 8_000))
        if at >= 0:
            small[at : at + 8] = struct.pack("<q", size)
            found.append((f"a buffer that says {name}", bytes(small)))
    return tuple(found)


def _repeated() -> Iterator[Attack]:
    """One key in many rows on both sides of a merge: a join makes every pair of them."""
    rows = stream(pa.table({"id": pa.array([0] * 150, pa.int64()), "name": ["x" * 64_000] * 150}))
    create = send_arrow(f"/v1/table/{PIT}$twin/create?mode=overwrite", rows)
    for how in ("when_matched_update_all", "when_not_matched_insert_all"):
        merge = send_arrow(f"/v1/table/{PIT}$twin/merge_insert?on=id&{how}=true", rows)
        yield Attack(FAMILY, f"one key many times, {how}", OWNER, merge, before=(create,))


def _reserved() -> Iterator[tuple[str, bytes]]:
    for key in RESERVED:
        for value in ("{}", "x", ""):
            field = pa.field("name", pa.string(), metadata={key: value})
            schema = pa.schema([pa.field("id", pa.int64()), field])
            rows = pa.table({"id": [1], "name": ["x"]}, schema=schema)
            yield f"field metadata {key}={value!r}", stream(rows)
        nested = pa.struct([pa.field("inner", pa.string(), metadata={key: "x"})])
        rows = pa.table({"id": [1], "name": pa.array([{"inner": "x"}], nested)})
        yield f"nested metadata {key}", stream(rows)


def _other() -> Iterator[tuple[str, bytes]]:
    """Schemas and bodies that are well formed and strange."""
    yield "nothing", b""
    yield "text", b"id,name\n1,a\n"
    yield "an Arrow file", b"ARROW1\x00\x00" + stream(TABLE)
    yield "a Parquet file", b"PAR1" + b"\x00" * 100 + b"PAR1"
    yield "no columns", stream(pa.table({}))
    yield "no rows", stream(TABLE.slice(0, 0))
    yield "another type", stream(pa.table({"id": ["x"], "name": [1]}))
    yield "one column twice", stream(pa.table([[1], [2]], names=["id", "id"]))
    yield "an unnamed column", stream(pa.table([[1]], names=[""]))
    yield "a column named NUL", stream(pa.table([[1]], names=["a\x00b"]))
    yield "dots in a name", stream(pa.table([[1]], names=["a.b"]))
    yield (
        "system columns",
        stream(pa.table({"_rowid": [1], "_rowaddr": [1], "__source_row_id": [1]})),
    )
    yield "many columns", stream(pa.table({f"c{n}": [1] for n in range(5_000)}))
    yield "a long name", stream(pa.table({"n" * 100_000: [1]}))
    deep: pa.DataType = pa.int64()
    for _ in range(60):
        deep = pa.list_(deep)
    yield "a deep list", stream(pa.table({"id": pa.nulls(1, deep)}))
    for kind in (
        *(
            pa.null(),
            pa.bool_(),
            pa.uint64(),
            pa.float16(),
            pa.decimal256(76, 10),
            pa.duration("ns"),
        ),
        *(pa.time64("ns"), pa.binary(0), pa.list_(pa.int8(), 0), pa.map_(pa.string(), pa.int64())),
        *(pa.large_list(pa.large_binary()), pa.month_day_nano_interval(), pa.binary_view()),
        *(pa.run_end_encoded(pa.int16(), pa.int64()), pa.dense_union([pa.field("a", pa.int64())])),
        *(pa.struct([]), pa.dictionary(pa.int8(), pa.string()), pa.string_view()),
    ):
        try:
            yield f"a column of {kind}", stream(pa.table({"id": pa.nulls(2, kind)}))
        except (pa.ArrowException, TypeError, ValueError):
            continue
    for name in ("lance.blob.v2", "arrow.json", "arrow.uuid", "penstock.x", "geoarrow.point", ""):
        metadata = {"ARROW:extension:name": name, "ARROW:extension:metadata": "\x00{"}
        schema = pa.schema([pa.field("id", pa.int64(), metadata=metadata)])
        yield f"the extension {name!r}", stream(pa.table({"id": [1]}, schema=schema))
    for key in (
        "lance-encoding:blob",
        "lance-encoding:compression",
        "lance-schema:unenforced-primary-key",
    ):
        schema = pa.schema([pa.field("id", pa.int64(), metadata={key: "\x00"})])
        yield f"metadata {key}", stream(pa.table({"id": [1]}, schema=schema))
