"""Noisy queries: comments, quotes, letters that look like others."""

import random

# Words of queries that are right, so that noise can come between any two.
QUERIES = [
    "SELECT id , upper ( `a b` ) AS n , 'x' AS s FROM docs WHERE id > 1 AND s LIKE 'a%'",
    "SELECT d . id , o . label FROM docs d JOIN other o ON d . id = o . id ORDER BY id LIMIT 3",
    "SELECT name , count ( * ) AS c FROM ( SELECT DISTINCT name FROM docs ) q GROUP BY name",
    "WITH c AS ( SELECT id FROM docs ) SELECT id , 'it''s' AS t FROM c UNION ALL SELECT 1 , \"b\"",
    "SELECT transform ( words , x -> x ) AS t , words [ 0 ] AS w , 1.5 AS f , X'1F' AS h FROM docs",
    "SELECT CASE WHEN id = 1 THEN 'a\\'b' ELSE r'\\d' END AS k FROM docs",
]
COMMENTS = [
    "/* a */", "/* /*+ */", "/* /* */", "/* /* */ */", "/**/", "/***/", "/*/ */", "/*", "*/",
    "/*+", "/*+ BROADCAST(docs) */", "/*+ ' */", "/*+ */", "/* ' */", "/* \" */", "/* ` */",
    "-- a\n", "-- \\\n", "--\n", "-- '\n", "-- a\r", "-- a\r\n", "-- \u2028 a\n", "-- \\\r\n",
    "--", "//", "# a\n", "{# a #}", "{{ a }}", "--+ a\n", "/* -- */", "-- /*\n", "/*! a */",
    "/* \\*/",
]  # fmt: skip
QUOTES = [
    "'", '"', "`", "''", '""', "``", "\\", "\\'", "'a'", "'a' 'b'", "'a''b'", "\"a\"", "'\\''",
    "'\\\\'", "'\\u0027'", "'\\u0041'", "'\\U0001F600'", "'\\101'", "'\\0'", "'\\x'", "'\\%'",
    "r'\\'", "R\"a\"", "N'a'", "X'1'", "x 'ff'", "b'1'", "'a\nb'", "'a\tb'", "$$a$$", "$a$",
    "'${env:HOME}'", "`${env:HOME}`", "'--'", "'/*'", "'*/'", "`/*`", "`--`", "'\u200b'", "`a``b`",
    "'\\Z'", "'\\b'", "'\\_'", "'\\u00'", "'\\400'", "'\x00'", "E'a'", "_utf8'a'", "'\\\n'",
    "'\U0001f600'",
]  # fmt: skip
SPACES = [
    " ", "\t", "\n", "\r", "\r\n", "\f", "\v", "\x00", "\x1c", "\x85", "\u00a0", "\u1680",
    "\u2003", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000", "\ufeff", "\u200b", "\u200d",
    "\u2060", "\u180e", "\u202e", "\u2066", "\u2069", "\u200f", "\u00ad", "\u034f", "\ue000",
    "\ud7ff", "\U000e0020",
]  # fmt: skip
WORDS = [
    "\uff33\uff25\uff2c\uff25\uff23\uff34", "\u017felect", "\ufb00", "\u0130d", "na\u00efve", "K",
    "\u00e9", "\uff11", "\u0663", "\u2167", ";", "; SELECT 1", "|>", "?", "@v1", ":a",
    "${spark.app.name}", "://", "s3://a/b", "1e5L", "1.", ".5", "1.e5", "0x1F", "1_000", "@", "!",
    "==", "!>", "<=>", ">>", "::int", "=>", "->", "^", "~", "&&", "||", ",", "(", ")", "[", "]",
    "{", "}", "TRANSFORM ( name ) USING 'sh' AS ( name string )", "USING 'cat'",
    "MAP name USING 'sh'", ", reflect ( 'a' , 'b' ) AS r", ", `java_method` ( 'a' )",
    ", spark_catalog . reflect ( 'a' )", ", text . `/etc/passwd`", "JOIN text . `/etc/passwd`",
    "FROM csv . `a`", ", TABLE ( docs )", ", range ( 3 )", "IDENTIFIER ( 'docs' )",
    "VERSION AS OF 1", "TABLESAMPLE ( 3 ROWS )", "TIMESTAMP AS OF '2020-01-01'", "INTO x",
    "PIVOT ( a )", "LATERAL VIEW reflect ( 'a' ) t", "BEGIN",
    ", from_xml ( a , 'b int' , map ( 'rowValidationXSDPath' , 'x' ) ) AS x", "WITH TIES", "AS",
    "ALL", "UNION SELECT 1", "EXECUTE IMMEDIATE 'x'", "SET a = 1", "DECLARE x INT",
    "FOR SYSTEM_TIME AS OF 1", "CURRENT_USER", "NATURAL", "WATERMARK", "STREAM", "INSERT",
    "\u0000", "\\u0053ELECT", "NULL", "x",
]  # fmt: skip
# What changes nothing, so that more than the first words of a text are reached.
HARMLESS = ["/* a */", "-- a\n", "\n", "\t\r\n", "/**/", "/* ' */", "-- '\n", "/* -- */", "-- /*\n"]
KINDS = [COMMENTS, QUOTES, SPACES, WORDS, HARMLESS, HARMLESS, HARMLESS]


def make_noise(chance: random.Random) -> str:
    """A query with one to four pieces of noise, sometimes without spaces around them."""
    words = chance.choice(QUERIES).split(" ")
    for _ in range(chance.choice([1, 1, 2, 2, 3, 4])):
        piece = chance.choice(chance.choice(KINDS))
        if chance.random() < 0.2:
            piece += chance.choice(chance.choice(KINDS))
        at = chance.randrange(len(words) + 1)
        if chance.random() < 0.3 and len(words) > 4:
            _shuffle(chance, words)
            continue
        if chance.random() < 0.4 and at < len(words):
            cut = chance.randrange(len(words[at]) + 1)
            words[at] = words[at][:cut] + piece + words[at][cut:]
        else:
            words.insert(at, piece)
    return " ".join(words)


def _shuffle(chance: random.Random, words: list[str]) -> None:
    """Leave a word out, have it twice, or in another place."""
    word = words.pop(chance.randrange(len(words)))
    for _ in range(chance.choice([0, 0, 1, 2])):
        words.insert(chance.randrange(len(words) + 1), word)
