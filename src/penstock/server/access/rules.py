"""Rules: the right that a route needs on the object in its path or body.

Every route has a rule in its definition; one without can't be written.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from penstock.catalog.access.permissions import AccessCache
from penstock.model.identifiers import ROOT, Identifier
from penstock.model.rights import NAMESPACE, ROLE_OF, SEE, Need

C = TypeVar("C")

# What the right is needed on: the object in the path, its namespace, or the catalog.
NAMED, PARENT, CATALOG = "named", "parent", "catalog"


@dataclass(frozen=True, slots=True)
class PathNames:
    """The object that a call's path names, and its namespace."""

    named: Identifier
    parent: Identifier


@dataclass(frozen=True, slots=True)
class Rule(Generic[C]):
    """A right, and on what; `more` finds further needs of a call, and may refuse it."""

    right: int
    on: str
    kind: str = NAMESPACE
    more: Callable[[C, AccessCache], Awaitable[Sequence[Need]]] | None = None
    # Allowed without credentials.
    is_open: bool = False
    # What the right is on, in words, where `on` does not say.
    where: str = ""
    # What `more` asks for, in words.
    also: str = ""
    # What the audit log records of a call, when that is more than its object.
    tell: Callable[[C], str] | None = None

    def __str__(self) -> str:
        if self.is_open:
            return "nothing"
        if self.right == SEE:
            first = "sees it" if self.on != CATALOG else "a key or token"
        else:
            where = {NAMED: f"the {self.kind}", PARENT: "the namespace", CATALOG: "the catalog"}
            first = f"{ROLE_OF[self.right]} on {self.where or where[self.on]}"
        return f"{first}; {self.also}" if self.also else first

    def need(self, names: PathNames) -> Need:
        """The right on the object in the path."""
        if self.on == NAMED and (names.named or self.kind == NAMESPACE):
            return Need(self.right, self.kind, names.named)
        if self.on == PARENT:
            return Need(self.right, NAMESPACE, names.parent)
        # A path without an object is refused by whoever reads it.
        return Need(self.right if self.on == CATALOG else SEE, NAMESPACE, ROOT)
