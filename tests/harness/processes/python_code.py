"""Lines of Python in processes of their own, which may die at named places."""

import os
import subprocess
import sys
from collections.abc import Mapping

from tests.harness.root import ROOT


def start_code(
    code: str, *arguments: str, environ: Mapping[str, str] | None = None
) -> "subprocess.Popen[bytes]":
    """Start lines that can import the harness."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments], cwd=ROOT, env={**os.environ, **(environ or {})}
    )


def die_at(point: str, code: str, *arguments: str) -> int:
    """Run lines in a process that dies at a named place; its exit code."""
    with start_code(code, *arguments, environ={"PENSTOCK_CRASH_AT": point}) as dying:
        return dying.wait()
