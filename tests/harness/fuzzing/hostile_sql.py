"""SQL that must never reach Spark, and a canary that tells whether any of it ran.

`{canary}` stands for a file that an attack would make, and for a property of the JVM of that name;
`{secret}` for a file that it would read, and `{folder}` for the folder of both.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.jobs.spark.tasks import Engine

SCRIPT = "SELECT TRANSFORM(id) USING 'touch {canary}' AS (x string) FROM t"
JAVA = "'java.lang.System', 'setProperty', '{canary}', 'x'"
XML = "SELECT from_xml('<a/>', 'a int', "
FILE = "text.`{secret}`"

STATEMENTS = {
    # A program for the rows, wherever a query can be.
    "script": SCRIPT,
    "script in a subquery": f"SELECT x FROM ({SCRIPT}) q",
    "script in distinct": f"SELECT DISTINCT x FROM ({SCRIPT}) q",
    "script in a cte": f"WITH q AS ({SCRIPT}) SELECT x FROM q",
    "script in a nested cte": f"WITH q AS (WITH r AS ({SCRIPT}) SELECT * FROM r) SELECT x FROM q",
    "script in exists": f"SELECT id FROM t WHERE EXISTS ({SCRIPT})",
    "script in in": f"SELECT id FROM t WHERE CAST(id AS string) IN ({SCRIPT})",
    "script as a value": f"SELECT ({SCRIPT}) AS x FROM t",
    "script in an argument": f"SELECT upper(concat(({SCRIPT}), 'a')) AS x FROM t",
    "script in lateral": f"SELECT * FROM t, LATERAL ({SCRIPT}) q",
    "script in a union": f"SELECT CAST(id AS string) FROM t UNION ALL {SCRIPT}",
    "script in order by": f"SELECT id FROM t ORDER BY ({SCRIPT})",
    "script in a pipe": f"FROM ({SCRIPT}) |> SELECT x",
    "script by map": SCRIPT.replace("SELECT TRANSFORM(id)", "FROM t MAP id").removesuffix(
        " FROM t"
    ),
    "script in a comment": "SELECT /* /*+ */ TRANSFORM(id) USING 'touch {canary}' AS (x string) "
    "FROM t -- */ 1",
    # Java by its name.
    "reflect": f"SELECT reflect({JAVA}) AS x FROM t",
    "java_method": f"SELECT java_method({JAVA}) AS x FROM t",
    "try_reflect": f"SELECT try_reflect({JAVA}) AS x FROM t",
    # It would fetch what the document type names.
    "xpath": "SELECT xpath_string('<a/>', 'a') AS x FROM t",
    "reflect in quotes": f"SELECT `ReFlect`({JAVA}) AS x FROM t",
    "reflect with its schema": f"SELECT system.builtin.reflect({JAVA}) AS x FROM t",
    "reflect in a lambda": f"SELECT transform(array(1), e -> reflect({JAVA})) AS x FROM t",
    "reflect in values": f"SELECT * FROM VALUES (reflect({JAVA})) AS v(x)",
    "reflect in a window": f"SELECT max(id) OVER (PARTITION BY reflect({JAVA})) AS x FROM t",
    "reflect in a table function": f"SELECT * FROM explode(array(reflect({JAVA})))",
    "reflect in a lateral view": f"SELECT y FROM t LATERAL VIEW stack(1, reflect({JAVA})) AS y",
    "reflect in a join": f"SELECT a.id FROM t a JOIN t b ON reflect({JAVA}) = 'x'",
    "reflect in a pivot": f"SELECT * FROM t PIVOT (max(reflect({JAVA})) FOR id IN (1, 2))",
    "reflect in identifier": f"SELECT IDENTIFIER('ref' || 'lect')({JAVA}) AS x FROM t",
    # Files, and tables that are not the view's.
    "text": f"SELECT * FROM {FILE}",
    "csv": "SELECT * FROM csv.`{secret}`",
    "parquet": "SELECT * FROM parquet.`{secret}`",
    "json in a cte": "WITH q AS (SELECT * FROM json.`{secret}`) SELECT * FROM q",
    "binaryFile in exists": "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM binaryFile.`{secret}`)",
    "jdbc": "SELECT * FROM jdbc.`{secret}`",
    "text by identifier": "SELECT * FROM IDENTIFIER('text.`{secret}`')",
    "text by parts": "SELECT * FROM IDENTIFIER('te' || 'xt.`{secret}`')",
    "text by table": f"TABLE {FILE}",
    "a table of the default database": "SELECT * FROM default.t",
    "a table of the session catalog": "SELECT * FROM spark_catalog.default.t",
    "a catalog": "SELECT * FROM other.db.t",
    "a global view": "SELECT * FROM global_temp.t",
    "a table": "SELECT * FROM elsewhere",
    "options of a table": "SELECT * FROM t WITH (`path` = '{secret}')",
    "time travel": "SELECT * FROM t VERSION AS OF 1",
    "a stream": "SELECT * FROM STREAM t",
    "a column of a sample": "SELECT id FROM t TABLESAMPLE (50 PERCENT)",
    # Functions that read files, and those that nobody brought.
    "read_files": "SELECT * FROM read_files('{secret}')",
    "logs of workers": "SELECT * FROM python_worker_logs()",
    "a function of nobody": "SELECT mine(id) FROM t",
    "a function of a database": "SELECT default.mine(id) FROM t",
    "xml by a schema file": f"{XML}map('rowValidationXSDPath', '{{secret}}'))",
    "xml by another case": f"{XML}map('ROWVALIDATIONXSDPATH', '{{secret}}'))",
    "xml by a made option": f"{XML}map(concat('rowValidation', 'XSDPath'), '{{secret}}'))",
    "xml by a column": f"{XML}m) FROM (SELECT map('mode', 'x') AS m)",
    "the schema of xml": "SELECT schema_of_xml('<a/>', map('rowValidationXSDPath', '{secret}'))",
    "avro by an address": "SELECT from_avro(id, 'a', map('avroSchemaUrl', '{secret}')) FROM t",
    "protobuf by a file": "SELECT from_protobuf(id, 'a', '{secret}', map()) FROM t",
    "to protobuf": "SELECT to_protobuf(struct(id), 'a', '{secret}', map()) FROM t",
    # What is not the rows' own.
    "now": "SELECT now() FROM t",
    "today without brackets": "SELECT current_date FROM t",
    "the user": "SELECT user FROM t",
    "a random number": "SELECT rand() FROM t",
    "a parameter": "SELECT :x FROM t",
    "a place": "SELECT ? FROM t",
    # Commands.
    "set": "SET spark.sql.runSQLOnFiles = true",
    "reset": "RESET",
    "set a variable": "SET VAR x = 1",
    "declare a variable": "DECLARE VARIABLE x INT DEFAULT 1",
    "add a jar": "ADD JAR '{secret}'",
    "list jars": "LIST JARS",
    "a java function": "CREATE TEMPORARY FUNCTION mine AS 'java.lang.String' USING JAR '{secret}'",
    "a sql function": "CREATE TEMPORARY FUNCTION mine() RETURNS INT RETURN 1",
    "a view": f"CREATE TEMPORARY VIEW t AS SELECT * FROM {FILE}",
    "a view over files": "CREATE TEMPORARY VIEW t USING text OPTIONS (path '{secret}')",
    "a table made": "CREATE TABLE made USING parquet LOCATION '{folder}/made' AS SELECT * FROM t",
    "a database": "CREATE DATABASE made LOCATION '{canary}'",
    "insert": "INSERT INTO t VALUES (1)",
    "insert into a folder": "INSERT OVERWRITE DIRECTORY '{canary}' USING csv SELECT id FROM t",
    "insert with from": "FROM t INSERT OVERWRITE DIRECTORY '{canary}' USING csv SELECT id",
    "insert with a cte": "WITH q AS (SELECT 1) INSERT OVERWRITE DIRECTORY '{canary}' USING csv "
    "SELECT * FROM q",
    "load": "LOAD DATA LOCAL INPATH '{secret}' INTO TABLE t",
    "show": "SHOW TABLES",
    "describe": "DESCRIBE t",
    "explain": "EXPLAIN SELECT 1",
    "cache": "CACHE TABLE made AS SELECT * FROM t",
    "use": "USE DATABASE default",
    "set catalog": "SET CATALOG spark_catalog",
    "refresh": "REFRESH '{secret}'",
    "analyze": "ANALYZE TABLE t COMPUTE STATISTICS",
    "truncate": "TRUNCATE TABLE t",
    "drop": "DROP VIEW t",
    "call": "CALL spark_catalog.default.p()",
    "execute immediate": f"EXECUTE IMMEDIATE 'SELECT * FROM {FILE}'",
    "a script of statements": "BEGIN SELECT 1; SET spark.sql.runSQLOnFiles = true; END",
}
EXPRESSIONS = {
    "reflect": f"reflect({JAVA})",
    "a script": f"EXISTS ({SCRIPT})",
    "a subquery": "(SELECT max(id) FROM t)",
    "a file": f"id IN (SELECT 1 FROM {FILE})",
    "the time": "current_date > DATE '2020-01-01'",
    "an alias that goes on": f"1 AS a, reflect({JAVA})",
    "a function of nobody": "mine(id)",
}


@dataclass(frozen=True)
class Canary:
    """Whether anything of an attack has run."""

    folder: Path
    engine: Engine

    @property
    def file(self) -> Path:
        return self.folder / "canary"

    def arm(self, text: str) -> str:
        """The attack with its places filled in."""
        secret = self.folder / "secret.txt"
        secret.write_text("a secret\n")
        filled = text.replace("{canary}", str(self.file)).replace("{secret}", str(secret))
        return filled.replace("{folder}", str(self.folder))

    def signs(self) -> Iterator[str]:
        """What an attack has left behind."""
        yield from (path.name for path in self.folder.iterdir() if path.name != "secret.txt")
        if not self.engine.is_connect:
            system: Any = self.engine.spark._jvm.java.lang.System
            if system.getProperty(str(self.file)) is not None:
                yield "property"
