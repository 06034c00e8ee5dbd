"""Memory for bytes that Arrow will decode."""

from penstock.lance.doors import pa


def allocate(size: int) -> memoryview:
    """Allocate Arrow memory: unlike Python's it is not zeroed first, and is reused."""
    # An empty one has no bytes to take a view of.
    return memoryview(pa.allocate_buffer(size)).cast("B") if size else memoryview(b"")
