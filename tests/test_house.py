"""The house is as its pages say, and stays in order; each check is shown to find what it is for."""

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from scripts.docs import ROOT

PACKAGE = "penstock"
MAX_MODULES, MAX_ROWS = 20, 8
NUMBERS = (
    "no",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
)

# Who may import inside a function, and why; everything else that is heavy is loaded at a door.
LATE_IMPORTS = {
    "cli/operate/doctor.py": "tells of missing libraries instead of failing without them",
    "cli/operate/runner.py": "Lance reads LANCE_LOG when it is loaded",
    "database/connect.py": "a driver is loaded when its kind of URL is opened",
    "jobs/functions/load.py": "what cloudpickle lacks is told as the function's trouble",
    "runner/java.py": "a machine with a Java of its own needs no packaged one",
    "sdk/connection/server_note.py": "a server, which writes the note, needs no HTTP client",
}
# A path as pages write it: `catalog/names/tables.py`, `server/lance/`, `tests/harness`, `rules.py`;
# what comes after it (`: describe`, `::test_x`) is not looked at.
PATH = re.compile(r"(?:[a-z]\w*/)*(?:[a-z]\w*\.(?:py|sql)|[a-z]\w*/(?:[a-z]\w*)?)(?=:|$)")
# Where something is to be filled in; what stands before it must be there.
OPEN = re.compile(r"[<*…]")


def list_pages(root: Path) -> list[Path]:
    pages = [root / "ARCHITECTURE.md", root / "CONTRIBUTING.md"]
    return [*pages, *sorted((root / "docs" / "decisions").glob("*.md"))]


def missing_places(root: Path) -> Iterator[str]:
    """What pages name as a file or folder that is not there."""
    for page in list_pages(root):
        text = page.read_text(encoding="utf-8")
        gone = [place for place in list_places(text) if not _is_there(root, place)]
        gone += [folder for folder in list_drawn(text) if not _is_folder(root, folder)]
        yield from (f"{page.name} names {place}, which does not exist" for place in gone)
        yield from (f"{page.name} names {name}" for name in missing_names(root, text))


def missing_names(root: Path, text: str) -> Iterator[str]:
    """What is named as a part of a module (`rooms/attic.py: open`) and is not in it."""
    for place, name in re.findall(r"`(?:src/penstock/)?([\w/]+\.py):\s+(\w+)`", text):
        near = [base / place for base in (root / "src" / PACKAGE, root)]
        known = [re.search(rf"\b{name}\b", path.read_text()) for path in near if path.exists()]
        if known and not any(known):
            yield f"{place}: {name}, which is not in it"


def list_drawn(text: str) -> Iterator[str]:
    """The folders in drawings, where they stand below the one that they are in."""
    for drawing in re.findall(r"^```\n(.*?)^```", text, re.M | re.S):
        yield from re.findall(r"(?<!\S)([a-z]\w*)/(?!\S)", drawing)


def list_places(text: str) -> Iterator[str]:
    """The paths in a page's code spans."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    for span in re.findall(r"`([^`]+)`", prose):
        known = OPEN.split(span.removeprefix("src/penstock/"))[0]
        if known != span.removeprefix("src/penstock/"):
            known = known.rpartition("/")[0] + "/" if "/" in known else ""
        if found := PATH.match(known):
            yield found[0]


def _is_there(root: Path, place: str) -> bool:
    house = root / "src" / PACKAGE
    if "/" not in place:
        return any(any(each.rglob(place)) for each in (house, root / "tests", root / "scripts"))
    near = [base / place for base in (house, root)]
    return any(path.is_file() or _holds(path) or path.with_suffix(".py").exists() for path in near)


def _is_folder(root: Path, name: str) -> bool:
    return any(_holds(path) for path in (root / "src" / PACKAGE).rglob(name))


def _holds(folder: Path) -> bool:
    """Whether it is a folder with more in it than what an older tree left."""
    return any(path.is_file() and path.suffix != ".pyc" for path in folder.rglob("*"))


def crowded_folders(house: Path) -> Iterator[str]:
    for folder in sorted({path.parent for path in house.rglob("*.py")}):
        count = sum(path.name != "__init__.py" for path in folder.glob("*.py"))
        if count > MAX_MODULES:
            yield f"{folder.name} holds {count} modules; {MAX_MODULES} is the most"


def silent_modules(house: Path) -> Iterator[str]:
    for path in sorted(house.rglob("*.py")):
        if ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) is None:
            yield f"{path.relative_to(house)} has no docstring"


def find_cycles(house: Path) -> list[list[str]]:
    """Modules that import each other, whether at their top or inside of functions."""
    paths = {_name_module(house, path): path for path in house.rglob("*.py")}
    graph = {name: set(list_imports(path, paths)) for name, path in paths.items()}
    return sorted(sorted(ring) for ring in _find_rings(graph) if len(ring) > 1)


def late_imports(house: Path) -> Iterator[str]:
    """The modules that import something inside a function."""
    for path in sorted(house.rglob("*.py")):
        late = [
            node
            for part in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef)
            for node in ast.walk(part)
            if isinstance(node, ast.Import | ast.ImportFrom)
        ]
        if late:
            yield path.relative_to(house).as_posix()


def list_imports(path: Path, known: Mapping[str, Path]) -> Iterator[str]:
    for node in _list_nodes(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for each in node.names:
                inner = f"{node.module}.{each.name}"
                yield from [name for name in (inner, node.module) if name in known][:1]


def _list_nodes(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"):
            yield from _list_nodes(child)


def _name_module(house: Path, path: Path) -> str:
    parts = path.relative_to(house.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _find_rings(graph: Mapping[str, set[str]]) -> Iterator[set[str]]:
    """The strongly connected parts of a graph: who reaches each other."""
    reached = {name: _reach(graph, name) for name in graph}
    left = set(graph)
    while left:
        first = min(left)
        ring = {first} | {name for name in reached[first] if first in reached[name]}
        left -= ring
        yield ring


def _reach(graph: Mapping[str, set[str]], start: str) -> set[str]:
    found = set[str]()
    waiting = [start]
    while waiting:
        new = graph[waiting.pop()] - found
        found |= new
        waiting += new
    return found


def wrong_rows(root: Path) -> Iterator[str]:
    """What is wrong with the rows of the import contract."""
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    [rows] = [each["layers"] for each in contracts if each["type"] == "layers"]
    if len(rows) > MAX_ROWS:
        yield f"the contract has {len(rows)} rows; {MAX_ROWS} is the most"
    named = [each.strip().removeprefix(f"{PACKAGE}.") for row in rows for each in row.split("|")]
    yield from (f"{each} is in two rows" for each in sorted(set(named)) if named.count(each) > 1)
    house = root / "src" / PACKAGE
    parts = {path.parent.name for path in house.glob("*/__init__.py")}
    parts |= {path.stem for path in house.glob("*.py") if not path.stem.startswith("__")}
    yield from (f"{each} is in no row" for each in sorted(parts - set(named)))


def wrong_decisions(root: Path) -> Iterator[str]:
    """Decisions whose number is another's, or another than their file's."""
    seen = dict[str, str]()
    for path in sorted((root / "docs" / "decisions").glob("*.md")):
        number = path.name[:4]
        if not path.read_text(encoding="utf-8").startswith(f"# {number}: "):
            yield f"{path.name} is not headed {number}"
        if number in seen:
            yield f"{path.name} has the number of {seen[number]}"
        seen[number] = path.name


def count_journeys(page: str) -> tuple[str, int]:
    """How many journeys a heading announces, and how many there are."""
    [(said, body)] = re.findall(r"^## (\w+) journeys\n(.*?)(?=^## |\Z)", page, re.M | re.S)
    return said.lower(), len(re.findall(r"^### ", body, re.M))


def test_pages_name_files_and_folders_that_are_there() -> None:
    assert list(missing_places(ROOT)) == []


def test_no_folder_is_crowded() -> None:
    assert list(crowded_folders(ROOT / "src" / PACKAGE)) == []


def test_every_module_says_what_it_holds() -> None:
    assert list(silent_modules(ROOT / "src" / PACKAGE)) == []


def test_no_modules_import_each_other() -> None:
    assert find_cycles(ROOT / "src" / PACKAGE) == []


def test_heavy_modules_are_loaded_at_doors_that_have_a_name() -> None:
    assert list(late_imports(ROOT / "src" / PACKAGE)) == sorted(LATE_IMPORTS)


def test_every_package_has_its_row_in_the_import_contract() -> None:
    assert list(wrong_rows(ROOT)) == []


def test_every_decision_has_a_number_of_its_own() -> None:
    assert list(wrong_decisions(ROOT)) == []


def test_there_are_as_many_journeys_as_announced() -> None:
    said, count = count_journeys((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"))
    assert said == NUMBERS[count]


# That the checks find what they are for ------------------------------------------------------


def make(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def test_a_name_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    page = (
        "`rooms/attic.py: open`, `rooms/attic`, `rooms/<noun>.py`, `tests/test_x.py::test_y`, "
        "`attic.py`, `src/penstock/rooms/`, `/v1/{id}`, `a word`, `a/../b`, `text/x.lance`\n"
        "`rooms/attic.py: close`, `rooms/cellar.py`, `sheds/<noun>.py`, `tests/gone/`, "
        "`cellar.py`, `sheds/tools`\n"
        "```\nrooms/ | words\ngarden/ | more\n```\n"
        "```python\nnot/looked/at\n```\n"
    )
    root = make(
        tmp_path,
        {
            "src/penstock/rooms/attic.py": "def open(): ...",
            "tests/test_x.py": "",
            "ARCHITECTURE.md": page,
            "CONTRIBUTING.md": "",
            "docs/decisions/0001-a.md": "`rooms/porch.py`",
        },
    )
    assert [line.split()[2].strip(",") for line in missing_places(root)] == [
        *("rooms/cellar.py", "sheds/", "tests/gone/", "cellar.py", "sheds/tools"),
        *("garden", "rooms/attic.py:", "rooms/porch.py"),
    ]


def test_a_crowded_folder_is_found(tmp_path: Path) -> None:
    names = [f"full/m{number}.py" for number in range(21)]
    house = make(tmp_path, dict.fromkeys(["full/__init__.py", "other/a.py", *names], ""))
    assert list(crowded_folders(house)) == ["full holds 21 modules; 20 is the most"]
    (house / "full" / "m0.py").unlink()
    assert list(crowded_folders(house)) == []


def test_a_module_without_a_docstring_is_found(tmp_path: Path) -> None:
    house = make(tmp_path, {"a.py": '"""Says."""\n', "b/c.py": "X = 1\n"})
    assert list(silent_modules(house)) == ["b/c.py has no docstring"]


def test_modules_that_import_each_other_are_found(tmp_path: Path) -> None:
    late = "def f():\n    from penstock.x import a\n"
    hint = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import penstock.x.a\n"
    files = {
        "x/__init__.py": "",
        "x/a.py": "from penstock.x.b import f\nimport penstock.x.hint\n",
        "x/b.py": "from penstock.x import c\n",
        "x/c.py": late,
        "x/hint.py": hint,
        "alone.py": "import json\nfrom penstock.x.a import f\n",
    }
    house = make(tmp_path / "penstock", files)
    assert find_cycles(house) == [["penstock.x.a", "penstock.x.b", "penstock.x.c"]]
    (house / "x" / "c.py").write_text("")
    assert find_cycles(house) == []


def test_imports_inside_functions_are_found(tmp_path: Path) -> None:
    inner = "class A:\n    async def f(self):\n        if self:\n            import json\n"
    house = make(tmp_path, {"a.py": "import json\n", "b/c.py": inner})
    assert list(late_imports(house)) == ["b/c.py"]


def test_rows_that_are_wrong_are_found(tmp_path: Path) -> None:
    rows = [*(f"penstock.p{number}" for number in range(8)), "penstock.p0 | penstock.a"]
    text = f'[[tool.importlinter.contracts]]\ntype = "layers"\nlayers = {rows}\n'
    files = {"pyproject.toml": text, "src/penstock/a.py": "", "src/penstock/b/__init__.py": ""}
    assert list(wrong_rows(make(tmp_path, files))) == [
        "the contract has 9 rows; 8 is the most",
        "p0 is in two rows",
        "b is in no row",
    ]


def test_decisions_that_share_a_number_are_found(tmp_path: Path) -> None:
    files = {"0001-a.md": "# 0001: A", "0001-b.md": "# 0001: B", "0002-c.md": "# 0003: C"}
    make(tmp_path, {f"docs/decisions/{name}": text for name, text in files.items()})
    assert list(wrong_decisions(tmp_path)) == [
        "0001-b.md has the number of 0001-a.md",
        "0002-c.md is not headed 0002",
    ]


def test_journeys_are_counted() -> None:
    page = "# A\n\n## Two journeys\n\n### One\n\n1. x\n\n### Two\n\n### Three\n\n## B\n\n### C\n"
    assert count_journeys(page) == ("two", 3)
