"""Slots: what only one job at a time may work on, and how each kind of job makes its own."""

import uuid
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Slot:
    """A part of a table or view; as text it is the object's id, a slash, and the part."""

    object_id: str
    part: str

    def __str__(self) -> str:
        return f"{self.object_id}/{self.part}"


def slot_of_column(table_id: str, branch: str, column: str) -> Slot:
    """A backfill fills one column of a branch; those of one function together, by its binding."""
    return Slot(table_id, f"{branch}/{column}")


def slot_of_preview(table_id: str) -> Slot:
    """A preview has a slot of its own: it waits for nobody, and nobody for it."""
    return Slot(table_id, f"preview:{uuid.uuid4()}")


def slot_of_statement() -> Slot:
    """A statement belongs to no object, and waits for nobody."""
    return Slot("", f"statement:{uuid.uuid4()}")


def slot_of_view(view_id: str) -> Slot:
    """A view has one refresh at a time; no branch or column has a name like this."""
    return Slot(view_id, "/refresh")
