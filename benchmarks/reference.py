"""Run pylance's Rust server over a folder until told to stop, in a process of its own."""

import signal
import sys

from lance.namespace import RestAdapter


def main() -> None:
    options = {
        "root": sys.argv[1],
        "manifest_enabled": "true",
        "table_version_tracking_enabled": "true",
    }
    with RestAdapter("dir", options, port=0) as adapter:
        print(f"reference serves http://127.0.0.1:{adapter.port}", flush=True)
        signal.sigwait({signal.SIGTERM, signal.SIGINT})


if __name__ == "__main__":
    # Blocked before the server's threads start, so that only the wait above gets them.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    main()
