"""`python -m tests.soak`: random histories by number or by seed (`make soak`)."""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

# Lance warns of operations that are young; it reads this at import.
os.environ.setdefault("LANCE_LOG", "error")

from tests.soak.histories import INGREDIENTS, KINDS_OF_VIEWS, Report
from tests.soak.many import run_many

CHUNK = 10


def main() -> int:
    given = _parse(sys.argv[1:])
    first = given.seed if given.seed is not None else given.first
    count = 1 if given.seed is not None else given.count
    seeds = range(first, first + count)
    chunks = [seeds[n : n + CHUNK] for n in range(0, count, CHUNK)]
    whole, started = Report(), time.monotonic()
    if len(chunks) == 1:
        _tell(whole, run_many(chunks[0], given.only, given.views, given.spark), started, count)
    else:
        with ProcessPoolExecutor(given.processes, get_context("spawn")) as processes:
            running = [
                processes.submit(run_many, chunk, given.only, given.views, given.spark)
                for chunk in chunks
            ]
            for done in as_completed(running):
                _tell(whole, done.result(), started, count)
    _summarize(whole, time.monotonic() - started)
    return 1 if whole.failures else 0


def _tell(whole: Report, part: Report, started: float, count: int) -> None:
    whole.merge(part)
    for failure in part.failures:
        print(f"FAILED {failure}\n", flush=True)
    seconds = time.monotonic() - started
    print(
        f"{whole.histories} of {count} histories in {seconds:.0f} s: {whole.jobs} jobs, "
        f"{len(whole.failures)} failed histories",
        flush=True,
    )


def _summarize(whole: Report, seconds: float) -> None:
    print(f"\n{whole.histories} histories, {whole.jobs} jobs, {seconds:.0f} s")
    print(f"calls: {whole.calls}, {whole.repeated} of them again after {whole.cuts} cuts")
    for text, count in whole.lost_attempts.most_common(10):
        print(f"lost attempt, {count} times: {text}")
    print(f"wrong values, failed jobs, calls that nothing needed: {len(whole.failures)}")
    if whole.failures:
        print("failed seeds: " + " ".join(each.split(" ")[1].strip(":") for each in whole.failures))


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="how many histories")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, help="only this history, with its steps if it fails")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--no-spark", dest="spark", action="store_false", help="no Spark at all")
    for name, known in (("only", INGREDIENTS), ("views", KINDS_OF_VIEWS)):
        parser.add_argument(f"--{name}", type=_some, default=known, help=f"of {','.join(known)}")
    given = parser.parse_args(arguments)
    for name, known in (("only", INGREDIENTS), ("views", KINDS_OF_VIEWS)):
        if unknown := set(getattr(given, name)) - set(known):
            parser.error(f"--{name}: {', '.join(sorted(unknown))} is none of {', '.join(known)}")
    return given


def _some(text: str) -> tuple[str, ...]:
    return tuple(part for part in text.split(",") if part not in ("", "none"))


if __name__ == "__main__":
    raise SystemExit(main())
