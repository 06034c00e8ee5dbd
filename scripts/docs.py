"""Writes the generated pages of the documentation; with --check, only says what is wrong.

To add a page, write a function that returns its text and name it in PAGES.
"""

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import click
import msgspec

# Run as a file, Python looks for modules beside it, not beside its folder.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from penstock.cli.main import COMMANDS, load_command
from penstock.errors import PenstockError
from penstock.model.codes import LANCE_ERRORS
from penstock.server.iceberg.errors import ICEBERG_ERRORS
from penstock.server.iceberg.routes import ROUTES, Route
from penstock.server.lance.extensions import EXTENSIONS
from penstock.server.lance.operation import LanceOperation
from penstock.server.lance.operations import OPERATIONS
from penstock.settings.keys import Section, SettingKey, list_sections
from scripts.api import api_page
from scripts.links import broken_links
from tests.engines.page import engines_page

ROOT = Path(__file__).resolve().parent.parent

SETTINGS_HEAD = """\
# Settings

A value comes from its default, then from `penstock.toml`, then from the environment, then from a
flag; the last one wins, as a whole. The file is `penstock.toml` in the working directory, or the
one that `--config` or `PENSTOCK_CONFIG` names. `penstock config` prints each value and where it
comes from.

In the file, a section is a table: `[server]`, then `port = 2333`. In the environment, a list is
JSON or `a,b`, and a map is JSON or `name=a,other=b`. Relative paths start at the working directory.
"""


def settings_page() -> str:
    return "\n".join([SETTINGS_HEAD, *map(settings_section, list_sections())])


def settings_section(section: Section) -> str:
    header = ("key", "value", "default", "environment", "flag", "meaning")
    rows = [settings_row(key) for key in section.keys]
    return f"## {section.name}\n\n{section.description}\n\n{table(header, rows)}"


def settings_row(key: SettingKey) -> tuple[str, ...]:
    flag = f"`{key.flag}`" if key.flag else ""
    default = f"`{json.dumps(msgspec.to_builtins(key.default))}`"
    return (f"`{key.name or 'NAME'}`", key.wanted, default, f"`{key.env}`", flag, key.description)


OPERATIONS_HEAD = """\
# Operations

The operations of the Lance Namespace REST API. [The protocol page](protocol.md) tells how they
behave where the specification leaves room. What an operation *needs* counts with `auth.enabled`
([security](access.md#grants)).
"""


EXTENSIONS_HEAD = """\
## Beyond the specification

`/v1/jobs/list`, `describe`, `cancel`, `pause`, `resume`, `query_events` and
`/v1/table/{id}/errors` have the shapes that lancedb's client expects; the others are Penstock's
own. [The protocol page](protocol.md#jobs) and [failed rows](failed-rows.md) describe
them.
"""


def operations_page() -> str:
    count = f"All {len(OPERATIONS)} operations are served.\n"
    header = ("operation", "method", "path", "needs")
    own = table(header, map(operations_row, EXTENSIONS))
    specified = table(header, map(operations_row, OPERATIONS))
    return "\n".join([OPERATIONS_HEAD, count, specified, EXTENSIONS_HEAD, own])


def operations_row(operation: LanceOperation) -> tuple[str, ...]:
    methods = " or ".join(filter(None, (operation.method, operation.also)))
    return (operation.name, methods, f"`/v1/{operation.path}`", str(operation.needs))


ROUTES_HEAD = """\
# Routes of the Iceberg protocol

Everything that is served under `/iceberg/v1/`, with or without the warehouse as prefix. Those that
are told are among the `endpoints` of the configuration. [Iceberg tables and views](iceberg.md)
tells how they behave. What a route *needs* counts with `auth.enabled`
([security](access.md#grants)).
"""


def routes_page() -> str:
    header = ("route", "method", "path", "told", "takes a key", "needs")
    return "\n".join([ROUTES_HEAD, table(header, map(routes_row, ROUTES))])


def routes_row(route: Route) -> tuple[str, ...]:
    marks = ("yes" if mark else "" for mark in (route.is_told, route.is_change))
    return (route.name, route.method, f"`{route.path}`", *marks, str(route.needs))


def table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A markdown table, ending in a newline."""
    lines = [header, ("---",) * len(header), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


CLI_HEAD = """\
# The command line

`penstock COMMAND --help` prints what is below. Commands that talk to a server find it by `--url`,
by `PENSTOCK_URL`, or by `./penstock-data`, as [`penstock.connect()`](../guides/sdk.md#connect)
does; they start none, and `-v` says which it is, and why. `PENSTOCK_API_KEY` has the key.
`--json` is on every command that reads, `--dry-run` on those that change something, `-y` on those
that ask. Colours and bars are for terminals only. `penstock completion` makes a shell complete all
of it.

| exit code | means |
| --- | --- |
| 0 | done |
| 1 | done, and the answer is no: a job failed, a view differs, the server is not ready |
| 2 | the request was wrong or could not be carried out; a line on stderr says why |
| 3 | a job is done, but for rows that its function failed on; `penstock jobs errors` tells why |
"""


def cli_page() -> str:
    texts = [_command_help(load_command(name), f"penstock {name}") for name in COMMANDS]
    return "\n".join([CLI_HEAD, *texts])


def _command_help(command: click.Command, name: str) -> str:
    """A command's own help, and that of those below it."""
    with click.Context(command, info_name=name, max_content_width=96) as context:
        text = command.get_help(context)
    parts = [f"## {name}\n\n```text\n{text}\n```\n"]
    for below, each in getattr(command, "commands", {}).items():
        parts.append(_command_help(each, f"{name} {below}").replace("## ", "### ", 1))
    return "\n".join(parts)


LLMS_HEAD = """\
# Penstock

> A self-hosted catalog server and data pipeline for Lance tables and Iceberg views: computed
> columns that Python functions fill on Apache Spark, and materialized views of queries, chunkers
> and udtfs, refreshed row by row. Python SDK: `import penstock; lake = penstock.connect()`.

"""


def llms_page() -> str:
    """An index of the documentation for language models."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), ROOT / "SECURITY.md"]
    return LLMS_HEAD + "".join(_llms_line(page) for page in pages)


def _llms_line(page: Path) -> str:
    return f"- [{_title(page)}]({page.relative_to(ROOT).as_posix()})\n"


ERRORS_HEAD = """\
# Errors

Every error that Penstock raises on purpose, in `penstock.errors`. Each is a kind of the one above
it that is indented less: `except penstock.errors.NotFound` catches a missing table and a missing
column. `message` says what happened, `detail` what to do next.

The Lance protocol answers with a status and a code, the Iceberg protocol with a status and a type.
An error without numbers of its own has those of its kind. Anything else is a bug of the server:
status 500, with the id of the request.
"""


def errors_page() -> str:
    header = ("error", "says, without a message of its own", "Lance", "Iceberg")
    return f"{ERRORS_HEAD}\n{table(header, _error_rows(PenstockError, 0))}"


def _error_rows(kind: type[PenstockError], depth: int) -> Iterator[tuple[str, ...]]:
    lance, iceberg = LANCE_ERRORS.get(kind), ICEBERG_ERRORS.get(kind)
    yield (
        f"{'&nbsp;' * 4 * depth}`{kind.__name__}`",
        kind.default,
        f"{lance[0]} / {lance[1]}" if lance else "",
        f"{iceberg[0]} `{iceberg[1]}`" if iceberg else "",
    )
    for each in kind.__subclasses__():
        # Packages have further ones for themselves.
        if each.__module__ == kind.__module__:
            yield from _error_rows(each, depth + 1)


DECISIONS_HEAD = """\
# Decisions

Why Penstock is as it is: what was decided, what spoke for it, and what it costs.

"""


def decisions_page() -> str:
    """The list of decisions, by their number."""
    found = sorted((ROOT / "docs/decisions").glob("0*.md"))
    return DECISIONS_HEAD + "".join(
        f"- [{_title(page)}](../decisions/{page.name})\n" for page in found
    )


def _title(page: Path) -> str:
    return page.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")


PAGES: dict[str, Callable[[], str]] = {
    "docs/explanation/decisions.md": decisions_page,
    "docs/reference/api.md": api_page,
    "docs/reference/cli.md": cli_page,
    "docs/reference/engines.md": engines_page,
    "docs/reference/errors.md": errors_page,
    "docs/reference/iceberg-routes.md": routes_page,
    "docs/reference/operations.md": operations_page,
    "docs/reference/settings.md": settings_page,
    # Last: it tells of the others.
    "llms.txt": llms_page,
}


def stale_pages(root: Path) -> Iterator[str]:
    """One line for each generated page that differs from the code."""
    for name, page in PAGES.items():
        path = root / name
        if not path.exists() or path.read_text(encoding="utf-8") != page():
            yield f"{name} is out of date: run `python scripts/docs.py` and commit it"


def write_pages(root: Path) -> None:
    for name, page in PAGES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page(), encoding="utf-8")


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print("usage: python scripts/docs.py [--check]", file=sys.stderr)
        return 2
    if not arguments:
        write_pages(ROOT)
    problems = [*stale_pages(ROOT), *broken_links(ROOT)]
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
