"""What an expression is made of, as far as it matters how large its values can become.

Operators are not told apart: whatever binds more tightly, a chain's value is made of its operands.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the row, or a part of one."""

    name: str


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal: a text, a whole number, or another one by its text."""

    value: str | int
    size: int


@dataclass(frozen=True, slots=True)
class Call:
    function: str
    arguments: "tuple[Node, ...]"


@dataclass(frozen=True, slots=True)
class Cast:
    value: "Node"


@dataclass(frozen=True, slots=True)
class Chain:
    """Operands with operators between them; `joins` when one of these is ||."""

    operands: "tuple[Node, ...]"
    operators: tuple[str, ...] = ()

    @property
    def joins(self) -> bool:
        return "||" in self.operators

    @property
    def computes(self) -> bool:
        """Whether the value is a number or a truth, however large the operands are."""
        return bool(self.operators) and not self.joins


Node = Column | Constant | Call | Cast | Chain
