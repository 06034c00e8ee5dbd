"""No code goes past the door: nothing else gives a text to Spark's interpreter."""

import ast
from collections.abc import Iterator
from pathlib import Path

import penstock

ROOT = Path(penstock.__file__).parent
FOLDERS = ("jobs", "runner")
# Calls that have Spark read a text, and the ways to its JVM by which anything can be had.
TEXTS = (
    *("sql", "expr", "selectExpr", "parsePlan", "parseExpression"),
    *("createTempView", "createOrReplaceTempView"),
    *("createGlobalTempView", "createOrReplaceGlobalTempView"),
    *("registerJavaFunction", "registerJavaUDAF", "_jdf", "_jsparkSession", "_jvm"),
)
DOOR = "jobs/spark/gate"
# What holds SQL that was checked.
CHECKED = ("definition", "definition.keys", "spec", "spec.statement")
# They take a text in place of a column; of ours they get Arrow's arrays only.
FILTERS = ("filter", "where")
# Where a session gets its conf, which decides how texts are read.
CONF = "jobs/spark/sql_sessions.py"


def find_uses(tree: ast.AST) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and is_text(node):
            yield node.attr, node.lineno
        if isinstance(node, ast.ImportFrom) and any(each.name in TEXTS for each in node.names):
            yield "import", node.lineno
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            called = ast.unparse(node.func)
            if called.endswith("conf.set"):
                yield "conf.set", node.lineno
            is_filter = node.func.attr in FILTERS and not called.startswith(("np.", "pc."))
            if is_filter and any(not is_array(each) for each in node.args):
                yield node.func.attr, node.lineno


def is_text(node: ast.Attribute) -> bool:
    """The checked text of a view or a statement, such as `definition.sql`, is data."""
    is_data = node.attr == "sql" and ast.unparse(node.value).endswith(CHECKED)
    return node.attr in TEXTS and not is_data


def is_array(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func).startswith(("pa.", "pc."))


def find_all(folder: Path) -> dict[str, list[tuple[str, int]]]:
    files = [path for name in FOLDERS for path in (folder / name).rglob("*.py")]
    found = {
        str(path.relative_to(folder)): list(find_uses(ast.parse(path.read_text())))
        for path in files
    }
    return {name: uses for name, uses in found.items() if uses}


def test_only_the_door_gives_texts_to_spark() -> None:
    found = find_all(ROOT)
    assert {name for name in found if not name.startswith(DOOR)} == {CONF}
    assert {use for use, _ in found[CONF]} == {"conf.set"}


def test_a_way_past_the_door_would_be_seen(tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir()
    for number, text in enumerate(
        ["spark.sql(x)", "f.selectExpr(x)", "f.filter(x)", "from y import expr", "f._jdf.z(x)"]
    ):
        (tmp_path / "jobs" / f"m{number}.py").write_text(text)
    assert len(find_all(tmp_path)) == 5
