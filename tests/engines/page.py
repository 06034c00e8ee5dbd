"""The page of docs about engines, from the results that were kept."""

from collections.abc import Iterator

from tests.engines.results import Outcome, Result, Run, Runs, grid, read

TITLES = {
    "spark": "Spark",
    "trino": "Trino",
    "pyiceberg": "pyiceberg",
    "lance_spark": "lance-spark",
    "together": "each beside the others",
    "kit": "Iceberg's kit",
}
BESIDE = ("spark", "trino", "pyiceberg", "lance_spark")
WORDS = {Outcome.WORKS: "yes", Outcome.LIMIT: "no", Outcome.FAILS: "**fails**"}

HEAD = """\
# Engines

What published engines do with Penstock, unmodified. `make engines` runs all of this against servers
of its own, `make engines ONLY=kit,spark` some of it, and `KEEP=1` keeps what came of it for this
page. It needs Maven, a JDK of version 17 or newer, Maven Central and PyPI, and 3 GB of disk. A *no*
is a limit of the engine itself, which a line below tells; what has no mark was not tried.

"""
TOGETHER = """
## Each writes what the others read

Spark, Trino and pyiceberg on one server at the same time. Each makes a table; each of them inserts,
updates and deletes in each of the tables, and all three read the same after each step.

"""
KIT = """
## Iceberg's compatibility kit

The tests that Iceberg publishes for catalogs, `ViewCatalogTests` and `CatalogTests`, with Iceberg's
own Java client. Nested namespaces, namespaces that must be made first, names with dots and slashes
and retries by the server are switched on.

"""


def engines_page() -> str:
    return "".join(_lines(read()))


def _lines(runs: Runs) -> Iterator[str]:
    yield HEAD
    yield "| | versions | run on |\n| --- | --- | --- |\n"
    for name in [name for name in TITLES if name in runs]:
        used = ", ".join(f"{what} {version}" for what, version in runs[name].versions.items())
        yield f"| {TITLES[name]} | {used} | {runs[name].date} |\n"
    yield "\n## Operations\n\n"
    yield from _table({name: runs[name] for name in BESIDE if name in runs})
    if "together" in runs:
        yield TOGETHER
        yield from _list(runs["together"])
    if "kit" in runs:
        yield KIT
        yield from _list(runs["kit"])


def _table(runs: Runs) -> Iterator[str]:
    """Operations and engines; what limits an engine is told below."""
    titles = [TITLES[name] for name in runs]
    yield f"| operation | {' | '.join(titles)} |\n|{' --- |' * (len(titles) + 1)}\n"
    limits = list[str]()
    for operation, cells in grid(runs):
        words = []
        for title, each in zip(titles, cells, strict=True):
            words.append(_mark(each))
            if each and each.note:
                limits.append(f"- {title}, {operation}: {each.note}\n")
        yield f"| {operation} | {' | '.join(words)} |\n"
    yield "\n"
    yield from sorted(limits)


def _mark(result: Result | None) -> str:
    return WORDS[result.outcome] if result else ""


def _list(run: Run) -> Iterator[str]:
    yield "| what | | |\n| --- | --- | --- |\n"
    for each in run.results:
        yield f"| {each.operation} | {_mark(each)} | {each.note} |\n"
