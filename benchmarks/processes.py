"""Child processes of the benchmark, which see neither settings nor each other."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def start_module(module: str, *arguments: str, stderr: int) -> "subprocess.Popen[bytes]":
    """Start `python -m module` with pipes for its input and output."""
    return start_command([sys.executable, "-m", module, *arguments], stderr=stderr)


def start_command(command: list[str], *, stderr: int) -> "subprocess.Popen[bytes]":
    """Start another program likewise."""
    environ = {k: v for k, v in os.environ.items() if not k.startswith("PENSTOCK__")}
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        # Not the checkout, which may hold somebody's penstock.toml.
        cwd=tempfile.gettempdir(),
        env={**environ, "PYTHONPATH": f"{ROOT}:{ROOT}/src"},
    )
