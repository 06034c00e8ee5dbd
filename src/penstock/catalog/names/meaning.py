"""What a name in SQL stands for: whatever has it now, among what may be read."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass

from penstock.catalog.access import grants
from penstock.database.interface import Transaction
from penstock.model.identifiers import Identifier, from_path, to_path
from penstock.model.rights import READ, TABLE, Need

# Whether whoever asks may read a table or view.
MayRead = Callable[[Identifier], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class Meant:
    """Something in the catalog that a name stands for."""

    identifier: Identifier
    id: str
    kind: str


async def find_meant(
    tx: Transaction,
    candidates: Sequence[Identifier],
    may_read: MayRead,
    known: Collection[str] = (),
) -> Meant | None:
    """What has the first of these names that something has, exactly or but for its case.

    What is known by its id counts although it may not be read any more.
    """
    for candidate in filter(None, candidates):
        rows = await tx.fetch(
            "SELECT namespace, name, id, kind FROM objects "
            "WHERE namespace IN ($1, $2) AND lower(name) = lower($3) "
            "AND kind <> 'function' "
            # However many are alike, the exact one is among them.
            "ORDER BY CASE WHEN namespace = $1 AND name = $3 THEN 0 ELSE 1 END LIMIT 10",
            *(to_path(candidate[:-1]), to_path(candidate[:-1]).lower(), candidate[-1]),
        )
        named = [Meant((*from_path(row[0]), row[1]), row[2], row[3]) for row in rows]
        seen = [each for each in named if each.id in known or await may_read(each.identifier)]
        exact = [each for each in seen if each.identifier == candidate]
        if exact or len(seen) == 1:
            return (exact or seen)[0]
    return None


def reading_as(tx: Transaction, grantees: Sequence[str]) -> MayRead:
    """What holders of these grants may read; everything where authentication was off."""

    async def may_read(id: Identifier) -> bool:
        return await grants.may_in(tx, grantees, Need(READ, TABLE, id))

    return may_read
