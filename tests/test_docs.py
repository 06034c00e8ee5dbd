"""The documentation's checks find what they are for."""

import re
from pathlib import Path

import penstock
from penstock import errors
from penstock.model.codes import LANCE_ERRORS
from penstock.server.iceberg.errors import ICEBERG_ERRORS
from penstock.server.iceberg.routes import ROUTES
from penstock.server.lance.extensions import EXTENSIONS
from penstock.server.lance.operations import OPERATIONS
from penstock.server.metrics import Metrics
from penstock.settings.keys import list_keys
from scripts.api import api_page
from scripts.docs import (
    ROOT,
    errors_page,
    operations_page,
    routes_page,
    settings_page,
    stale_pages,
    write_pages,
)
from scripts.links import broken_links
from tests.attack.registry import FAMILIES


def test_every_setting_is_on_the_settings_page() -> None:
    page = settings_page()
    assert all(f"`{key.env}`" in page for key in list_keys())


def test_every_operation_is_on_the_operations_page() -> None:
    page = operations_page()
    for operation in OPERATIONS:
        row = f"| {operation.name} | {operation.method} | `/v1/{operation.path}` |"
        assert row in page


def test_every_extension_is_on_the_operations_page() -> None:
    page = operations_page()
    assert all(f"`/v1/{operation.path}`" in page for operation in EXTENSIONS)


def test_every_error_is_in_the_table_of_the_protocol_page() -> None:
    page = (ROOT / "docs" / "reference" / "protocol.md").read_text(encoding="utf-8")
    assert all(f"| {status} | {code} |" in page for status, code in LANCE_ERRORS.values())


def test_every_error_of_the_iceberg_protocol_is_on_its_page() -> None:
    page = (ROOT / "docs" / "reference" / "iceberg.md").read_text(encoding="utf-8")
    assert all(f"| {status} | `{kind}` |" in page for status, kind, _ in ICEBERG_ERRORS.values())


def test_every_route_of_the_iceberg_protocol_is_on_the_page_of_routes() -> None:
    page = routes_page()
    assert all(f"| {route.name} | {route.method} | `{route.path}` |" in page for route in ROUTES)


def test_every_public_name_is_on_the_page_of_the_python_api() -> None:
    page = api_page()
    for name in set(penstock.__all__) - {"__version__", "aio", "errors"}:
        assert re.search(rf"^## (penstock\.)?{name}$", page, re.MULTILINE), name
    for method in ("Table.backfill", "View.refresh", "Job.wait", "Lake.create_table"):
        assert f"### {method}\n" in page


def test_every_error_is_on_the_page_of_errors() -> None:
    named = re.findall(r"(\w+)(?=\s{2,}|$)", errors.__doc__ or "", re.MULTILINE)
    tree = [each for each in named if isinstance(getattr(errors, each, None), type)]
    page = errors_page()
    assert len(tree) > 50
    assert [each for each in tree if f"`{each}`" not in page] == []


def test_every_metric_is_on_the_operating_page() -> None:
    page = (ROOT / "docs" / "guides" / "operating.md").read_text(encoding="utf-8")
    lines = Metrics().render().decode().splitlines()
    names = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert names
    assert all(f"`{name}`" in page for name in names)


def test_a_page_is_stale_until_it_is_written(tmp_path: Path) -> None:
    assert any(
        "docs/reference/settings.md is out of date" in line for line in stale_pages(tmp_path)
    )
    write_pages(tmp_path)
    assert list(stale_pages(tmp_path)) == []


def test_a_relative_link_must_lead_to_a_file_and_a_heading(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text(
        "# One `a`, two\n```\n# no heading\n```\n[b](b.md) [up](../README.md#top) `[c](c.md)`\n"
        "[here](#one-a-two) [there](#no-heading)"
    )
    (tmp_path / "README.md").write_text(
        "# Top\n[a](docs/a.md#one-a-two) [web](https://example.org/x.md) [other](docs/a.md#two)\n"
        "```\n[code](code.md)\n```\n[gone](gone.md)"
    )
    assert list(broken_links(tmp_path)) == [
        "README.md links to docs/a.md#two, but a.md has no such heading",
        "README.md links to gone.md, which does not exist",
        "docs/a.md links to b.md, which does not exist",
        "docs/a.md links to #no-heading, but a.md has no such heading",
    ]


def missing_proofs(page: str) -> list[str]:
    """What is wrong with the proofs of claims: rows without one, and tests that do not exist."""
    wrong = []
    for row in re.findall(r"^\| (?!claim|---).*\|$", page, re.M):
        claim, _, proof = (cell.strip() for cell in row.strip("|").split(" | "))
        tests = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", proof)
        families = re.findall(r"attacks `(\w+)`", proof)
        if not tests and not families:
            wrong.append(f"{claim!r} has no test")
        for path, name in tests:
            file = ROOT / path
            if not file.exists() or f"def {name}(" not in file.read_text(encoding="utf-8"):
                wrong.append(f"{claim!r} names {path}::{name}, which does not exist")
        wrong += [f"{claim!r} names attacks {f}" for f in families if f not in FAMILIES]
    return wrong


def test_every_claim_about_security_has_a_test_that_exists() -> None:
    page = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert page.count("\n| ") > 30
    assert missing_proofs(page) == []


def test_a_claim_without_a_test_is_found() -> None:
    head = "| claim | mechanism | test |\n| --- | --- | --- |\n"
    assert missing_proofs(f"{head}| a | b | c |\n") == ["'a' has no test"]
    gone = f"{head}| a | b | `tests/test_docs.py::test_gone`, attacks `none` |\n"
    assert [each.partition(" names ")[2] for each in missing_proofs(gone)] == [
        "tests/test_docs.py::test_gone, which does not exist",
        "attacks none",
    ]
