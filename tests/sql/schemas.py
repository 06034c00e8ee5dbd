"""The tables that the statements of these tests read, and short ways to ask."""

from penstock.sql.resolving.lineage import trace_columns
from penstock.sql.results import Lineage, Refusal, Tables, Translation
from penstock.sql.translating.translate import translate

TABLES: Tables = {
    ("shop", "orders"): {
        "id": "BIGINT",
        "customer_id": "BIGINT",
        "Amount": "DOUBLE",
        "quantity": "INT",
        "note": "TEXT",
        "placed": "DATE",
        "shipped": "TIMESTAMP",
        "paid": "TIMESTAMPTZ",
        "open": "BOOLEAN",
        "price": "DECIMAL(10,2)",
        "tags": "ARRAY<TEXT>",
        "address": "STRUCT<city TEXT, zip TEXT>",
    },
    ("shop", "customers"): {"id": "BIGINT", "name": "TEXT", "region": "TEXT"},
    ("shop", "MixedCase"): {"Key": "INT"},
    ("shop", "twins"): {"Id": "INT", "id": "INT"},
    ("shop", "opaque"): None,
    ("a", "b", "deep"): {"k": "INT"},
    ("shop", 'odd."name`'): {"täglich": "INT", 'q"q': "INT", "a.b": "INT"},
}
NAMESPACE = ("shop",)


def to(target: str, sql: str, source: str = "spark") -> Translation:
    found = translate(sql, source, target, TABLES, NAMESPACE, "prod")
    assert isinstance(found, Translation), found
    return found


def refused(target: str, sql: str, source: str = "spark") -> Refusal:
    found = translate(sql, source, target, TABLES, NAMESPACE, "prod")
    assert isinstance(found, Refusal), found
    return found


def traced(sql: str, dialect: str = "spark") -> Lineage:
    found = trace_columns(sql, dialect, TABLES, NAMESPACE, "prod")
    assert isinstance(found, Lineage), found
    return found


def sources(lineage: Lineage) -> dict[str, list[str]]:
    """Output name to its sources as table.column."""
    return {
        column.name: [f"{source.table[-1]}.{source.column}" for source in column.sources]
        for column in lineage.columns
    }


def filters(lineage: Lineage) -> list[str]:
    return [f"{source.table[-1]}.{source.column}" for source in lineage.filters]
