"""What the modules of this folder load when they first need it: pyarrow and numpy."""

from typing import TYPE_CHECKING

from penstock.sdk.connection.optional_libraries import OptionalModule

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv as csv
    import pyarrow.fs as fs
    import pyarrow.json as js
    import pyarrow.parquet as pq
else:
    np = OptionalModule("numpy", "arrays of numbers")
    pa = OptionalModule("pyarrow", "reading and writing rows")
    pc = OptionalModule("pyarrow.compute", "reading and writing rows")
    csv = OptionalModule("pyarrow.csv", "CSV files")
    fs = OptionalModule("pyarrow.fs", "reading files")
    js = OptionalModule("pyarrow.json", "files of JSON lines")
    pq = OptionalModule("pyarrow.parquet", "Parquet files")

__all__ = ["csv", "fs", "js", "np", "pa", "pc", "pq"]
