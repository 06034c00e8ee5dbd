"""Ranked rows: their limits, and the columns of their scores.

Lance allocates room for all ranked rows before it looks at the first.
"""

from collections.abc import Mapping, Sequence

from penstock.errors import InvalidRequest

# Ranked rows of one search, for all its vectors, including those that are refined.
MAX_RANKED = 1_000_000
MAX_VECTORS = 1_000
# Up to here the table is not consulted.
FEW = 10_000


def bound_ranking(
    rows: int, vectors: int, most: int, tuning: Mapping[str, int]
) -> tuple[int, dict[str, int]]:
    """The k and the tuning of a vector search, no larger than the table needs."""
    k = min(most, max(rows, 1))
    bounded = dict(tuning)
    if "refine_factor" in bounded:
        bounded["refine_factor"] = min(bounded["refine_factor"], -(-max(rows, 1) // k))
    if "ef" in bounded:
        bounded["ef"] = min(bounded["ef"], max(rows, k))
    ranked = max(k * bounded.get("refine_factor", 1), bounded.get("ef", 0)) * vectors
    if ranked > MAX_RANKED:
        raise InvalidRequest(
            f"the vector search would rank {ranked} rows; {MAX_RANKED} are ranked",
            detail="send a smaller k, offset, refine_factor or ef, or fewer vectors",
        )
    return k, bounded


def is_small(most: int, vectors: int, tuning: Mapping[str, int]) -> bool:
    """Whether a search is so small that it needs no bounds, as almost all are."""
    factor, ef = tuning.get("refine_factor", 1), tuning.get("ef", 0)
    return max(most * factor, ef) * vectors <= FEW


def check_vectors(count: int) -> None:
    if count > MAX_VECTORS:
        raise InvalidRequest(
            f"vector has {count} vectors; {MAX_VECTORS} are searched at once",
            detail="send several requests",
        )


def add_scores(
    columns: list[str] | dict[str, str] | None, scores: Sequence[str]
) -> list[str] | dict[str, str] | None:
    """The columns with those of the ranking, which Lance adds as well, but warns of each time."""
    missing = [name for name in scores if columns is not None and name not in columns]
    if isinstance(columns, dict):
        return columns | {name: name for name in missing}
    return None if columns is None else columns + missing
