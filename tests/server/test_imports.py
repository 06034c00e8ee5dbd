"""A server that is only asked for metadata does not load what only data needs."""

import subprocess
import sys

HEAVY = ("lance", "pyarrow", "pydantic", "lance_namespace", "numpy", "pyspark")


def test_starting_the_server_loads_no_data_libraries() -> None:
    code = (
        "import sys, penstock.server.serve; "
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=110
    )
    assert found.stdout.strip() == "[]"
