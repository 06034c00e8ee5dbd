"""What this package loads late: Lance, pyarrow, numpy, and modules that cannot do without them.

A server that only answers for names never pays for them. Modules that a server loads at its start
take them from here; all others import them as usual.
"""

from typing import TYPE_CHECKING

from penstock.late import LateModule

if TYPE_CHECKING:
    import lance
    import lance_namespace
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
    from lance import indices, namespace, optimize
    from lance_namespace import errors as namespace_errors

    from penstock.lance.columns import sql_types
    from penstock.lance.commit import evolution
    from penstock.lance.diff import row_diff
    from penstock.lance.read import formats, ordering, outside_blobs, version_history, whole_values
    from penstock.lance.session import bridge
    from penstock.lance.write import layout
else:
    indices = LateModule("lance.indices")
    lance = LateModule("lance")
    lance_namespace = LateModule("lance_namespace")
    namespace = LateModule("lance.namespace")
    optimize = LateModule("lance.optimize")
    namespace_errors = LateModule("lance_namespace.errors")
    np = LateModule("numpy")
    pa = LateModule("pyarrow")
    pc = LateModule("pyarrow.compute")
    bridge = LateModule("penstock.lance.session.bridge")
    evolution = LateModule("penstock.lance.commit.evolution")
    formats = LateModule("penstock.lance.read.formats")
    layout = LateModule("penstock.lance.write.layout")
    ordering = LateModule("penstock.lance.read.ordering")
    outside_blobs = LateModule("penstock.lance.read.outside_blobs")
    row_diff = LateModule("penstock.lance.diff.row_diff")
    sql_types = LateModule("penstock.lance.columns.sql_types")
    version_history = LateModule("penstock.lance.read.version_history")
    whole_values = LateModule("penstock.lance.read.whole_values")

__all__ = [
    "bridge",
    "evolution",
    "formats",
    "indices",
    "lance",
    "lance_namespace",
    "layout",
    "namespace",
    "namespace_errors",
    "np",
    "optimize",
    "ordering",
    "outside_blobs",
    "pa",
    "pc",
    "row_diff",
    "sql_types",
    "version_history",
    "whole_values",
]
