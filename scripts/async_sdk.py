"""Writes `penstock/aio/generated`, the SDK to be awaited, from the SDK itself.

Each public method of the SDK's objects becomes one of the same name, arguments and text that is
awaited. With --check, only says which file is not what it should be.
"""

import ast
import importlib
import inspect
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, is_dataclass
from pathlib import Path
from typing import Any

import click

import penstock

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "src/penstock/aio/generated"
# The SDK's objects that wait for a server, and the module of each one's twin.
TWINS = {
    "Readable": "readable",
    "Stored": "stored",
    "Lake": "lake",
    "Table": "table",
    "View": "view",
    "IcebergTable": "iceberg_table",
    "IcebergView": "iceberg_view",
    "Query": "query",
    "Job": "job",
    "RegisteredFunction": "registered_function",
}
# An object that is closed at the end of `async with`.
CONTEXT = """
    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.close()"""
# What several of them have in common.
SHARED = {"Readable": "tables.readable", "Stored": "tables.stored"}
# What gives another query, or a client, waits for nothing.
AT_ONCE = {"Query", "RestNamespace", "DBConnection", "RestCatalog"}
# What the SDK takes of its own objects under one name.
TAKEN = {
    "Source": ("AsyncReadable", "AsyncQuery"),
    "Fills": ("AsyncRegisteredFunction",),
    "RowsFunction": ("AsyncRegisteredFunction",),
}
ITERATORS = ("Iterator", "Generator", "RecordBatchReader")


@dataclass
class Imports:
    """What a generated module imports: by module, the names; and those that only types need."""

    names: dict[str, set[str]] = field(default_factory=dict)
    whole: set[str] = field(default_factory=set)


@dataclass
class Scope:
    """Where the names in a module of the SDK come from."""

    module: str
    names: dict[str, tuple[str, str]]
    modules: dict[str, str]


def read_scope(module: str) -> Scope:
    """The names that a module imports or has itself."""
    tree = ast.parse(inspect.getsource(importlib.import_module(module)))
    names: dict[str, tuple[str, str]] = {}
    modules: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for each in node.names:
                names[each.asname or each.name] = (node.module, each.name)
        elif isinstance(node, ast.Import):
            for each in node.names:
                modules[each.asname or each.name.split(".")[0]] = each.name
    for top in tree.body:
        if isinstance(top, ast.ClassDef):
            names[top.name] = (module, top.name)
        elif isinstance(top, ast.Assign | ast.AnnAssign):
            for target in top.targets if isinstance(top, ast.Assign) else [top.target]:
                if isinstance(target, ast.Name):
                    names[target.id] = (module, target.id)
    return Scope(module, names, modules)


def find_base(kind: type) -> type | None:
    """The nearest parent that has a twin."""
    return next((each for each in kind.__mro__[1:] if each.__name__ in SHARED), None)


def list_methods(kind: type) -> Iterator[tuple[str, ast.FunctionDef]]:
    """The public methods and properties of a class, with their module; not those of its base."""
    done = set[str]()
    base = find_base(kind)
    for parent in kind.__mro__:
        if not parent.__module__.startswith("penstock.") or (base and issubclass(base, parent)):
            continue
        tree = ast.parse(inspect.getsource(parent)).body[0]
        assert isinstance(tree, ast.ClassDef)
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                if node.name not in done:
                    done.add(node.name)
                    yield parent.__module__, node
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                done.add(node.target.id)


def list_values(kind: type) -> Iterator[tuple[str, ast.AnnAssign]]:
    """The public values that a class declares, other than as a dataclass, with their module."""
    for parent in kind.__mro__:
        if not parent.__module__.startswith("penstock.") or is_dataclass(parent):
            continue
        tree = ast.parse(inspect.getsource(parent)).body[0]
        assert isinstance(tree, ast.ClassDef)
        for node in tree.body:
            if isinstance(node, ast.AnnAssign) and not ast.unparse(node.target).startswith("_"):
                yield parent.__module__, node


class Writer:
    """One generated module: the twin of one class."""

    def __init__(self, kind: type) -> None:
        self.kind = kind
        self.typing = Imports()
        self.running = Imports()

    def text(self) -> str:
        found = list_methods(self.kind)
        methods = [self.method(read_scope(module), node) for module, node in found]
        methods += [self.value(read_scope(module), node) for module, node in list_values(self.kind)]
        methods += self.attributes()
        if "__exit__" in vars(self.kind):
            methods.append(CONTEXT)
        doc = inspect.getdoc(self.kind) or ""
        name = self.kind.__name__
        self.need(self.running, (self.kind.__module__, name))
        base = find_base(self.kind)
        if base is None:
            self.need(self.running, ("penstock.aio.wrapping", "Awaited"))
            parents = "Awaited[Any]" if name in SHARED else f"Awaited[{name}]"
        else:
            home = f"penstock.aio.generated.{TWINS[base.__name__]}"
            self.need(self.running, (home, f"Async{base.__name__}"))
            parents = f"Async{base.__name__}"
            methods.insert(0, f"    _wrapped: {name}\n")
        twin = "" if name in SHARED else f", of={name}"
        head = [
            f'"""{name} of the SDK, to be awaited; written by scripts/async_sdk.py."""',
            "",
            "from __future__ import annotations",
            "",
            "from typing import TYPE_CHECKING, Any, Self",
            "",
            *self.imports(self.running, ""),
            "if TYPE_CHECKING:",
            "    pass",
            *self.imports(self.typing, "    "),
            "",
            f"class Async{name}({parents}{twin}):",
            f'    """{doc}"""',
        ]
        return "\n".join([*head, *methods]) + "\n"

    def imports(self, found: Imports, indent: str) -> list[str]:
        lines = [f"{indent}import {each}" for each in sorted(found.whole)]
        for module, names in sorted(found.names.items()):
            lines.append(f"{indent}from {module} import {', '.join(sorted(names))}")
        return lines

    def attributes(self) -> list[str]:
        """What objects have as plain values: set in __init__, or fields of a dataclass."""
        base = find_base(self.kind)
        names = {
            each
            for parent in self.kind.__mro__
            if not (base and issubclass(base, parent))
            for each in _set_in_init(parent)
            if not each.startswith("_") and not hasattr(self.kind, each)
        }
        return [
            f"\n    @property\n    def {name}(self) -> Any:\n        return self._wrapped.{name}"
            for name in sorted(names)
        ]

    def value(self, scope: Scope, node: ast.AnnAssign) -> str:
        assert isinstance(node.target, ast.Name)
        name, kind = node.target.id, self.annotation(scope, ast.unparse(node.annotation))
        return (
            f"\n    @property\n    def {name}(self) -> {kind}:\n"
            f"        found: {kind} = self._wrapped.{name}\n        return found"
        )

    def method(self, scope: Scope, node: ast.FunctionDef) -> str:
        decorators = [ast.unparse(each) for each in node.decorator_list]
        answer = ast.unparse(node.returns) if node.returns else "Any"
        told = (ast.get_docstring(node, clean=False) or "").replace("\\", "\\\\")
        doc = f'        """{told}"""\n' if told else ""
        kind = self.annotation(scope, answer)
        if "property" in decorators:
            return (
                f"\n    @property\n    def {node.name}(self) -> {kind}:\n{doc}"
                f"        found: {kind} = self._wrapped.{node.name}\n        return found"
            )
        head = self.arguments(scope, node.args)
        call = ", ".join([f"self._wrapped.{node.name}", *_passed(node.args)])
        plain = answer.strip("'\"")
        if plain in AT_ONCE or (plain == "Self" and self.kind.__name__ == "Query"):
            return (
                f"\n    def {node.name}({head}) -> {kind}:\n{doc}"
                f"        found: {kind} = self._now({call})\n        return found"
            )
        if any(plain.startswith(each) or plain.endswith(each) for each in ITERATORS):
            inner = plain.partition("[")[2].rpartition("]")[0].split(",")[0] or "pa.RecordBatch"
            each = self.annotation(scope, inner)
            self.need(self.typing, ("collections.abc", "AsyncIterator"))
            return (
                f"\n    def {node.name}({head}) -> AsyncIterator[{each}]:\n{doc}"
                f"        return self._each({call})"
            )
        give = (
            f"        await self._run({call})"
            if kind == "None"
            else (f"        found: {kind} = await self._run({call})\n        return found")
        )
        return f"\n    async def {node.name}({head}) -> {kind}:\n{doc}{give}"

    def arguments(self, scope: Scope, given: ast.arguments) -> str:
        for each in [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]:
            if each is not None and each.annotation is not None:
                text = self.annotation(scope, ast.unparse(each.annotation))
                each.annotation = ast.parse(text, mode="eval").body
        for default in [*given.defaults, *given.kw_defaults]:
            for name in ast.walk(default) if default is not None else ():
                if isinstance(name, ast.Name) and name.id in scope.names:
                    self.need(self.running, scope.names[name.id])
        return ast.unparse(given)

    def annotation(self, scope: Scope, text: str) -> str:
        """A type of the SDK as the twin has it, with its names imported."""
        tree = ast.parse(text.strip("'\"") if text[:1] in "'\"" else text, mode="eval")
        return ast.unparse(_Retyping(self, scope).visit(tree))

    def need(self, where: Imports, name: tuple[str, str]) -> None:
        where.names.setdefault(name[0], set()).add(name[1])


class _Retyping(ast.NodeTransformer):
    def __init__(self, writer: Writer, scope: Scope) -> None:
        self.writer, self.scope = writer, scope

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        if isinstance(node.value, ast.Name) and node.value.id == "Literal":
            self.writer.need(self.writer.typing, ("typing", "Literal"))
            return node
        return self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> Any:
        if isinstance(node.value, str):
            return self.visit(ast.parse(node.value, mode="eval").body)
        return node

    def visit_Name(self, node: ast.Name) -> Any:
        name, scope, writer = node.id, self.scope, self.writer
        if name in TWINS:
            if name != writer.kind.__name__:
                home = f"penstock.aio.generated.{TWINS[name]}"
                writer.need(writer.typing, (home, f"Async{name}"))
            return ast.Name(f"Async{name}")
        if name in TAKEN:
            writer.need(writer.typing, scope.names[name])
            for twin in TAKEN[name]:
                self.visit_Name(ast.Name(twin.removeprefix("Async")))
            return ast.parse(" | ".join([name, *TAKEN[name]]), mode="eval").body
        if name in scope.names and scope.names[name] not in (("typing", "Any"), ("typing", "Self")):
            writer.need(writer.typing, scope.names[name])
            return ast.Name(scope.names[name][1])
        if name in scope.modules:
            module = scope.modules[name]
            writer.typing.whole.add(module if module == name else f"{module} as {name}")
        return node


def _set_in_init(kind: type) -> Iterator[str]:
    """What `__init__` sets of an object."""
    if "__init__" not in vars(kind) or not kind.__module__.startswith("penstock."):
        return
    for node in ast.walk(ast.parse(inspect.getsource(kind))):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self":
                    yield target.attr


def _passed(given: ast.arguments) -> Iterator[str]:
    """Arguments handed on as they came."""
    for each in [*given.posonlyargs, *given.args][1:]:
        yield each.arg
    if given.vararg:
        yield f"*{given.vararg.arg}"
    for each in given.kwonlyargs:
        yield f"{each.arg}={each.arg}"
    if given.kwarg:
        yield f"**{given.kwarg.arg}"


def write_modules() -> dict[Path, str]:
    """The text of each generated module, formatted as all others are."""
    made = {OUT / "__init__.py": '"""The SDK to be awaited, written by scripts/async_sdk.py."""\n'}
    for name, module in TWINS.items():
        if name in SHARED:
            kind = getattr(importlib.import_module(f"penstock.sdk.{SHARED[name]}"), name)
        else:
            kind = getattr(penstock, name)
        made[OUT / f"{module}.py"] = _format(Writer(kind).text())
    return made


def _format(text: str) -> str:
    ruff = [sys.executable, "-m", "ruff"]
    for command in (["check", "--quiet", "--fix", "--select", "I,F401,PIE790,UP"], ["format"]):
        done = subprocess.run(
            [*ruff, *command, "--stdin-filename", str(OUT / "made.py"), "-"],
            input=text,
            capture_output=True,
            text=True,
            cwd=ROOT,
        )
        text = done.stdout
    return text


@click.command()
@click.option("--check", is_flag=True, help="Write nothing; fail if a file is not right.")
def main(check: bool) -> None:
    stale = []
    for path, text in write_modules().items():
        if not path.exists() or path.read_text() != text:
            stale.append(str(path.relative_to(ROOT)))
            if not check:
                path.write_text(text)
    if check and stale:
        sys.exit(f"not as scripts/async_sdk.py writes them: {', '.join(stale)}; run it")


if __name__ == "__main__":
    main()
