"""`penstock status`: how a server is, at a glance."""

from typing import Any

import click

from penstock.cli.lake import lake_option
from penstock.cli.output import as_json_option, echo_json, echo_pairs
from penstock.model.jobs import ACTIVE
from penstock.sdk.lake import Lake


@click.command()
@lake_option
@as_json_option
@click.pass_context
def command(context: click.Context, lake: Lake, *, as_json: bool) -> None:
    """Tell how the server is: ready or not, what it holds, which jobs it has.

    The exit code is 1 when it is not ready.

    \b
    Examples:
      penstock status
      penstock status --url http://127.0.0.1:2333 --json
    """
    found = read_status(lake)
    if as_json:
        echo_json(found)
    else:
        _print(found)
    if not found["ready"]:
        context.exit(1)


def read_status(lake: Lake) -> dict[str, Any]:
    ready = lake.readiness()
    problems = {part: text for part, text in ready.items() if part != "status"}
    found: dict[str, Any] = {
        "url": lake.url,
        "why": lake.why,
        "ready": ready["status"] == "ok",
        "problems": problems,
    }
    if found["ready"]:
        views = lake.views()
        stale = [name for name in views if lake.view(name).freshness().stale]
        found |= {"tables": len(lake.tables()), "views": len(views), "stale_views": stale}
        found["jobs"] = {state: len(lake.jobs(status=state, limit=None)) for state in ACTIVE}
    return found


def _print(found: dict[str, Any]) -> None:
    why = [("because", found["why"])] if found["why"] else []
    if not found["ready"]:
        state = click.style("not ready", fg="red")
        problems = [(part, text) for part, text in found["problems"].items()]
        echo_pairs([("server", f"{found['url']} is {state}"), *why, *problems])
        return
    stale = found["stale_views"]
    jobs = ", ".join(f"{count} {state.lower()}" for state, count in found["jobs"].items())
    echo_pairs(
        [
            ("server", f"{found['url']} is {click.style('ready', fg='green')}"),
            *why,
            ("tables", str(found["tables"])),
            ("views", f"{found['views']}, {', '.join(stale) or 'none'} stale"),
            ("jobs", jobs),
        ]
    )
