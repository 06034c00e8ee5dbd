"""The tree of an expression, as far as the size of its values depends on it.

Operators are not distinguished: whatever their precedence, a chain's value is made of its operands.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the row, or part of one."""

    name: str


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal: a text, an integer, or any other by its text."""

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
        """Whether the value is a number or a boolean, however large the operands are."""
        return bool(self.operators) and not self.joins


Node = Column | Constant | Call | Cast | Chain
