"""`python -m penstock.sdk.connection.child …`: the command, which ends when its stdin closes."""

import os
import runpy
import signal
import threading


def watch() -> None:
    """Wait until the parent's pipe closes, then stop as if asked to."""
    # Not through sys.stdin, whose lock a thread must not hold when Python exits.
    while os.read(0, 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    threading.Thread(target=watch, daemon=True).start()
    runpy.run_module("penstock", run_name="__main__")
