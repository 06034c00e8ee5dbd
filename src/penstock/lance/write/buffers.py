"""Memory for bytes that Arrow will decode."""


def allocate(size: int) -> memoryview:
    """Memory of Arrow's own: unlike Python's it is not cleared first, and is used again."""
    import pyarrow as pa

    # An empty one has no bytes that could be looked at.
    return memoryview(pa.allocate_buffer(size)).cast("B") if size else memoryview(b"")
