"""Child processes of the benchmark: Python modules that see neither settings nor each other."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def start_module(module: str, *arguments: str, stderr: int) -> "subprocess.Popen[bytes]":
    """Start `python -m module` with pipes for its input and output."""
    environ = {k: v for k, v in os.environ.items() if not k.startswith("PENSTOCK__")}
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        # Not the checkout, which may hold somebody's penstock.toml.
        cwd=tempfile.gettempdir(),
        env={**environ, "PYTHONPATH": str(ROOT)},
    )
