"""An engine in a process of its own that takes one SQL statement a line and answers in JSON."""

import contextlib
import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from tests.engines.checks import Refused, Rows

STOP_SECONDS = 60


class LineSession:
    """The other end of such a process."""

    def __init__(self, process: "subprocess.Popen[str]", log: Path) -> None:
        self._process, self._log = process, log

    def rows(self, sql: str) -> Rows:
        return self._ask({"sql": sql})

    def ready(self) -> None:
        """Wait until it has started."""
        self._ask({"sql": "SELECT 1"})

    def _ask(self, request: Mapping[str, Any]) -> Rows:
        to, back = self._process.stdin, self._process.stdout
        assert to is not None
        assert back is not None
        with contextlib.suppress(BrokenPipeError):
            to.write(json.dumps(request) + "\n")
            to.flush()
        answer = self._read(back)
        if error := answer.get("error"):
            raise Refused(error)
        rows: Rows = answer["rows"]
        return rows

    def _read(self, back: IO[str]) -> dict[str, Any]:
        """Its next answer; what else it prints there is not looked at."""
        for line in back:
            if line.startswith('{"'):
                found: dict[str, Any] = json.loads(line)
                return found
        last = self._log.read_text(errors="replace").strip().splitlines()[-5:]
        raise Refused(f"it ended: {' '.join(last)}")


@contextlib.contextmanager
def line_session(
    command: Sequence[str], log: Path, environ: Mapping[str, str] | None = None
) -> Iterator[LineSession]:
    """Start it, and end it with the block."""
    with log.open("a") as words:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=words,
            text=True,
            env=environ,
        )
    try:
        session = LineSession(process, log)
        session.ready()
        yield session
    finally:
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
