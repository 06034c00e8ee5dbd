"""A small lake that has something for every page: pictures, vectors, columns, views, versions."""

import math
import struct
import zlib

import pyarrow as pa
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import SortField, SortOrder
from pyiceberg.transforms import BucketTransform, IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType

import penstock

PHOTOS = 40
VECTOR = 64
WHAT = ("Harbour", "Lighthouse", "Market", "Bridge", "Orchard")
WHEN = ("at dawn", "at noon", "in rain", "by night")


@penstock.udf
def ratio(amount: float) -> float:
    if amount < 1:
        raise ValueError(f"amount {amount} is too small")
    return 100 / amount


def draw(number: int, side: int = 48) -> bytes:
    """A PNG of its own for each number."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    rows = b"".join(
        b"\0"
        + b"".join(
            bytes(((40 * number + x) % 256, (90 + 2 * y) % 256, (53 * number + y) % 256))
            for x in range(side)
        )
        for y in range(side)
    )
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    packed = chunk(b"IDAT", zlib.compress(rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + packed + chunk(b"IEND", b"")


def make_photos() -> pa.Table:
    size = pa.struct([("w", pa.int32()), ("h", pa.int32())])
    meta = pa.struct([("camera", pa.string()), ("tags", pa.list_(pa.string())), ("size", size)])
    fields = [
        ("id", pa.int64()),
        ("title", pa.string()),
        ("photo", pa.binary()),
        ("caption", pa.string()),
        ("vector", pa.list_(pa.float32(), VECTOR)),
        ("meta", meta),
    ]
    rows = [
        {
            "id": number,
            "title": f"{WHAT[number % 5]} {WHEN[number % 4]}",
            "photo": draw(number),
            "caption": "Seen from the pier, with the light behind it. " * (1 + 5 * number),
            "vector": [math.sin(number + each / 7) for each in range(VECTOR)],
            "meta": {"camera": "X100", "tags": ["sea", "sky"], "size": {"w": 640, "h": 480}},
        }
        for number in range(1, PHOTOS + 1)
    ]
    return pa.Table.from_pylist(rows, schema=pa.schema(fields))


def make_orders(count: int = 500) -> list[dict[str, object]]:
    people, fruits = ("Ada", "Grace", "Linus", "Barbara"), ("apple", "pear", "melon")
    return [
        {
            "id": each,
            "customer": people[each * 7 % 4],
            "product": fruits[each * 5 % 3],
            "amount": float(each * 37 % 90),
        }
        for each in range(count)
    ]


def fill_lake(lake: penstock.Lake) -> None:
    """Tables with versions, a tag, a branch, an index and columns; and views of views."""
    for namespace in ("shop", "shop.raw", "media", "media.frames"):
        lake.create_namespace(namespace)
    lake.create_table("media.photos", make_photos())
    orders = lake.create_table("shop.orders", make_orders())
    orders.append([{"id": 900, "customer": "Ada", "product": "plum", "amount": 1.5}])
    orders.delete("id % 97 = 0")
    orders.update({"amount": 3.0}, where="id = 5")
    orders.create_tag("launch", version=1)
    orders.create_branch("trial")
    orders.create_index("id", "BTREE")
    orders.create_index("product", "FTS")
    prices = [("apple", 0.5), ("pear", 0.75), ("melon", 3.0)]
    lake.create_table("shop.prices", [{"name": name, "price": price} for name, price in prices])
    orders.add_column("doubled", computed="amount * 2")
    orders.add_column("ratio", ratio)
    lake.create_view(
        "shop.large",
        "SELECT id, customer, amount FROM shop.orders WHERE amount > 50",
        target_lag_seconds=60,
    )
    lake.create_view("shop.largest", "SELECT customer, amount FROM shop.large WHERE amount > 80")


def fill_iceberg(lake: penstock.Lake, url: str) -> None:
    """An Iceberg table with snapshots, a tag and a branch, and a view that reads it."""
    lake.create_namespace("ice")
    schema = Schema(
        NestedField(1, "id", LongType(), required=True),
        NestedField(2, "kind", StringType(), required=False, doc="What happened."),
        identifier_field_ids=[1],
    )
    table = RestCatalog("lake", uri=f"{url}/iceberg").create_table(
        "ice.events",
        schema,
        sort_order=SortOrder(SortField(2, IdentityTransform())),
        properties={"owner": "the tests"},
    )
    rows = [{"id": each, "kind": "click" if each % 2 else "view"} for each in range(6)]
    table.append(pa.Table.from_pylist(rows, schema=schema.as_arrow()))
    first = table.current_snapshot()
    assert first is not None
    table.manage_snapshots().create_tag(first.snapshot_id, "launch").commit()
    table.manage_snapshots().create_branch(first.snapshot_id, "trial").commit()
    table.delete("id = 3")
    # Of what is written later, which takes nothing to be written now.
    table.update_spec().add_field("id", BucketTransform(4), "id_bucket").commit()
    lake.create_view("ice.clicks", "SELECT id FROM ice.events WHERE kind = 'click'")
