"""Views and functions in the console: what they are made from, and how people change that."""

import pytest

import penstock
from tests.console.conftest import LakeServer
from tests.harness.clients.browser import Page, broken_rules


@penstock.udf
def shout(name: str) -> str:
    return name.upper()


@penstock.chunker(outputs={"letter": str})
def spell(name):  # type: ignore[no-untyped-def]
    for letter in name:
        yield {"letter": letter}


@penstock.chunker(outputs={"letter": str}, version="backwards")
def spell_backwards(name):  # type: ignore[no-untyped-def]
    for letter in reversed(name):
        yield {"letter": letter}


@pytest.fixture(scope="module")
def fruits(shown: LakeServer) -> LakeServer:
    """The lake, with a chunker of two versions and a view by the first."""
    lake = shown.lake
    lake.create_namespace("fruits")
    made = lake.create_function("fruits.spell", spell)
    lake.create_view("fruits.letters", lake.table("shop.prices").select("name"), chunker=made)
    lake.create_function("fruits.spell", spell_backwards)
    lake.create_iceberg_view("fruits.cheap", "SELECT name FROM shop.prices")
    return shown


def test_a_view_tells_its_contract_and_what_a_refresh_would_do(console: Page) -> None:
    console.open("/view/shop/large")
    console.see("at most 1 min behind", "dd")
    console.see("never refreshed", ".state")
    console.see("the view was never filled", ".plan")
    console.see("shop.orders", "a.object")
    console.press("Definition")
    console.see("WHERE amount > 50", "pre.code")


def test_the_address_of_a_view_as_a_table_leads_to_the_view(console: Page) -> None:
    console.open("/table/shop/large?tab=rows")
    assert console.address() == "/view/shop/large?tab=rows"


def test_the_freshness_contract_of_a_view_is_changed(console: Page, shown: LakeServer) -> None:
    shown.lake.create_view("shop.kept", "SELECT name FROM shop.prices")
    console.open("/view/shop/kept").see("refreshed when somebody asks", "dd")
    console.press("Change").write("so many seconds behind", "300")
    console.write("this schedule", "0 6 * * MON-FRI").press("Save")
    console.see("at most 5 min behind", "dd")
    console.see("0 6 * * MON-FRI", "dd")
    console.see("in ", "dd time")


def test_a_query_is_altered_after_it_was_explained(console: Page, shown: LakeServer) -> None:
    view = shown.lake.create_view("shop.altered", "SELECT name FROM shop.prices")
    console.open("/view/shop/altered?tab=definition").press("Alter")
    allowed = "return !document.querySelector('dialog button[type=submit]').disabled"
    assert not console.driver.execute_script(allowed)
    console.write("Query", "SELECT nothing FROM shop.prices").press("Explain")
    console.see("nothing", "dialog [role=alert]")
    assert not console.driver.execute_script(allowed)
    console.write("Query", "SELECT name, price FROM shop.prices").press("Explain")
    assert "price" in console.see("Columns computed", "dialog dl").text
    assert console.driver.execute_script(allowed)
    assert broken_rules(console) == []
    # What was explained is not what stands there any more.
    console.write("Query", "SELECT price FROM shop.prices")
    assert not console.driver.execute_script(allowed)
    console.press("Explain").see("Columns dropped", "dialog dt")
    console.press("Alter")
    console.see("It waits for a runner")
    [job] = [each for each in shown.lake.jobs() if each.target == "shop.altered"]
    assert console.address() == f"/job/{job.id}"
    job.cancel()
    assert view.history()[0].edition == 0


def test_a_function_is_changed_by_its_name_and_version(console: Page, fruits: LakeServer) -> None:
    console.open("/view/fruits/letters?tab=definition").press("Alter")
    console.write("Function with a name", "fruits.spell").write("Version of the function", "3")
    console.press("Explain").see("version 3", "dialog [role=alert]")
    console.write("Version of the function", "2").press("Explain")
    console.see("the function decides", "dialog p")
    # No runner is there to try it.
    console.driver.execute_script("document.querySelector('dialog [type=checkbox]').click()")
    console.press("Alter").see("It waits for a runner")
    [job] = [each for each in fruits.lake.jobs() if each.target == "fruits.letters"]
    job.cancel()


def test_properties_are_given_changed_and_taken_away(console: Page, shown: LakeServer) -> None:
    shown.lake.create_view("shop.owned", "SELECT name FROM shop.prices")
    console.open("/view/shop/owned?tab=definition").press("Change properties")
    console.write("Key", "team").write("Value", "search").press("Save")
    console.see("team", "td .name")
    console.press("Change properties").write("Value of team", "fruits").press("Save")
    console.see("fruits", "td code")
    console.press("Change properties")
    field = "document.querySelector('dialog [aria-label=\\'Value of team\\']')"
    console.driver.execute_script(f"{field}.value = ''")
    console.press("Save")
    console.miss("fruits", "td code")


def test_a_view_without_rows_is_read_and_altered(console: Page, fruits: LakeServer) -> None:
    console.open("/catalog/fruits").press("cheap").settle()
    assert console.address() == "/iceberg-view/fruits/cheap"
    console.see("SELECT name FROM shop.prices", "pre.code")
    console.press("Rows")
    console.see("apple", "td")
    console.press("Definition").press("Alter")
    console.write("Query", "SELECT nothing FROM shop.prices").press("Alter")
    console.see("nothing", "dialog [role=alert]")
    console.write("Query", "SELECT name FROM shop.prices WHERE price < 1").press("Alter")
    console.see("price < 1", "pre.code")
    console.see("version 2", ".marks")


def test_a_function_tells_what_it_takes_its_versions_and_its_users(
    console: Page, fruits: LakeServer
) -> None:
    fruits.lake.create_function("fruits.shout", shout)
    console.open("/catalog/fruits").press("shout").settle()
    assert console.address() == "/function/fruits/shout"
    console.see("utf8", "td code")
    console.open("/function/fruits/spell").see("version 2", ".marks")
    console.see("fruits.letters", "td a")
    assert broken_rules(console) == []
    console.press("Disable").see("Disable spell", "dialog h2")
    console.press("Disable it").see("disabled", ".marks .state")
    console.press("Versions").see("enabled", "td .state")
    console.press("Version 1").settle()
    console.see("version 1", ".marks")
    console.press("Drop").write("to confirm", "spell").press("Drop the version")
    console.see("fruits$letters", "dialog [role=alert]")
