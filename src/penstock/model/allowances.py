"""Allowances: what a change may do to what depends on its object."""

from dataclasses import dataclass

from penstock.errors import InvalidRequest


@dataclass(frozen=True, slots=True)
class Allowance:
    """Without one of the two, a change that would break a dependent is refused."""

    # Dependents are dropped along with what is dropped, and follow what is renamed.
    cascade: bool = False
    # Dependents stay as they are, and break.
    force: bool = False


NOTHING_BREAKS, CASCADE = Allowance(), Allowance(cascade=True)


def read_allowance(cascade: bool | None, force: bool | None) -> Allowance:
    """The allowance that a request's flags make."""
    if cascade and force:
        raise InvalidRequest(
            "both cascade and force are set",
            detail="use cascade to take dependents along, or force to let them break",
        )
    return Allowance(bool(cascade), bool(force))
