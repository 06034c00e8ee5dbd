"""Queries with a limit: which rows are in the view, namely those with the smallest row ids."""

from collections.abc import Callable

import numpy as np

from penstock.jobs.refresh.context import SourceAt, Work
from penstock.jobs.refresh.rows.plan import Everything, Some
from penstock.jobs.refresh.rows.view_rows import ViewRows, find_view_rows
from penstock.lance.diff.row_diff import Rows, join_rows, scan_all
from penstock.lance.diff.row_sets import is_among

# Those of some rows that the filter takes.
Match = Callable[[Rows], Rows]


def limit_rows(
    work: Work, source: SourceAt, what: Everything | Some, limit: int, match: Match
) -> Everything | Some:
    """What is computed and what goes, with a limit; only ids are read."""
    if isinstance(what, Everything):
        return Everything(_first(match(scan_all(source.dataset_now)), limit))
    old = find_view_rows(work.view, None)
    stays = ~is_among(old.sources, what.touched)
    news = match(what.rows)
    pool = np.concatenate([old.sources[stays], news.ids])
    if limit and len(old.sources) >= limit:
        # What comes after the last row was let in by nobody, so it is not known who matches.
        last = old.sources[-1]
        if int((pool <= last).sum()) < limit:
            there = scan_all(source.dataset_now)
            unknown = (there.ids > last) & ~is_among(there.ids, what.rows.ids)
            more = match(there.take(unknown))
            news = join_rows(news, more)
            pool = np.concatenate([pool, more.ids])
        else:
            pool = pool[pool <= last]
    chosen = np.sort(pool)[:limit]
    stays &= is_among(old.sources, chosen)
    rows = news.take(is_among(news.ids, chosen))
    at = np.minimum(np.searchsorted(what.rows.ids, rows.ids), max(0, len(what.rows.ids) - 1))
    known = is_among(rows.ids, what.rows.ids)
    return Some(
        rows=rows,
        touched=what.touched,
        gone=ViewRows(old.sources[~stays], old.ids[~stays]),
        was=is_among(rows.ids, old.sources),
        same=np.zeros(len(rows.ids), bool),
        kept=tuple(known & each[at] if len(each) else known for each in what.kept),
    )


def _first(rows: Rows, count: int) -> Rows:
    return rows.take(np.arange(min(count, len(rows.ids))))
