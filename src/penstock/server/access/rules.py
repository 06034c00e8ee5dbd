"""What a route needs: a right on the thing in its path, or whatever its body names.

Every route has a rule in its own definition; one without can't be written.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from penstock.catalog.access.permissions import Access
from penstock.model.identifiers import ROOT, Identifier
from penstock.model.rights import NAMESPACE, ROLE_OF, SEE, Need

C = TypeVar("C")

# What in a path a right is needed on: what it names, what that is in, or nothing but the catalog.
NAMED, PARENT, CATALOG = "named", "parent", "catalog"


@dataclass(frozen=True, slots=True)
class Names:
    """What a call's path names, and the namespace that it is in."""

    named: Identifier
    parent: Identifier


@dataclass(frozen=True, slots=True)
class Rule(Generic[C]):
    """A right, and on what; `more` finds what else a call needs, and may refuse it itself."""

    right: int
    on: str
    kind: str = NAMESPACE
    more: Callable[[C, Access], Awaitable[Sequence[Need]]] | None = None
    # Answered without credentials.
    is_open: bool = False
    # What the right is on, in words, where `on` does not tell.
    where: str = ""
    # What `more` asks for, in words.
    also: str = ""
    # What the audit log tells of a call, when that is more than what it is about.
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

    def need(self, names: Names) -> Need:
        """The right on what the path names."""
        if self.on == NAMED and (names.named or self.kind == NAMESPACE):
            return Need(self.right, self.kind, names.named)
        if self.on == PARENT:
            return Need(self.right, NAMESPACE, names.parent)
        # A path that names nothing is refused by who reads it.
        return Need(self.right if self.on == CATALOG else SEE, NAMESPACE, ROOT)
