"""What views and tables share speaks of views in its errors; here it speaks of tables."""

from collections.abc import Iterator
from contextlib import contextmanager

from penstock.errors import InvalidTable, InvalidView
from penstock.iceberg import checks


@contextmanager
def of_tables(detail: str = "") -> Iterator[None]:
    try:
        yield
    except InvalidView as error:
        raise InvalidTable(error.message, detail=detail or error.detail) from None


def check_location(value: object, path: str) -> str:
    """A location as it is stored: without a trailing slash."""
    with of_tables():
        return checks.check_location(value, path)
