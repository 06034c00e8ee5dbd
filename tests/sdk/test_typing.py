"""A user's program is checked by mypy in strict mode, and its mistakes are found."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import penstock

USER = """
from collections.abc import Iterator
from typing import TypedDict

import penstock


class Chunk(TypedDict):
    chunk: str
    start: int


@penstock.chunker
def split(text: str) -> Iterator[Chunk]:
    yield {"chunk": text, "start": 0}


@penstock.udf(data_type=penstock.vector(2), retries=3, timeout=10.0)
def embed(text: str) -> list[float]:
    return [float(len(text)), 1.0]


@penstock.udf(data_type=penstock.vector(2))
class Model:
    def __call__(self, text: str) -> list[float]:
        return [1.0, 2.0]


def main() -> None:
    with penstock.connect("http://localhost:2333", api_key="key") as lake:
        docs: penstock.Table = lake.create_table("docs", [{"id": 1, "text": "a"}], if_exists="ok")
        docs.add_column("vector", embed).add_column("other", Model, inputs=["text"])
        job: penstock.Job = docs.backfill("vector", wait=False)
        calls: int = job.wait(timeout=60).function_calls
        plan: penstock.Plan = docs.explain_backfill("vector")
        view: penstock.View = lake.create_view(
            "chunks", docs.select("id").where("id > 1"), chunker=split
        )
        stale: bool = view.freshness().stale
        found: list[dict[str, object]] = docs.search([1.0, 2.0]).limit(3).to_list()
        print(calls, plan.mode, stale, found, embed("a")[0] + 1.0)
        print(next(split("a"))["chunk"].upper())
    try:
        lake.table("nothing")
    except penstock.errors.TableNotFound as error:
        print(error.message)
"""
WRONG = {
    "embed(5)": "arg-type",
    'embed("a").upper()': "attr-defined",
    'penstock.connect("x").tabel("a")': "attr-defined",
    'penstock.connect("x").create_table("t", [], if_exists="overwrite")': "arg-type",
    "penstock.nothing": "attr-defined",
    "penstock.udf(retry=3)": "call-overload",
    'penstock.connect("x").table("t").backfill("c", forse=True)': "call-arg",
}


def check(folder: Path, *options: str) -> list[tuple[int, str]]:
    """The lines with mistakes, and what kind they are of."""
    (folder / "user.py").write_text(f"{USER}\n\n" + "\n".join(WRONG) + "\n")
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(folder / "cache")]
    done = subprocess.run(
        [*command, "--no-error-summary", *options, "user.py"],
        cwd=folder,
        env={**os.environ, "MYPYPATH": str(Path(penstock.__file__).parent.parent)},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if ": note: " not in line]
    assert all(line.startswith("user.py:") for line in lines), done.stdout + done.stderr
    return [(int(line.split(":")[1]), line.rpartition("[")[2].rstrip("]")) for line in lines]


FIRST = USER.count("\n") + 3
EXPECTED = [(FIRST + n, code) for n, code in enumerate(WRONG.values())]


def test_a_users_program_is_typed_with_the_plain_package(tmp_path: Path) -> None:
    assert check(tmp_path, "--no-site-packages", "--follow-imports=silent") == EXPECTED


@pytest.mark.slow
def test_a_users_program_is_typed_with_all_packages(tmp_path: Path) -> None:
    assert check(tmp_path, "--follow-imports=silent") == EXPECTED
