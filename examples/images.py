"""Image-like blobs, and a class that fills several columns of them at once.

    python examples/images.py http://127.0.0.1:2333

The pictures are bytes in the PGM format, made here. One of them is damaged: it is skipped, stands
in the ledger with the function's own traceback, and is tried again when it has been mended.
"""

import sys

import pyarrow as pa

import penstock

SIDE = 16


def picture(shade: int) -> bytes:
    """A square of one shade of grey."""
    return f"P5 {SIDE} {SIDE} 255\n".encode() + bytes([shade]) * (SIDE * SIDE)


@penstock.udf(
    kind="batch",
    inputs=["picture"],
    outputs={"width": "int32", "brightness": "float32"},
    on_error="skip",
)
class Measure:
    """Takes a batch of rows and gives one with the same number of rows."""

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        widths, shades = [], []
        for content in batch["picture"].to_pylist():
            head, _, pixels = content.partition(b"\n")
            form, width, height, _ = head.split()
            if form != b"P5" or len(pixels) != int(width) * int(height):
                raise ValueError(f"no picture of {len(content)} bytes")
            widths.append(int(width))
            shades.append(sum(pixels) / len(pixels))
        return pa.record_batch(
            {"width": pa.array(widths, pa.int32()), "brightness": pa.array(shades, pa.float32())}
        )


def main(url: str | None) -> None:
    lake = penstock.connect(url)
    lake.create_namespace("images")
    table = lake.create_table(
        "images.pictures",
        pa.table({"id": [1, 2, 3], "picture": [picture(10), b"damaged", picture(200)]}),
    )
    table.add_columns(Measure)
    job = table.backfill("width")
    print(f"{job.rows_failed} of {table.count()} pictures could not be measured")
    (error,) = job.errors()
    print(f"row {error.row_id}: {error.error_type}: {error.message}")
    table.merge(pa.table({"id": [2], "picture": [picture(90)]}), on="id")
    assert table.backfill("width").function_calls == 1
    found = {row["id"]: row["brightness"] for row in table.select("id", "brightness").to_list()}
    print(found)
    assert found == {1: 10.0, 2: 90.0, 3: 200.0}
    dark = lake.create_view(
        "images.dark", table.select("id", "brightness").where("brightness < 50")
    )
    dark.refresh()
    assert [row["id"] for row in dark.to_list()] == [1]


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
