"""The plain package: what works without pyarrow, and what says that it needs it."""

import subprocess
import sys

import penstock
from tests.harness.processes.servers import Server

PROGRAM = """
import sys
for name in ("pyarrow", "pandas", "polars", "lance", "numpy"):
    sys.modules[name] = None  # as if it were not installed
import penstock

lake = penstock.connect(sys.argv[1])
docs = lake.table(sys.argv[2])

@penstock.udf
def size(text: str) -> int:
    return len(text)

docs.add_column("size", size).add_computed("twice", "id * 2")
job = docs.backfill("size", wait=False)
print(docs, docs.version, len(docs), job.status, docs.explain_backfill("twice").mode)
view = lake.create_view(docs.id[0] + ".v", docs.select("id").where("id > 1"))
print(view.explain().mode, view.freshness.stale, lake.views(docs.id[0]))
for ask in (docs.to_arrow, lambda: docs.append([{"id": 1}]), docs.lance):
    try:
        ask()
    except penstock.errors.Unsupported as error:
        print(error.message, "-", error.detail)
"""


def test_what_works_without_arrow(server: Server, table: penstock.Table) -> None:
    command = [sys.executable, "-c", PROGRAM, server.url, table.name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)
    space = table.id[0]
    needs_arrow = (
        "reading and writing rows needs the Python package pyarrow - pip install 'penstock[client]'"
    )
    assert done.stdout.splitlines() == [
        f"<Table {table.name}, version 3, 3 rows> 3 3 QUEUED full",
        f"full True ['{space}.v']",
        needs_arrow,
        needs_arrow,
        "lance() needs the Python package lance - pip install 'pylance'",
    ], done.stderr
