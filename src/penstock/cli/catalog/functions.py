"""`penstock functions`: list, show, disable, enable and drop functions that have a name."""

import click

from penstock.cli.lake import lake_option
from penstock.cli.output import (
    as_json_option,
    confirm,
    echo_json,
    echo_pairs,
    echo_table,
    show_time,
    yes_option,
)
from penstock.sdk.lake import Lake


@click.group()
def command() -> None:
    """Functions that are registered in the catalog, by name and version.

    NAME is that of a function (ml.embed) or of a version of it (ml.embed@2).

    \b
    Examples:
      penstock functions list ml
      penstock functions show ml.embed@2
      penstock functions disable ml.embed@2
    """


@command.command("list")
@click.argument("namespace", required=False)
@lake_option
@as_json_option
def list_functions(lake: Lake, *, namespace: str | None, as_json: bool) -> None:
    """List the functions in NAMESPACE, or all, with all their versions.

    \b
    Examples:
      penstock functions list ml
    """
    found = map(lake.function, lake.functions(namespace))
    told = [version.describe() for function in found for version in function.versions()]
    if as_json:
        echo_json(told)
    elif told:
        rows: list[tuple[str, ...]] = [("name", "version", "kind", "state", "users", "created")]
        for each in told:
            users = sum(use["version"] == int(each["version"]) for use in each["used_by"])
            state = "disabled" if each["disabled"] else ""
            created = show_time(each["created_at_millis"], "")
            name, kind = ".".join(each["id"]), each["kind"] or ""
            rows.append((name, each["version"], kind, state, str(users), created))
        echo_table(rows)
    else:
        click.echo(f"no functions in {namespace or 'the lake'}", err=True)


@command.command("show")
@click.argument("name")
@lake_option
@as_json_option
def show(lake: Lake, *, name: str, as_json: bool) -> None:
    """Tell what a function takes and gives, what it is made of, and who uses it.

    \b
    Examples:
      penstock functions show ml.embed
      penstock functions show ml.embed@2 --json
    """
    told = lake.function(name).describe()
    if as_json:
        echo_json(told)
        return
    signature, output = told["signature"], told["signature"]["output"]
    made = output.get("fields") or [{"name": "", "arrow_type": output.get("arrow_type", "?")}]
    pairs = [
        ("name", f"{'.'.join(told['id'])}@{told['version']}"),
        ("state", "disabled" if told["disabled"] else "enabled"),
        ("kind", told["kind"] or "as its annotations say"),
        ("takes", ", ".join(f"{p['name']} {p['arrow_type']}" for p in signature["inputs"])),
        ("gives", ", ".join(f"{p['name']} {p['arrow_type']}".strip() for p in made)),
        ("environment", told["manifest"] or "the workers' own"),
        ("secrets", ", ".join(f"{v} = {n}" for v, n in told["secrets"].items())),
        ("digest", told["digest"]),
        ("created", f"{show_time(told['created_at_millis'], '')} {told['created_by']}".strip()),
    ]
    pairs += [(key, value) for key, value in told["properties"].items()]
    for use in told["used_by"]:
        column = f".{use['column']}" if use["column"] else ""
        branch = f" on {use['branch']}" if use["branch"] else ""
        pairs.append(("used by", f"{'.'.join(use['table'])}{column}{branch} (@{use['version']})"))
    echo_pairs([pair for pair in pairs if pair[1]])
    for file, text in (told["source"] or {}).items():
        click.echo(f"\n# {file}\n{text}".rstrip())


@command.command("disable")
@click.argument("name")
@lake_option
def disable(lake: Lake, *, name: str) -> None:
    """Refuse new uses and new jobs of a function, or of one version; what is running ends.

    \b
    Examples:
      penstock functions disable ml.embed@2
    """
    click.echo(f"{lake.function(name).disable()} is disabled")


@command.command("enable")
@click.argument("name")
@lake_option
def enable(lake: Lake, *, name: str) -> None:
    """Take back what `disable` did.

    \b
    Examples:
      penstock functions enable ml.embed@2
    """
    click.echo(f"{lake.function(name).enable()} is enabled")


@command.command("drop")
@click.argument("name")
@lake_option
@yes_option
def drop(lake: Lake, *, name: str, yes: bool) -> None:
    """Drop a function, or one version of it, that nothing uses.

    \b
    Examples:
      penstock functions drop ml.embed@1
    """
    found = lake.function(name)
    confirm(f"Drop {found}?", yes)
    found.drop()
    click.echo(f"{found} is dropped")
