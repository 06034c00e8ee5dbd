"""`python -m penstock.sdk.connection.child …`: the command, which ends when its input does."""

import os
import runpy
import signal
import threading


def watch() -> None:
    """Wait for the end of the pipe that the parent holds, then stop as if it had been asked."""
    # Not by sys.stdin, whose lock a thread must not hold when Python ends.
    while os.read(0, 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    threading.Thread(target=watch, daemon=True).start()
    runpy.run_module("penstock", run_name="__main__")
