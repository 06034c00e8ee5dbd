"""The text that Spark is given means to Spark what its author wrote, or there is none."""

import re

import pytest

from penstock.jobs.spark.tasks import Engine
from penstock.sql.parsing.guard import Refused
from penstock.sql.spark.text.checked_sql import write_statement
from penstock.sql.spark.text.keywords import KEYWORDS
from penstock.sql.spark.text.lexemes import Kind
from penstock.sql.spark.text.plain import PlainStatement
from tests.harness.jobs.spark_plans import lex, list_keywords, parse

# A statement begins where a line is not indented.
HONEST = re.split(
    r"\n(?=\S)",
    r'''
SELECT name, d.date, count(*) AS value FROM docs d JOIN other USING (id) GROUP BY ALL ORDER BY
  ALL
SELECT 'it''s' AS a, "a ""b""" AS b, 'x' 'y' AS c, r'\d+' AS d, '\u0041\x\%\_\\' AS e FROM docs
SELECT 'naïve 😀' AS a, `größe` AS b, `a``b` AS c, '\101\n\t\r' AS d, X'1f' AS e, x '1' AS f FROM
  docs
SELECT 1, 1., .5, 1.5e3, 1e-5, 5L, 5s, 5y, 1.5bd, 2f, 2d, -1 - -2, +3, 1E5 FROM docs
SELECT a == b, a != b, a <> b, a !> b, a !< b, a <=> b, a || b, a | b & c ^ ~d FROM docs
SELECT a >> 2, a << 1, CAST(NULL AS ARRAY<ARRAY<INT>>) AS x, CAST(b AS map<int,int>) FROM docs
SELECT dateadd(DAY, 1, a), timestampdiff(MONTH, a, b), extract(YEAR FROM a), date_add(a, 1) FROM
  docs
SELECT trim(BOTH ' ' FROM a), substring(a FROM 2 FOR 3), position('a' IN b), overlay(a PLACING
  'x' FROM 2) FROM docs
SELECT INTERVAL '1' DAY, INTERVAL 3 MONTHS, INTERVAL '1-2' YEAR TO MONTH, DATE '2020-01-01',
  TIMESTAMP'2020-01-01 00:00:00' FROM docs
SELECT transform(a, x -> x + 1), aggregate(a, 0, (x, y) -> x+y), filter(a, x -> x > 1), map('a',
  1) FROM docs
SELECT sum(a) FILTER (WHERE a > 1), percentile_cont(0.5) WITHIN GROUP (ORDER BY a), first(a)
  IGNORE NULLS FROM docs
SELECT rank() OVER (PARTITION BY a ORDER BY b DESC NULLS LAST), lag(a, 1) OVER w FROM docs
  WINDOW w AS (ORDER BY a)
SELECT sum(a) OVER (ORDER BY b ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS row FROM docs
SELECT a FROM docs WHERE a LIKE 'x%' ESCAPE '!' AND b RLIKE 'a' OR c NOT IN (1, 2) AND d BETWEEN
  1 AND 2
SELECT a FROM docs WHERE a LIKE ANY ('x', 'y') AND b IS NOT DISTINCT FROM docs.c AND NOT EXISTS
  (SELECT 1 FROM other)
SELECT CASE a WHEN 1 THEN 'x' ELSE 'y' END AS `case`, IF(a, b, c), CASE WHEN a THEN 1 END AS end
  FROM docs
SELECT a, e FROM docs LATERAL VIEW OUTER explode(words) t AS e
SELECT w.pos, w.col FROM docs LATERAL VIEW posexplode(words) w AS pos, col
WITH c AS (SELECT id FROM docs), d(x) AS (SELECT id FROM c) SELECT x FROM d UNION ALL SELECT id
  FROM c
SELECT id FROM docs EXCEPT SELECT id FROM other INTERSECT SELECT id FROM more MINUS SELECT 1
SELECT a, count(*) FROM docs GROUP BY GROUPING SETS ((a), ()) HAVING count(*) > 1
SELECT a, b, grouping(a) FROM docs GROUP BY ROLLUP (a, b)
SELECT a, b FROM docs GROUP BY a, b WITH CUBE
SELECT * EXCEPT (a) FROM docs
SELECT d.*, place.x, place.`y z`.w, words[0], m['k'].v, (a, b).col1 FROM shop.docs AS d
SELECT a FROM docs d LEFT OUTER JOIN other o ON d.id = o.id CROSS JOIN more LEFT ANTI JOIN x ON
  true
SELECT a FROM docs NATURAL FULL JOIN other, LATERAL (SELECT 1 AS one) AS l
SELECT a FROM VALUES (1, 'a'), (2, 'b') AS t(a, b) WHERE a IN (SELECT id FROM docs)
SELECT CAST(a AS STRUCT<name: STRING, b: DECIMAL(10, 2)>) AS s, a::bigint AS t, try_cast(b AS
  INT) FROM docs
SELECT DISTINCT a AS name, b AS key, c AS user, d AS type, e AS x, f AS data, g AS year FROM
  docs SORT BY name
SELECT count(DISTINCT a, b), any(c), every(d), some(e), left(a, 1), right(b, 2), replace(a, 'b',
  'c') FROM docs
SELECT get_json_object(a, '$.b[0].c'), from_json(a, 'x INT, name STRING', map('mode',
  'FAILFAST')) FROM docs
SELECT a COLLATE UTF8_LCASE AS c, to_json(named_struct('a', 1, 'b', b)) FROM docs ORDER BY a
  DESC LIMIT 3;
SELECT /*+ BROADCAST(o), REPARTITION(3) */ a /* one */ FROM docs -- two
FROM docs SELECT a WHERE a > 1
SELECT a NOT LIKE 'b', ! c, NOT d, a DIV 2, a % 3, mod(a, 2) FROM docs QUALIFY row_number() OVER
  (ORDER BY a) = 1
SELECT max_by(a, b), approx_percentile(a, 0.5), struct(a AS x, b).x, array(1, 2)[0], map_keys(m)
  FROM docs
'''.strip(),
)


def write(sql: str) -> PlainStatement | None:
    try:
        return write_statement(sql)[0]
    except Refused:
        return None


def split_shifts(lexemes: list[str]) -> list[str]:
    """Without >>, which Spark takes for two signs at the end of a type."""
    return [each for lexeme in lexemes for each in (lexeme if lexeme == ">>" else [lexeme])]


def list_written(plain: PlainStatement) -> list[str]:
    """Its lexemes as Spark counts them: X'1F' is two."""
    found: list[str] = []
    for lexeme in plain.lexemes:
        text = lexeme.write()
        found += ["X", text[1:]] if lexeme.kind is Kind.HEX else [text]
    return split_shifts(found)


@pytest.mark.parametrize("sql", HONEST)
def test_honest_sql_is_written_so_that_spark_reads_the_same(engine: Engine, sql: str) -> None:
    written = write_statement(sql)[0]
    assert parse(engine, sql) is not None
    assert parse(engine, written.text) == parse(engine, sql)
    assert split_shifts(lex(engine, written.text)) == list_written(written)
    assert write_statement(written.text)[0].text == written.text


def test_the_words_of_the_grammar_are_sparks(engine: Engine) -> None:
    two_spellings = {"rlike", "regexp", "temporary", "temp"}
    assert list_keywords(engine) - {"x"} | two_spellings == KEYWORDS
