"""The page of the Python API, from the signatures and docstrings of its public names."""

import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import cached_property
from importlib import import_module
from typing import Any, get_type_hints

import penstock
from penstock import sdk
from penstock.sdk.functions import decorators
from penstock.sdk.jobs import options

HEAD = """\
# Python API

Every public name of `import penstock`. [Use the SDK](../guides/sdk.md) shows them at work.
Errors are in `penstock.errors` ([all of them](errors.md)). `Name` is a text such as
`"shop.orders"`, or a tuple of its parts. `penstock.aio` has the same names for
programs with `async` ([async](../guides/async.md)).
"""

RESULTS_HEAD = """\
## What calls answer with
"""

# The words of a Literal, or else the name of a class in quotes.
QUOTED = re.compile(r"Literal\[[^\]]*\]|(?:ForwardRef\()?'(\w+(?:\[[^\]]*\])?)'\)?")

# In the order in which people meet them.
NAMES = (
    *("connect", "Lake", "Table", "Query", "SqlResult", "udf", "chunker", "udtf", "vector"),
    *("Udf", "Chunker", "Udtf", "RegisteredFunction", "View", "Job", "Plan"),
    *("IcebergView", "IcebergTable"),
)
# Options that are passed as keywords, by the name of their TypedDict.
OPTIONS = {
    name: kind
    for module in (options, decorators)
    for name, kind in vars(module).items()
    if name.endswith("Options")
}


def api_page() -> str:
    entries = [_entry(name) for name in NAMES]
    return "\n".join([HEAD, *entries, RESULTS_HEAD, *_list_results("".join(entries))])


def _list_results(text: str) -> Iterator[str]:
    """The classes of values that calls answer with, and that nobody makes themselves."""
    found = pkgutil.walk_packages(sdk.__path__, "penstock.sdk.")
    modules = [import_module(each.name) for each in found]
    kinds = {name: kind for module in modules for name, kind in vars(module).items()}
    for name, kind in sorted(kinds.items()):
        if is_dataclass(kind) and name not in NAMES and re.search(rf"(-> |: ).*\b{name}\b", text):
            hints = "".join(f"    {each.name}: {_shown(each.type)}\n" for each in fields(kind))
            doc = "" if str(kind.__doc__).startswith(f"{name}(") else f"{_text(kind.__doc__)}\n\n"
            yield f"### {name}\n\n{doc}```py\nclass {name}:\n{hints}```\n"


def _entry(name: str) -> str:
    found = getattr(penstock, name)
    if not inspect.isclass(found):
        return f"## penstock.{name}\n\n{_call(f'penstock.{name}', found)}"
    parts = [f"## {name}\n", f"{_text(found.__doc__)}\n"]
    if values := _list_values(found):
        parts.append(f"```py\n{values}```\n")
    parts += [_member(name, each, member) for each, member in _list_members(found)]
    return "\n".join(parts)


def _list_members(kind: type) -> Iterator[tuple[str, Any]]:
    """Its own public members and those of its bases in our package, in the order of their names."""
    for name in sorted(dir(kind)):
        home = next(each for each in kind.__mro__ if name in vars(each))
        if not home.__module__.startswith("penstock.") or home.__module__ == "penstock.errors":
            continue
        is_value = name in vars(home).get("__annotations__", {}) and not is_dataclass(home)
        if not name.startswith("_") and not is_value:
            yield name, inspect.getattr_static(kind, name)


def _list_values(kind: type) -> str:
    """The values that a class declares with their types, a line each; fields stand elsewhere."""
    hints = {
        name: hint
        for each in kind.__mro__
        if each.__module__.startswith("penstock.") and not is_dataclass(each)
        for name, hint in vars(each).get("__annotations__", {}).items()
        if not name.startswith("_")
    }
    return "".join(f"{name}: {_shown(hint)}\n" for name, hint in hints.items())


def _member(kind: str, name: str, member: Any) -> str:
    if isinstance(member, property | cached_property):
        read = member.fget if isinstance(member, property) else member.func
        returned = _shown(inspect.signature(read).return_annotation)  # type: ignore[arg-type]
        return f"### {kind}.{name}\n\n```py\n{name}: {returned}\n```\n\n{_text(member.__doc__)}\n"
    if isinstance(member, classmethod | staticmethod):
        member = member.__func__
    if not callable(member):
        return f"### {kind}.{name}\n\n"
    return f"### {kind}.{name}\n\n{_call(name, member)}"


def _call(name: str, function: Callable[..., Any]) -> str:
    signature = inspect.signature(function)
    shown, given = [], []
    is_keyword_only = False
    for each in signature.parameters.values():
        if each.name in ("self", "cls"):
            continue
        if each.kind is each.VAR_KEYWORD and (found := _options_of(each.annotation)):
            given.append(found)
        if each.kind is each.KEYWORD_ONLY and not is_keyword_only:
            shown.append("*")
        is_keyword_only |= each.kind in (each.KEYWORD_ONLY, each.VAR_POSITIONAL)
        shown.append(_parameter(each))
    returned = _shown(signature.return_annotation)
    line = f"{name}({', '.join(shown)}) -> {returned}"
    if len(line) > 88:
        inside = "".join(f"    {each},\n" for each in shown)
        line = f"{name}(\n{inside}) -> {returned}"
    text = f"```py\n{line}\n```\n\n{_text(function.__doc__)}\n"
    return text + "".join(f"\n{each}\n" for each in given)


def _parameter(each: inspect.Parameter) -> str:
    stars = "*" if each.kind is each.VAR_POSITIONAL else "**" * (each.kind is each.VAR_KEYWORD)
    is_said = each.annotation is each.empty or _options_of(each.annotation)
    kind = "" if is_said else f": {_shown(each.annotation)}"
    default = "" if each.default is each.empty else f" = {each.default!r}".replace("'", '"')
    return f"{stars}{each.name}{kind}{default}"


def _options_of(annotation: Any) -> str:
    """The keywords that a TypedDict of options allows."""
    found = re.search(r"(\w+Options)", str(annotation))
    if not found or found[1] not in OPTIONS:
        return ""
    hints = get_type_hints(OPTIONS[found[1]])
    return "Options: " + ", ".join(f"`{name}`" for name in hints) + "."


def _shown(annotation: Any) -> str:
    """A type as people write it, without the modules."""
    if annotation is inspect.Signature.empty:
        return "None"
    is_text = isinstance(annotation, str)
    text = annotation if is_text else inspect.formatannotation(annotation)
    text = re.sub(r"\b(?:[a-z_]\w*\.)+(?=[A-Z])", "", text)
    text = QUOTED.sub(lambda found: found[1] or found[0].replace("'", '"'), text)
    text = re.sub(r"Union\[([^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*)\]", _joined, text)
    text = re.sub(r"Optional\[((?:[^\[\]]|\[[^\[\]]*\])*)\]", r"\1 | None", text)
    return text.replace("~", "").replace("str | tuple[str, ...] | list[str]", "Name")


def _joined(union: re.Match[str]) -> str:
    parts = re.split(r", (?![^\[]*\])", union[1])
    return " | ".join("None" if each == "NoneType" else each for each in parts)


def _text(docstring: str | None) -> str:
    """A docstring as markdown: `name: what it is` becomes a point of a list."""
    lines: list[str] = []
    for line in inspect.cleandoc(docstring or "").splitlines():
        if found := re.fullmatch(r"([a-z_]+(?:, [a-z_]+)*): (.*)", line):
            if lines and lines[-1] and not lines[-1].startswith(("- ", "    ")):
                lines.append("")
            names = ", ".join(f"`{each}`" for each in found[1].split(", "))
            lines.append(f"- {names}: {found[2]}")
        else:
            lines.append(line)
    return "\n".join(lines)
