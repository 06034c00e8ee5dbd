"""Signing in to the console, what each role is offered there, and sessions that end."""

import uuid
from collections.abc import Iterator

import pytest

import penstock
from tests.console.lakes import make_orders
from tests.harness.clients import iceberg_tables
from tests.harness.clients.browser import Page, broken_rules
from tests.harness.processes import servers
from tests.harness.processes.access import (
    CLIENT,
    CLIENT_SECRET,
    GuardedServer,
    Issuer,
    guarded,
    issuing,
)
from tests.harness.processes.waiting import until


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    with issuing() as found:
        # Another site than the console's, as to cookies.
        found.host = "localhost"
        yield found


@pytest.fixture(scope="module")
def gate(issuer: Issuer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedServer]:
    port = str(servers.free_port())
    environ = {
        **issuer.environ(),
        "PENSTOCK__AUTH__OIDC_CLIENT_ID": CLIENT,
        "PENSTOCK__AUTH__OIDC_CLIENT_SECRET": CLIENT_SECRET,
        "PENSTOCK__AUTH__OIDC_REDIRECT_URL": f"http://127.0.0.1:{port}/console/api/signed-in",
    }
    with guarded(tmp_path_factory.mktemp("data"), "--port", port, environ=environ) as found:
        name = f"admin{uuid.uuid4().hex[:8]}"
        for role in ("owner", "functions"):
            found.grant(name, role)
        lake = penstock.connect(found.server.url, api_key=found.key(name))
        for namespace in ("shop", "hidden"):
            lake.create_namespace(namespace)
            orders = lake.create_table(f"{namespace}.orders", make_orders(20))
        lake.table("shop.orders").add_column("doubled", computed="amount * 2")
        lake.create_view("shop.large", "SELECT id, amount FROM shop.orders WHERE amount > 50")
        assert orders.count() == 20
        yield found


@pytest.fixture
def door(page: Page, gate: GuardedServer) -> Page:
    page.url = gate.server.url
    return page


def enter(page: Page, key: str, path: str = "") -> Page:
    page.driver.get(f"{page.url}/console{path}")
    page.see("Sign in", "h1")
    page.write("Key", key).press("Sign in")
    page.see("Signed in as", ".side-foot")
    return page.settle()


def somebody(gate: GuardedServer, *roles: str) -> tuple[str, str]:
    """A principal with roles on the namespace shop; returns the name and a key."""
    name = f"p{uuid.uuid4().hex[:8]}"
    for role in roles:
        gate.grant(name, role, "namespace", "shop")
    return name, gate.key(name)


def test_nobody_gets_in_without_a_key_and_the_answer_says_so(door: Page) -> None:
    door.driver.get(f"{door.url}/console/table/shop/orders")
    door.see("Sign in", "h1")
    assert door.count(".side") == 0
    assert broken_rules(door) == []
    door.write("Key", "pstk_nothing").press("Sign in")
    door.see("", "[role=alert]")
    assert door.count(".side") == 0


def test_after_signing_in_the_page_that_was_asked_for_is_shown(
    door: Page, gate: GuardedServer
) -> None:
    name, key = somebody(gate, "reader")
    enter(door, key, "/table/shop/orders")
    door.see("orders", "h1")
    door.see(name, ".side-foot")
    cookies = door.driver.get_cookies()
    assert [(each["httpOnly"], each["sameSite"]) for each in cookies] == [(True, "Strict")]
    kept = "return JSON.stringify([localStorage, sessionStorage, document.cookie])"
    assert "pstk" not in door.driver.execute_script(kept)


def test_somebody_signs_in_at_the_issuer_and_goes_on_where_they_wanted_to_be(
    door: Page, gate: GuardedServer, issuer: Issuer
) -> None:
    name = f"o{uuid.uuid4().hex[:8]}"
    team = f"team{name}"
    gate.grant(f"group:{team}", "reader", "namespace", "shop")
    issuer.visitor = {"sub": name, "groups": [team]}
    door.driver.get(f"{door.url}/console/table/shop/orders?tab=schema")
    door.see("Sign in", "h1")
    assert broken_rules(door) == []
    door.press("Sign in with your organisation")
    door.see(f"Go on as {name}", "a")
    assert door.driver.current_url.startswith("http://localhost:")
    door.press(f"Go on as {name}")
    door.see(f"oidc:{name}", ".side-foot")
    assert door.address() == "/table/shop/orders?tab=schema"
    door.see("amount * 2", "code")
    assert not door.offers("Drop")
    [cookie] = door.driver.get_cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    assert door.fetch("/v1/table/shop$orders/drop", {}) == 403
    door.press("Sign out").see("Sign in", "h1")


def test_who_does_not_go_on_at_the_issuer_is_told_and_may_use_a_key(
    door: Page, gate: GuardedServer
) -> None:
    door.driver.get(f"{door.url}/console")
    door.press("Sign in with your organisation").press("Not now")
    door.see("The issuer did not sign you in", "[role=alert]")
    assert door.count(".side") == 0
    door.write("Key", somebody(gate, "reader")[1]).press("Sign in")
    door.see("Overview", "h1")


def test_an_iceberg_table_is_shown_to_its_readers_and_dropped_by_its_owners(
    door: Page, gate: GuardedServer
) -> None:
    for namespace in ("shop", "hidden"):
        iceberg_tables.make(gate.admin(), namespace, "ice")
    enter(door, somebody(gate, "reader")[1], "/iceberg-table/shop/ice")
    door.see("long", "td code")
    assert door.offers("Lineage")
    assert not door.offers("Drop")
    assert door.fetch("/iceberg/v1/namespaces/shop/tables/ice", method="DELETE") == 403
    door.open("/catalog?kinds=iceberg_table&q=ice").see("shop.ice", "td a")
    assert not door.offers("hidden.ice")
    door.open("/iceberg-table/hidden/ice").see("does not exist: hidden.ice", "[role=alert]")
    door.forget()
    enter(door, somebody(gate, "owner")[1], "/iceberg-table/shop/ice")
    door.press("Drop").write("to confirm", "ice").press("Drop the table")
    door.see("ice was dropped", ".toast")
    assert door.open("/iceberg-table/shop/ice").see("does not exist", "[role=alert]")


def test_a_reader_sees_no_button_that_would_be_refused(door: Page, gate: GuardedServer) -> None:
    enter(door, somebody(gate, "reader")[1], "/table/shop/orders")
    assert door.offers("Lineage")
    assert not door.offers("Drop")
    door.open("/table/shop/orders?tab=columns").see("unfilled", ".state")
    assert door.offers("Explain")
    assert not door.offers("Backfill")
    door.open("/table/shop/orders?tab=refs").see("No tags")
    assert not door.offers("Tag it")
    door.open("/table/shop/orders?tab=versions").see("Version 1", "a")
    assert not door.offers("Restore")
    door.open("/view/shop/large").see("Freshness contract")
    assert [door.offers(each) for each in ("Refresh", "Verify", "Change", "Drop")] == [False] * 4
    door.open("/catalog/shop").see("orders", "td")
    assert not door.offers("Drop namespace")
    door.open("/access").see("This session", "h2")
    assert [door.offers(each) for each in ("Keys", "Audit")] == [False] * 2


def test_a_writer_is_offered_what_writes_and_an_owner_all(door: Page, gate: GuardedServer) -> None:
    enter(door, somebody(gate, "writer")[1], "/view/shop/large")
    assert [door.offers(each) for each in ("Refresh", "Verify")] == [True] * 2
    assert not door.offers("Drop")
    door.press("Refresh")
    door.see("It waits for a runner")
    assert door.offers("Cancel")
    door.press("Sign out")
    door.see("Sign in", "h1")
    enter(door, somebody(gate, "owner")[1], "/view/shop/large")
    assert [door.offers(each) for each in ("Refresh", "Change", "Drop")] == [True] * 3


def test_what_somebody_may_not_see_is_nowhere(door: Page, gate: GuardedServer) -> None:
    enter(door, somebody(gate, "reader")[1])
    assert "1" in door.see("Table", "a.figure").text.split()
    door.open("/catalog").see("shop", "td")
    assert "hidden" not in door.text()
    door.press("Search").write("Search names", "orders")
    door.see("1 found", "dialog")
    door.open("/table/hidden/orders")
    door.see("does not exist", "[role=alert]")


def test_the_catalogs_owner_sees_keys_grants_and_the_audit_log(
    door: Page, gate: GuardedServer
) -> None:
    name = f"boss{uuid.uuid4().hex[:6]}"
    gate.grant(name, "owner")
    enter(door, gate.key(name), "/access?tab=grants")
    door.see(name, "td")
    door.write("Principal", "carol").press("Grant")
    door.see("On the whole catalog", "dialog")
    door.press("Grant")
    door.see("carol", "td")
    door.press("Revoke reader of carol").press("Revoke")
    door.miss("carol", "td")
    door.press("Keys").see(name, "td")
    # The log is written behind the answers, some at once.
    until(lambda: "CreateGrant" in door.open("/access?tab=audit").text(), "no entry came")


def test_a_session_that_ends_asks_for_the_key_and_goes_on_where_it_was(
    door: Page, gate: GuardedServer
) -> None:
    name, _ = somebody(gate, "reader")
    token, key = gate.make_key(name)
    enter(door, key, "/table/shop/orders")
    gate.revoke(token.id)
    door.press("Schema")
    door.press("Versions")
    door.see("Your session has ended", "h1")
    door.write("Key", gate.key(name)).press("Sign in")
    door.see("orders", "h1")
    assert door.address().startswith("/table/shop/orders")


def test_signing_out_in_one_tab_ends_the_other(door: Page, gate: GuardedServer) -> None:
    enter(door, somebody(gate, "reader")[1], "/jobs")
    first = door.driver.current_window_handle
    door.driver.switch_to.new_window("tab")
    door.look().open("/catalog").see("shop", "td")
    door.press("Sign out")
    door.see("Sign in", "h1")
    door.driver.close()
    door.driver.switch_to.window(first)
    door.see("Your session has ended", "h1")


def test_a_request_without_the_pages_token_changes_nothing(door: Page, gate: GuardedServer) -> None:
    enter(door, somebody(gate, "owner")[1])
    assert door.fetch("/v1/table/shop$orders/drop", {}) == 403
    door.open("/table/shop/orders").see("orders", "h1")
