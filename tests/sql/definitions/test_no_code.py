"""SQL of a view runs no code and reads no file, by whatever trick; the error is the client's."""

import re
from pathlib import Path

import pyarrow as pa
import pytest

import penstock
from penstock.errors import InvalidRequest
from tests.harness.views.definitions import columns, make, refusal

SCRIPT = "SELECT TRANSFORM(name) USING 'sh -c id' AS (name string) FROM docs"
ATTACKS = [
    # Scripts.
    SCRIPT,
    f"SELECT DISTINCT name FROM ({SCRIPT}) q",
    f"WITH q AS ({SCRIPT}) SELECT name FROM q",
    f"SELECT name FROM docs UNION ALL {SCRIPT}",
    f"SELECT name FROM docs WHERE name IN ({SCRIPT})",
    "SELECT MAP name USING 'sh' AS name FROM docs",
    "FROM docs REDUCE name USING 'sh' AS name",
    "SELECT name FROM docs |> SELECT name",
    # What one lexer takes for a comment, and the other does not.
    "SELECT id /* /*+ */ , reflect('java.lang.System', 'exit') AS x -- */\nFROM docs",
    "SELECT id -- \\\n, \"\n, reflect('java.lang.System', 'exit') AS x -- \" AS x\nFROM docs",
    "SELECT /* /*+ */ id, reflect('java.lang.System', 'exit') AS /* */ id FROM docs",
    "SELECT id -- \\\n, reflect('java.lang.System', 'exit') AS x\nFROM docs",
    "SELECT id /*/ /* */ , reflect('a', 'b') AS x /*/ */ */ FROM docs",
    # Functions that run code, or tell of the machine.
    "SELECT id, reflect('java.lang.System', 'getenv', 'HOME') AS x FROM docs",
    "SELECT id, `java_method`('java.lang.System', 'getenv', 'HOME') AS x FROM docs",
    "SELECT id, TRY_REFLECT('a', 'b') AS x FROM docs",
    "SELECT id, system.builtin.reflect('a', 'b') AS x FROM docs",
    "SELECT id, `system`.`builtin`.`upper`(name) AS x FROM docs",
    "WITH reflect(a) AS (SELECT id FROM docs) SELECT a, reflect('a', 'b') AS x FROM reflect",
    "SELECT id, '${env:HOME}' AS x FROM docs",
    "SELECT id AS `${env:HOME}` FROM docs",
    "SELECT id FROM docs, python_worker_logs()",
    # Files and addresses.
    "SELECT value FROM text.`/etc/passwd`",
    "SELECT d.id FROM docs d JOIN csv.`/etc/passwd` c ON true",
    "SELECT id FROM docs WHERE EXISTS (SELECT 1 FROM parquet.`s3://other/x`)",
    "SELECT id FROM docs, LATERAL (SELECT * FROM json.`/etc/x`) AS l",
    "SELECT id, from_xml(name, 'a int', map('rowValidationXSDPath', '/etc/x')) AS x FROM docs",
    "SELECT id, from_avro(name, '{}', map('avroSchemaUrl', 'file:/etc/x')) AS x FROM docs",
    "SELECT id, from_json(name, 'a int', map(concat('pa', 'th'), 'x')) AS x FROM docs",
    "SELECT id, from_csv(name, 'a int', str_to_map(name)) AS x FROM docs",
    "SELECT id, from_protobuf(name, 'm', '/etc/x') AS x FROM docs",
    "SELECT id, xpath_string(name, 'a') AS x FROM docs",
    # Names that are made when it runs, versions, commands, tables that are none.
    "SELECT id FROM IDENTIFIER('docs')",
    "SELECT id, IDENTIFIER('reflect')('a', 'b') AS x FROM docs",
    "SELECT id, :x AS x FROM docs",
    "SELECT id, ? AS x FROM docs",
    "SELECT id FROM docs TIMESTAMP AS OF '2024-01-01'",
    "SELECT id FROM docs FOR SYSTEM_VERSION AS OF 1",
    "SELECT id FROM docs@v1",
    "SELECT id FROM docs TABLESAMPLE (3 ROWS)",
    "SELECT id FROM docs WHERE length(repeat('a', 500000000)) > 0",
    "SELECT id, size(array_repeat(1, 2000000)) AS n FROM docs",
    "SELECT id FROM docs WHERE length(repeat(repeat('a', 30000), 30000)) > 0",
    "SELECT id INTO x FROM docs",
    "BEGIN SELECT id FROM docs; END",
    "EXECUTE IMMEDIATE 'SELECT id FROM docs'",
    "SELECT id FROM docs; DROP TABLE docs",
    "SELECT id FROM TABLE(docs)",
    "SELECT id FROM range(3), docs",
    "SELECT id FROM STREAM docs",
    # Another parser's FROM is a column to Spark.
    "SELECT q.id FROM (SELECT id, FROM docs) q",
    "SELECT 1 AS x FROM (SELECT FROM docs) q",
    # Letters and spaces that look like others.
    "SELECT\u00a0id FROM docs",
    "SELECT id FROM docs\u200b",
    "SELECT \uff49\uff44 FROM docs",
    "SELECT id \u202eFROM docs",
    "SELECT id FROM docs WHERE name = 'a\x00'",
]


@pytest.mark.parametrize("sql", ATTACKS)
def test_sql_that_could_run_code_or_read_files_is_refused(sql: str) -> None:
    assert refusal(sql).startswith("InvalidRequest: source_query")


@pytest.mark.parametrize("sql", ATTACKS[:22])
@pytest.mark.parametrize("dialect", ["spark", "databricks"])
def test_so_it_is_in_iceberg_views(sql: str, dialect: str) -> None:
    views = {("shop", "v"): (sql, dialect, ("shop",))}
    for query in ("SELECT * FROM v", {"iceberg_view": ["shop", "v"]}):
        assert refusal(query, views=views).startswith("InvalidRequest")


@pytest.mark.parametrize("sql", ATTACKS)
def test_other_dialects_are_translated_without_it_or_refused(sql: str) -> None:
    for dialect in ("trino", "duckdb"):
        try:
            made = make({"sql": sql, "dialect": dialect})
        except InvalidRequest:
            continue
        assert not re.search(r"reflect|transform|using '|`/|env:", made.sql.lower())


def test_errors_are_placed_in_the_text_that_its_author_wrote() -> None:
    said = refusal("SELECT id, -- the key\n  'it''s' AS `a b`,\n  reflect('a') AS x FROM docs")
    assert "reflect is not the same at every refresh" in said
    assert "(line 3, column 3)" in said
    assert "(line 2, column 9)" in refusal("SELECT /* a */\n 'x' || nothing AS y FROM docs")


def test_texts_are_what_spark_reads_in_them() -> None:
    made = make(r"""SELECT 'it''s' AS a, "b" 'c' AS b, r'\d' AS c, '\u0041\%' AS d FROM docs""")
    assert columns(made) == {"a": r"'it\'s'", "b": "'bc'", "c": r"'\\d'", "d": r"'A\\%'"}


def test_names_that_are_words_of_the_grammar_are_quoted() -> None:
    schema = pa.schema([("name", pa.string()), ("table", pa.string())])
    made = make("SELECT name, t.table AS x FROM u t", schemas={("shop", "u"): schema})
    assert columns(made) == {"name": "`name`", "x": "`table`"}


def test_only_the_door_makes_texts_for_spark() -> None:
    root = Path(penstock.__file__).parent
    made = {
        str(path.relative_to(root))
        for path in root.rglob("*.py")
        if re.search(r"CheckedSql\(", path.read_text())
    }
    # A moment is put where the door left a mark for it.
    assert made == {"sql/spark/text/checked_sql.py", "model/views.py", "model/moments.py"}
