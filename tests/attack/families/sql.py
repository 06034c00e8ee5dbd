"""SQL that would run code, read files or leave its cage, in every dialect and behind every comment.

What is refused when it is sent needs no engine. What is hidden behind a comment may be taken, since
it is a comment for whoever checks it: `test_spark.py` lets Spark run those.
"""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from tests.attack.attack import HANDLED, REFUSED, Attack, Request, post
from tests.attack.families.routes import ICEBERG
from tests.attack.place import HIDDEN, OWNER, PIT, Place
from tests.harness.clients import iceberg_requests as views
from tests.harness.views.definitions import encode_schema, make_spec

FAMILY = "sql"
T = f"{PIT.replace('$', '.')}.t"
DIALECTS = ("spark", "trino", "duckdb", "hive", "databricks", "bigquery", "snowflake", "postgres")


def script(canary: str) -> str:
    """A statement that runs a program, and needs no table that somebody would have to find."""
    return f"SELECT TRANSFORM(x) USING 'touch {canary}' AS (name string) FROM VALUES ('a') AS q(x)"


def code(canary: str) -> tuple[str, ...]:
    """Statements that start a program or call into the engine's own process."""
    run = f"'touch {canary}'"
    inner = f"SELECT TRANSFORM(name) USING {run} AS (name string) FROM {T}"
    call = "reflect('java.lang.System', 'getenv', x)"
    return (
        inner,
        script(canary),
        f"SELECT DISTINCT name FROM ({inner}) q",
        f"WITH q AS ({inner}) SELECT name FROM q",
        f"SELECT name FROM {T} UNION ALL {inner}",
        f"SELECT name FROM {T} WHERE name IN ({inner})",
        f"SELECT name FROM {T} WHERE EXISTS ({inner})",
        f"SELECT (SELECT max(name) FROM ({inner}) q) AS name FROM {T}",
        f"SELECT a.name FROM {T} a JOIN ({inner}) b ON a.name = b.name",
        f"SELECT a.name FROM {T} a, LATERAL ({inner}) b",
        f"FROM {T} MAP name USING {run} AS (name string)",
        f"FROM {T} REDUCE name USING {run} AS (name string)",
        f"FROM {T} SELECT TRANSFORM(name) USING {run} AS (name string)",
        "SELECT reflect('java.lang.System', 'getenv', 'PATH') AS name FROM " + T,
        "SELECT java_method('java.lang.System', 'getProperty', 'user.dir') AS name FROM " + T,
        "SELECT try_reflect('java.lang.System', 'exit', 3) AS name FROM " + T,
        f"SELECT id FROM (SELECT id, reflect('java.lang.System', 'exit', 3) AS x FROM {T}) q",
        f"SELECT name FROM {T} WHERE reflect('java.lang.System', 'getenv', 'PATH') = 'x'",
        f"SELECT name FROM {T} ORDER BY java_method('java.lang.System', 'getenv', 'PATH')",
        f"SELECT max(reflect('java.lang.System', 'getenv', 'PATH')) AS name FROM {T} GROUP BY id",
        f"SELECT transform(array(name), x -> {call}) AS n FROM {T}",
    )


def _files(outside: str) -> tuple[str, ...]:
    """Statements that read or write what is no table of the catalog."""
    note = f"{outside}/note"
    return (
        *(f"SELECT * FROM {kind}.`{note}`" for kind in ("text", "csv", "json", "parquet", "orc")),
        *(
            f"SELECT * FROM {kind}.`file://{note}`"
            for kind in ("binaryFile", "avro", "xml", "delta")
        ),
        f"SELECT q.value FROM (SELECT * FROM text.`{note}`) q",
        f"SELECT * FROM {T} JOIN text.`{note}`",
        f"SELECT * FROM read_files('{note}')",
        f"SELECT * FROM read_csv('{note}')",
        f"SELECT * FROM read_text('{note}')",
        f"SELECT * FROM '{note}'",
        f"SELECT pg_read_file('{note}') AS name",
        f"SELECT load_file('{note}') AS name FROM {T}",
        f"SELECT from_xml(name, 'a string', map('rowValidationXSDPath', '{note}')) AS x FROM {T}",
        f"SELECT from_avro(cast(name AS binary), '', map('avroSchemaUrl', '{note}')) AS x FROM {T}",
        f"SELECT from_protobuf(cast(name AS binary), 'M', '{note}') AS x FROM {T}",
        f"SELECT to_protobuf(struct(name), 'M', '{note}') AS x FROM {T}",
        f"INSERT OVERWRITE DIRECTORY '{outside}/out' USING text SELECT name FROM {T}",
        f"INSERT OVERWRITE LOCAL DIRECTORY '{outside}/out' SELECT name FROM {T}",
        f"COPY (SELECT 1) TO '{outside}/out'",
        f"CREATE TABLE q USING text LOCATION '{outside}' AS SELECT name FROM {T}",
        f"LOAD DATA LOCAL INPATH '{note}' INTO TABLE {T}",
        f"ADD JAR '{note}'",
        f"ATTACH '{note}' AS x",
    )


COMMANDS = (
    *(
        "SET spark.sql.x=1",
        "RESET",
        "SHOW TABLES",
        "SHOW DATABASES",
        f"DESCRIBE {T}",
        f"EXPLAIN {T}",
    ),
    *(
        "USE default",
        "CREATE DATABASE x",
        "CREATE FUNCTION f AS 'x.Y'",
        "REFRESH TABLE x",
        "CLEAR CACHE",
    ),
    *(f"DROP TABLE {T}", f"DELETE FROM {T}", f"UPDATE {T} SET id = 1", f"TRUNCATE TABLE {T}"),
    *(
        f"CACHE TABLE q AS SELECT * FROM {T}",
        f"INSERT INTO {T} VALUES (1)",
        f"MERGE INTO {T} USING x",
    ),
    *(
        f"SELECT id FROM {T}; SELECT 1",
        f"SELECT id FROM {T}; DROP TABLE {T}",
        "EXECUTE IMMEDIATE 'x'",
    ),
    *(
        "BEGIN SELECT 1; END",
        "CALL system.x()",
        f"ANALYZE TABLE {T} COMPUTE STATISTICS",
        ";",
        "--",
        "/*",
    ),
    *(
        "DECLARE x INT",
        "SELECT @@version",
        "PRAGMA x",
        "VACUUM",
        "LIST JARS",
        "GRANT ALL ON x TO y",
    ),
    *(f"SELECT * FROM {HIDDEN}.t", f"SELECT * FROM {HIDDEN}.m", f"SELECT * FROM {HIDDEN}.v"),
    *(f"TABLE {HIDDEN}.t", f"SELECT id FROM {T} WHERE id IN (SELECT id FROM {HIDDEN}.t)"),
    *(f"SELECT (SELECT max(name) FROM {HIDDEN}.t) AS name FROM {T}", "SELECT * FROM global_temp.x"),
    *("SELECT * FROM spark_catalog.default.x", "SELECT * FROM system.builtin.x"),
    *("SELECT * FROM information_schema.tables", "SELECT * FROM IDENTIFIER('veil.t')"),
    *("SELECT * FROM sqlite_master", "SELECT * FROM pg_catalog.pg_tables", "SELECT * FROM grants"),
)


def wrap(statement: str) -> dict[str, str]:
    """The same statement as the same parser reads it."""
    return {
        "plain": statement,
        "tabs": statement.replace(" ", "\t"),
        "comments": statement.replace(" ", "/**/ ", 3),
        "hints": statement.replace("SELECT ", "SELECT /*+ BROADCAST(x) */ ", 1),
        "in brackets": f"({statement})",
        "no break": statement.replace(" ", "\u00a0", 1),
    }


def hide(statement: str) -> dict[str, str]:
    """Statements that are one thing for a parser that reads comments or quotes in another way."""
    # Of a query that is more than rows of one table the engine gets the whole text.
    start = f"SELECT DISTINCT name FROM {T}"
    both = f"UNION ALL {statement}"
    return {
        "nested comment": f"{start} /* /* x */ {both} /* */ */",
        "nested hint": f"{start} /* /*+ */ {both} /* */ -- */",
        "hint in a comment": f"SELECT DISTINCT /*+ /* */ name FROM {T} {both} /* */ */",
        "comment that goes on": f"{start} -- \\\n {both}",
        "comment that goes on, CR": f"{start} -- \\\r\n {both}",
        "comment that goes on and opens": f"{start} -- \\\n /*\n {both} -- */",
        "hint that opens": f"{start} /* /*+ */ {both} /* */ */",
        "comment ended by CR": f"{start} --\r{both}",
        "comment ended by a form feed": f"{start} --\f{both}",
        "comment ended by NEL": f"{start} --\u0085{both}",
        "comment ended by LS": f"{start} --\u2028{both}",
        "comment ended by PS": f"{start} --\u2029{both}",
        "hash": f"{start} #\n {both}",
        "slashes": f"{start} //\n {both}",
        "template": f"{start} {{# #}} {both}",
        "template block": f"{start} {{% x %}} {both}",
        "conditional comment": f"{start} /*! {both} */",
        "empty comment": f"{start} /**/ {both} /**/",
        "half a comment": f"{start} /*/ {both} /*/",
        "escape in quotes": f"SELECT DISTINCT '\\' AS name FROM {T} {both} --'",
        "doubled quotes": f"SELECT DISTINCT '''' AS name FROM {T} {both} --'",
        "raw string": f"SELECT DISTINCT r'\\' AS name FROM {T} {both} --'",
        "double quotes": f'SELECT DISTINCT "\\" AS name FROM {T} {both} --"',
        "backtick": f"SELECT DISTINCT name AS `a``b` FROM {T} {both} --`",
        "backtick and escape": f"SELECT DISTINCT name AS `a\\` FROM {T} {both} --`",
        "dollars": f"SELECT DISTINCT $$ AS name FROM {T} {both} --$$",
        "tagged dollars": f"SELECT DISTINCT $a$ AS name FROM {T} {both} --$a$",
        "hex": f"SELECT DISTINCT X'27' AS name FROM {T} {both} --'",
        "unicode escape": f"SELECT DISTINCT '\\u0027 AS name FROM {T} {both} --'",
        "octal escape": f"SELECT DISTINCT '\\047 AS name FROM {T} {both} --'",
        "wide quotes": f"SELECT DISTINCT \u2018x\u2019 AS name FROM {T} {both}",
        "three quotes": f"SELECT DISTINCT '''x''' AS name FROM {T} {both} --'''",
        "a NUL": f"{start} \x00 {both}",
        "after its end": f"{start} ; {both}",
    }


def make(place: Place) -> Iterator[Attack]:
    number = 0
    direct = (*code(place.canary), *_files(place.outside), *COMMANDS)
    for statement in direct:
        for how, text in wrap(statement).items():
            # Commands and files are refused by their first words; code is looked for everywhere.
            if how not in ("plain", "comments") and statement not in code(place.canary):
                continue
            for where, (before, request) in _views(text, f"q{number}", DIALECTS[:1]).items():
                number += 1
                name = f"{where}, {how}: {statement[:60]}"
                yield Attack(FAMILY, name, OWNER, request, REFUSED, before=before)
    # A few of each kind, in words that other dialects have as well.
    for dialect in DIALECTS[1:]:
        for statement in direct[::5]:
            for where, (before, request) in _views(statement, f"q{number}", (dialect,)).items():
                number += 1
                name = f"{where}: {statement[:60]}"
                yield Attack(FAMILY, name, OWNER, request, REFUSED, before=before)
    for statement in (script(place.canary), code(place.canary)[13]):
        for how, text in hide(statement).items():
            for where, (before, request) in _views(text, f"q{number}", DIALECTS[:3]).items():
                number += 1
                yield Attack(FAMILY, f"{where}, {how}", OWNER, request, HANDLED, before=before)
    yield from _in_expressions(place)


def _views(
    sql: str, name: str, dialects: tuple[str, ...]
) -> dict[str, tuple[tuple[Request, ...], Request]]:
    """Every way to have a statement run, or to make a view with its rows."""
    path = f"/v1/materialized_view/{PIT}${name}/create"
    # What only Spark would know of the statement is told, so that nobody refuses it for that.
    shape = encode_schema(pa.schema([("name", pa.string())]))
    root = f"{ICEBERG}/namespaces/{PIT.replace('$', '%1F')}/views"
    found: dict[str, tuple[tuple[Request, ...], Request]] = {}
    if dialects[0] == "spark":
        found["source_query"] = ((), post(path, {"kind": "query", "source_query": sql}))
        declared = {"kind": "query", "source_query": sql, "output_schema": shape}
        found["declared query"] = ((), post(path, declared))
        found["query"] = ((), post(path, {"query": sql}))
    for dialect in dialects:
        # Who waits for a runner, where there is none, need not wait long.
        whole = {"sql": sql, "dialect": dialect, "namespace": PIT.split("$")}
        found[f"{dialect} statement"] = ((), post("/v1/sql", whole | {"timeout_seconds": 0.2}))
        body = {
            "kind": "query",
            "source_query": post("", {"sql": sql, "dialect": dialect}).body.decode(),
        }
        found[f"{dialect} query"] = ((), post(path, body))
        made: dict[str, Any] = views.create("", f"i{name}").body
        made["view-version"]["representations"] = [{"type": "sql", "dialect": dialect, "sql": sql}]
        made["view-version"]["default-namespace"] = PIT.split("$")
        over = f"SELECT * FROM {PIT.replace('$', '.')}.i{name}"
        read = post(path, {"kind": "query", "source_query": over})
        found[f"{dialect} Iceberg view"] = ((post(root, made),), read)
    return found


# Expressions that SQL of any engine must not evaluate for us.
EXPRESSIONS = (
    "reflect('java.lang.System', 'getenv', 'PATH')",
    "java_method('java.lang.System', 'exit', 3)",
    "try_reflect('java.lang.System', 'exit', 3)",
    "(SELECT max(name) FROM veil.t)",
    "(SELECT TRANSFORM(name) USING 'x' AS (name string) FROM t)",
    "id IN (SELECT id FROM veil.t)",
    "EXISTS (SELECT 1 FROM text.`/etc/passwd`)",
    "from_xml(name, 'a string', map('rowValidationXSDPath', '/etc/passwd'))",
    "from_avro(cast(name as binary), '', map('avroSchemaUrl', '/etc/passwd'))",
    "from_protobuf(cast(name as binary), 'M', '/etc/passwd')",
    "transform(array(name), x -> reflect('java.lang.System', 'getenv', x))",
    "aggregate(array(1), 0, (a, x) -> java_method('java.lang.System', 'exit', 3))",
    "read_text('/etc/passwd')",
    "pg_sleep(60)",
    "id; DROP TABLE t",
    "id FROM veil.t --",
    "id) FROM veil.t --",
    "id /* /* */ , reflect('java.lang.System', 'exit', 3) /* */ */",
    "input_file_name()",
    "current_user()",
    "nosuchfunction(id)",
    "veil.f(id)",
    "`veil`.`f`(id)",
    "raise_error('x')",
    "ai_query('x', 'y')",
    "{{ id }}",
    "${env:PATH}",
    "@x",
    "?",
    ":name",
)


def _in_expressions(place: Place) -> Iterator[Attack]:
    table = f"/v1/table/{PIT}$t"
    for number, text in enumerate(EXPRESSIONS):
        columns = {"x": text}
        dump = {"base": {"columns": columns}, "source_table": "t"}
        filtered = {"base": {"filter": f"{text} IS NULL"}, "source_table": "t"}
        spec = make_spec("udtf", None, partition_by=text, input_columns=["name"])
        places = {
            "computed": ("add_columns", {"new_columns": [{"name": "c", "computed": text}]}),
            "added": ("add_columns", {"new_columns": [{"name": "c", "expression": text}]}),
            "filter": ("query", {"filter": f"{text} IS NULL", "k": 1}),
            "alias": ("query", {"columns": {"column_aliases": columns}, "k": 1}),
            "predicate": ("count_rows", {"predicate": f"{text} IS NULL"}),
            "update": ("update", {"updates": [["name", text]]}),
            "delete": ("delete", {"predicate": f"{text} IS NULL"}),
            "where": ("explain_backfill", {"column": "c", "where": f"{text} IS NULL"}),
        }
        for where, (operation, body) in places.items():
            request = post(f"{table}/{operation}", body)
            yield Attack(FAMILY, f"{where}: {text[:60]}", OWNER, request, REFUSED)
        for where, view in {
            "dump": {"kind": "query", "source_query": post("", dump).body.decode()},
            "dump's filter": {"kind": "query", "source_query": post("", filtered).body.decode()},
            "partition": {
                "kind": "udtf",
                "source_query": f"SELECT * FROM {T}",
                "udtf_spec": spec,
            },
        }.items():
            request = post(f"/v1/materialized_view/{PIT}$e{number}/create", view)
            yield Attack(FAMILY, f"{where}: {text[:60]}", OWNER, request, REFUSED)
