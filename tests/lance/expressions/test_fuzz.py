"""Random expressions that are let in, evaluated by Lance in a process with a limit of memory."""

import collections
import random
import resource
import subprocess
import sys
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from penstock.errors import InvalidRequest
from penstock.lance.expressions import functions, growth
from penstock.lance.expressions.check import check_expression

MEMORY = 4 * 2**30
ROWS = 8_192
COLUMNS = {
    "i": pa.array([0, 1, -1, 2**63 - 1, -(2**63), None, 7, 8] * (ROWS // 8)),
    "x": pa.array([0.0, -0.0, float("nan"), float("inf"), 1e308, None, 1.5, 2.0] * (ROWS // 8)),
    "s": pa.array(["", "a", "äöü€😀", "x" * 200, None, "2020-01-01", "1", "%"] * (ROWS // 8)),
    "y": pa.array([b"", b"\xff\xfe", b"a" * 50, None] * (ROWS // 4)),
    "l": pa.array([[], [1, 2, 3], None, [None]] * (ROWS // 4), pa.list_(pa.int64())),
    "t": pa.array([0, 2**55, -(2**55), None] * (ROWS // 4), pa.timestamp("us")),
    "st": pa.array([{"a": 1, "c": "z"}] * ROWS),
}
CONSTANTS = (
    *("0", "1", "-1", "9223372036854775807", "- 9223372036854775808", "3", "1.5", "NULL", "true"),
    *("''", "'a'", "'%Y-%m'", "'day'", "'1 day'", "'[a-z]+'", "'g'", "[1, 2]", "X'00ff'", "'hex'"),
)
OPERATORS = ("+", "-", "*", "/", "%", "||", "=", "<", "<<", "AND", "LIKE", "BETWEEN 1 AND")


def make(chance: random.Random, depth: int) -> str:
    """An expression, of sense or not."""
    rules = functions.FIXED | functions.SUM | functions.TIMES.keys() | growth.RULES.keys()
    if depth == 0:
        return chance.choice((*COLUMNS, *COLUMNS, *CONSTANTS))
    if chance.random() < 0.25:
        left, right = make(chance, depth - 1), make(chance, depth - 1)
        return f"({left} {chance.choice(OPERATORS)} {right})"
    count = chance.choice((0, 1, 1, 2, 2, 3, 4))
    parts = [make(chance, depth - 1) for _ in range(count)]
    return f"{chance.choice(sorted(rules))}({', '.join(parts)})"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_no_expression_that_is_let_in_ends_the_process(tmp_path: Path, seed: int) -> None:
    lance.write_dataset(pa.table(COLUMNS), tmp_path / "t.lance")
    table = str(tmp_path / "t.lance")
    command = [sys.executable, "-m", "tests.lance.expressions.test_fuzz", table, str(seed)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr[-2000:]
    assert "PanicException" not in run.stdout
    assert "fine" in run.stdout


def evaluate(path: str, seed: int, count: int = 3_000) -> None:
    """Evaluate random expressions, and print what came of them."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    dataset, chance = lance.dataset(path), random.Random(seed)
    seen = collections.Counter[str]()
    for _ in range(count):
        try:
            sql = check_expression("column", make(chance, chance.choice((1, 1, 2, 3))))
        except InvalidRequest:
            continue
        print(sql, file=sys.stderr, flush=True)
        try:
            dataset.scanner(columns={"a": sql}, with_row_address=True).to_table()
            seen["fine"] += 1
        except BaseException as error:  # A panic is outside Exception.
            seen[type(error).__name__] += 1
    print(dict(seen))


if __name__ == "__main__":
    evaluate(sys.argv[1], int(sys.argv[2]))
