"""Logs: human-readable lines, or one JSON object a line; one line per request."""

import logging
import sys
import time
from datetime import UTC, datetime
from typing import TextIO

import msgspec

# Requests have a logger of their own, so that it can be switched on separately.
REQUESTS = "penstock.requests"
FIELDS = (
    *("request_id", "trace_id", "principal", "operation", "method", "path", "status"),
    "milliseconds",
)


def configure(level: str, style: str, stream: TextIO | None = None) -> None:
    """Set up logging: `auto` is human-readable lines, with requests only on a terminal."""
    stream = stream or sys.stderr
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_JsonFormatter() if style == "json" else _HumanFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    wanted = style != "auto" or stream.isatty()
    logging.getLogger(REQUESTS).setLevel(logging.NOTSET if wanted else logging.WARNING)
    # uvicorn's lines repeat ours, and anyone can cause its warnings.
    for name in ("uvicorn", "uvicorn.error"):
        logging.getLogger(name).setLevel(logging.ERROR)


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        for name in FIELDS:
            if (value := getattr(record, name, None)) not in (None, ""):
                line[name] = value
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line).decode()


class _HumanFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        clock = time.strftime("%H:%M:%S", time.localtime(record.created))
        level = "" if record.levelno == logging.INFO else f"{record.levelname.lower()}: "
        line = f"{clock} {level}{record.getMessage()}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line
