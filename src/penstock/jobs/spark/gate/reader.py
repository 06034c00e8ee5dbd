"""Read Spark's plans as plain data: what its parser read, and what its analyzer made of that."""

import threading
from collections.abc import Iterator, Sequence
from importlib.resources import files
from typing import Any, NamedTuple

from msgspec import DecodeError, json

from penstock.errors import InvalidRequest, QueryRefused

PREFIX = "org.apache.spark.sql."
BETWEEN = "\0"
# A JVM that was replaced is not asked again.
MOST_READERS = 8
_readers: "list[tuple[Any, Any]]" = []
_lock = threading.Lock()


class Node(NamedTuple):
    """A node of a plan or of an expression; all nodes of a plan are numbered from the top."""

    id: int
    parent: int
    # The class in Spark, without the package that nearly all have.
    kind: str
    # Strings among its arguments: the argument's name, a string, a name, a string, and so on.
    facts: tuple[str, ...]

    def get(self, field: str) -> tuple[str, ...]:
        """All strings of one argument."""
        return tuple(text for name, text in self._pairs() if name == field)

    def _pairs(self) -> Iterator[tuple[str, str]]:
        return zip(self.facts[::2], self.facts[1::2], strict=True)


def prepare(spark: Any) -> None:
    """Compile the reader before it is needed."""
    _reader(spark)


def parse(spark: Any, sql: str) -> Any:
    """Parse a statement to an object of the JVM; nothing is looked up."""
    return _reader(spark).parse(spark._jsparkSession, sql)


def read_plan(spark: Any, plan: Any) -> list[Node]:
    """Every node of a plan and of its subqueries; `plan` is the JVM's object."""
    return _decode(_reader(spark).read(plan))


def read_expressions(spark: Any, texts: Sequence[str]) -> list[Node]:
    """Every node of the expressions that Spark parses from these texts."""
    if any(BETWEEN in text for text in texts):
        raise InvalidRequest("an expression has a NUL character in it", detail="leave it out")
    found = _reader(spark).readExpressions(spark._jsparkSession, BETWEEN.join(texts))
    return _decode(found)


def _decode(text: str | None) -> list[Node]:
    if text is None:
        raise QueryRefused(
            "the runner refuses the SQL of the view: it is nested too deeply",
            detail="divide it into several views",
        )
    try:
        found = json.decode(text, type=list[Node])
    except DecodeError as error:
        # Half of a surrogate pair, for example: Spark would read something else than we do.
        raise InvalidRequest(f"Spark's plan cannot be read: {error}") from error
    return [node._replace(kind=node.kind.removeprefix(PREFIX)) for node in found]


def _reader(spark: Any) -> Any:
    """The reader in the session's JVM; it is compiled once for each JVM."""
    jvm = spark._jvm
    with _lock:
        for known, reader in _readers:
            if known is jvm:
                return reader
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
        compiler.cook(files(__package__).joinpath("PlanReader.java").read_text())
        reader = compiler.getClassLoader().loadClass("PlanReader").newInstance()
        # Py4J confuses classes of the same name, so it is never compiled twice in one JVM.
        _readers[MOST_READERS:] = []
        _readers.insert(0, (jvm, reader))
        return reader
