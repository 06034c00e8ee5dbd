"""Marks on views: a property for each representation whose SQL does not parse.

Such a view is stored all the same: engines know more than the parser.
"""

from typing import Any

Json = dict[str, Any]

MARK, MARK_END = "penstock.dialect.", ".problem"


def mark_problems(metadata: Json) -> Json:
    """The metadata with a property for each representation that does not parse; blocks."""
    from penstock.dialects.check import check_statement
    from penstock.iceberg.metadata import current_representations

    properties = metadata.get("properties") or {}
    kept = {k: v for k, v in properties.items() if not _is_mark(k)}
    for dialect, sql in current_representations(metadata):
        if (problem := check_statement(sql, dialect)) is not None:
            where = f"line {problem.line}, column {problem.column}: " if problem.line else ""
            kept[f"{MARK}{dialect.lower()}{MARK_END}"] = f"{where}{problem.message}"
    if kept == properties:
        return metadata
    changed = {k: v for k, v in metadata.items() if k != "properties"}
    return changed | {"properties": kept} if kept else changed


def _is_mark(key: str) -> bool:
    return key.startswith(MARK) and key.endswith(MARK_END)
