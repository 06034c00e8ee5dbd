"""Rights: what a role allows, and what an operation needs."""

from dataclasses import dataclass

from penstock.errors import InvalidRequest
from penstock.model.identifiers import Identifier, show

# Seeing that something exists needs any right on it, or on something below it.
SEE = 0
READ, WRITE, OWN, FUNCTIONS = 1, 2, 4, 8
# Rights that make an object visible; bringing code says nothing about data.
SEEING = READ | WRITE | OWN

ROLES = {"reader": READ, "writer": READ | WRITE, "owner": SEEING, "functions": FUNCTIONS}
# The least role that includes a right.
ROLE_OF = {READ: "reader", WRITE: "writer", OWN: "owner", FUNCTIONS: "functions"}

NAMESPACE, TABLE, VIEW, FUNCTION = "namespace", "table", "view", "function"
# An Iceberg table; grants name it as a table, and no other table has its name.
ICEBERG_TABLE = "iceberg table"
KINDS = (NAMESPACE, TABLE, VIEW, FUNCTION)


@dataclass(frozen=True, slots=True)
class Need:
    """A right on one object; the namespace without a name is the whole catalog."""

    right: int
    kind: str
    id: Identifier

    def __str__(self) -> str:
        return name_target(self.kind, self.id)


@dataclass(frozen=True, slots=True)
class Standing:
    """What a caller may do with one object; `sees` when it may know that it exists."""

    rights: int
    sees: bool

    def has(self, right: int) -> bool:
        return self.sees if right == SEE else self.rights & right == right


def check_role(role: str) -> str:
    if role not in ROLES:
        raise InvalidRequest(f"role is {role!r}", detail="use one of " + ", ".join(ROLES))
    return role


def name_target(kind: str, id: Identifier) -> str:
    """The target of a grant, for people."""
    return f"{kind} {show(id)}" if id else "the catalog"
