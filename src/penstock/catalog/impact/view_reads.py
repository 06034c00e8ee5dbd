"""Which materialized views read some columns of a table, by what is recorded of them."""

from collections.abc import Sequence

from penstock.catalog.materialized_views import materialized_views
from penstock.catalog.names import tables, view_sources
from penstock.database.interface import Transaction
from penstock.lance.columns.fields import Path, parse_path


async def find_views(
    tx: Transaction, table_id: str, wanted: Sequence[Path]
) -> dict[str, tuple[str, ...]]:
    """The materialized views whose queries read one of some paths, with those of its paths."""
    found = {}
    for id in await view_sources.list_readers(tx, table_id):
        view = await tables.find_by_id(tx, id)
        if view is None:
            continue
        definition = (await materialized_views.load(tx, view)).definition
        reads = [
            path for s in definition.sources if s.id == table_id for path in (*s.reads, *s.named)
        ]
        if touched := list_touched(reads, wanted):
            found[id] = touched
    return found


def list_touched(reads: Sequence[str], wanted: Sequence[Path]) -> tuple[str, ...]:
    """Those of some paths that are among others, contain one of them, or are part of one."""
    return tuple(text for text in reads if any(_overlap(parse_path(text), each) for each in wanted))


def _overlap(one: Path, other: Path) -> bool:
    shared = min(len(one), len(other))
    return one[:shared] == other[:shared]
