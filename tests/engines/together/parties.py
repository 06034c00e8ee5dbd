"""The same few operations in three engines."""

from typing import Protocol

from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.types import IntegerType

from tests.engines.checks import Rows, Session
from tests.engines.pyiceberg.catalog import FIELDS, people, seen


class Party(Protocol):
    """An engine that makes tables with an id and a name, changes them and reads them."""

    name: str

    def create(self, table: str) -> None: ...
    def insert(self, table: str, id: int, name: str) -> None: ...
    def rename_row(self, table: str, id: int, name: str) -> None: ...
    def delete(self, table: str, id: int) -> None: ...
    def grow(self, table: str, column: str) -> None: ...
    def rows(self, table: str) -> Rows: ...
    def columns(self, table: str) -> list[str]: ...


class Sql:
    """Spark or Trino."""

    def __init__(self, name: str, session: Session, schema: str) -> None:
        self.name, self._session, self._schema = name, session, schema

    def create(self, table: str) -> None:
        spark = self.name == "spark"
        made, text = (" USING iceberg", "STRING") if spark else ("", "VARCHAR")
        self.run(f"CREATE TABLE {self._schema}.{table} (id BIGINT, name {text}){made}")

    def insert(self, table: str, id: int, name: str) -> None:
        self.run(f"INSERT INTO {self._schema}.{table} (id, name) VALUES ({id}, '{name}')")

    def rename_row(self, table: str, id: int, name: str) -> None:
        self.run(
            f"MERGE INTO {self._schema}.{table} AS t USING (SELECT {id} AS id) AS s "
            f"ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = '{name}'"
        )

    def delete(self, table: str, id: int) -> None:
        self.run(f"DELETE FROM {self._schema}.{table} WHERE id = {id}")

    def grow(self, table: str, column: str) -> None:
        self.run(f"ALTER TABLE {self._schema}.{table} ADD COLUMN {column} INT")

    def rows(self, table: str) -> Rows:
        return self.run(f"SELECT id, name FROM {self._schema}.{table} ORDER BY id")

    def columns(self, table: str) -> list[str]:
        return [row[0] for row in self.run(f"SHOW COLUMNS IN {self._schema}.{table}")]

    def run(self, sql: str) -> Rows:
        return self._session.rows(sql)


class Pyiceberg:
    """pyiceberg, which has calls and no SQL."""

    def __init__(self, name: str, catalog: RestCatalog) -> None:
        self.name, self.catalog = name, catalog

    def create(self, table: str) -> None:
        self.catalog.create_table(f"shop.{table}", FIELDS)

    def insert(self, table: str, id: int, name: str) -> None:
        self.catalog.load_table(f"shop.{table}").append(people((id, name)))

    def rename_row(self, table: str, id: int, name: str) -> None:
        self.catalog.load_table(f"shop.{table}").upsert(people((id, name)), join_cols=["id"])

    def delete(self, table: str, id: int) -> None:
        self.catalog.load_table(f"shop.{table}").delete(f"id = {id}")

    def grow(self, table: str, column: str) -> None:
        with self.catalog.load_table(f"shop.{table}").update_schema() as change:
            change.add_column(column, IntegerType())

    def rows(self, table: str) -> Rows:
        return seen(self.catalog.load_table(f"shop.{table}"), "id", "name")

    def columns(self, table: str) -> list[str]:
        return list(self.catalog.load_table(f"shop.{table}").schema().column_names)
