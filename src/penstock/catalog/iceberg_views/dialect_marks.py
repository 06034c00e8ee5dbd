"""Marks on views: a property for each representation whose SQL does not parse.

Such a view is stored anyway: engines understand more than our parser.
"""

import time
from typing import Any

from penstock.iceberg.metadata import current_representations
from penstock.sql.doors import check

Json = dict[str, Any]

MAX_SECONDS = 2.0
MARK, MARK_END = "penstock.dialect.", ".problem"


def mark_problems(metadata: Json, previous: Json | None = None) -> Json:
    """Add a property for each representation that does not parse; blocks.

    Marks of earlier metadata with the same SQL are kept.
    """
    properties = metadata.get("properties") or {}
    kept = {k: v for k, v in properties.items() if not _is_mark(k)}
    statements = current_representations(metadata)
    if previous is not None and statements == current_representations(previous):
        marks = previous.get("properties") or {}
        kept |= {k: v for k, v in marks.items() if _is_mark(k)}
        statements = []
    started = time.monotonic()
    for dialect, sql in statements:
        # Out of time: leave the rest unmarked rather than make the client wait.
        if time.monotonic() - started > MAX_SECONDS:
            break
        if (problem := check.check_statement(sql, dialect)) is not None:
            where = f"line {problem.line}, column {problem.column}: " if problem.line else ""
            kept[f"{MARK}{dialect.lower()}{MARK_END}"] = f"{where}{problem.message}"
    if kept == properties:
        return metadata
    changed = {k: v for k, v in metadata.items() if k != "properties"}
    return changed | {"properties": kept} if kept else changed


def _is_mark(key: str) -> bool:
    return key.startswith(MARK) and key.endswith(MARK_END)
