"""Our own commands, each in a process of its own."""

import json
import os
import sys
from pathlib import Path
from typing import Any

from tests.harness.processes import nursery
from tests.harness.processes.servers import Server

PENSTOCK = Path(sys.executable).parent / "penstock"


def run(server: Server, *arguments: str, code: int = 0) -> str:
    """What a command prints; it must end with the code."""
    done = nursery.run(arguments, {**os.environ, "PENSTOCK_URL": server.url})
    assert done.returncode == code, done.stdout + done.stderr
    assert "\x1b" not in done.stdout
    return done.stdout if code != 2 else done.stderr


def ask(server: Server, *arguments: str, code: int = 0) -> Any:
    """What a command prints as JSON."""
    return json.loads(run(server, *arguments, "--json", code=code))
