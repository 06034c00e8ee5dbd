"""The console for everybody: by keyboard, by screen reader, in both themes, on any screen."""

import pytest
from selenium.webdriver.common.keys import Keys

from tests.harness.clients.browser import Page, broken_rules

PAGES = [
    *("", "/catalog", "/catalog/shop", "/jobs", "/sql", "/access", "/lineage"),
    *("/table/media/photos", "/table/shop/orders?tab=schema", "/table/shop/orders?tab=versions"),
    *("/table/shop/orders?tab=columns", "/table/shop/orders?tab=refs"),
    *("/view/shop/large", "/view/shop/large?tab=definition", "/lineage/shop/orders?kind=table"),
    *("/iceberg-table/ice/events", "/iceberg-table/ice/events?tab=snapshots"),
    *("/iceberg-table/ice/events?tab=layout", "/iceberg-table/ice/events?tab=readers"),
]


WIDE, NARROW = 2560, 320


@pytest.mark.parametrize("path", PAGES)
def test_a_page_breaks_no_rule_of_accessibility_and_fits_every_screen(
    console: Page, path: str
) -> None:
    console.look(WIDE, 800).open(path)
    assert broken_rules(console) == []
    assert_fits(console, WIDE)
    console.look(WIDE, 800, dark=True)
    assert broken_rules(console) == []
    console.look(NARROW, 800)
    assert_fits(console, NARROW)


@pytest.mark.parametrize("path", ["", "/lineage/shop/orders?kind=table"])
def test_a_page_that_is_opened_on_a_narrow_screen_fits_it(console: Page, path: str) -> None:
    console.look(NARROW, 800).open(path)
    assert_fits(console, NARROW)


def assert_fits(console: Page, width: int) -> None:
    wide = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert console.driver.execute_script(wide) <= 0
    used = "return document.querySelector('main').getBoundingClientRect().width"
    assert console.driver.execute_script(used) > 0.85 * width - 20


def test_on_a_narrow_screen_the_menu_opens_and_closes(console: Page) -> None:
    console.look(320, 800).open("/jobs")
    assert not console.offers("Catalog")
    console.press("Menu")
    console.see("Catalog", ".drawn .side a")
    console.key(Keys.ESCAPE)
    console.miss("Catalog", ".drawn .side a")
    console.press("Menu").press("Catalog").settle()
    assert console.address() == "/catalog"
    console.miss("Catalog", ".drawn .side a")


def test_everything_is_reached_by_keyboard_and_the_focus_is_seen(console: Page) -> None:
    console.open("/table/shop/orders")
    console.driver.execute_script("document.body.focus()")
    seen = set()
    for _ in range(40):
        console.key(Keys.TAB)
        told = console.driver.execute_script(
            """const at = document.activeElement, style = getComputedStyle(at);
            const seen = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
            return [(at.getAttribute("aria-label") ?? at.textContent).trim().slice(0, 40),
              at === document.body || seen];"""
        )
        assert told[1], f"the focus is not seen on {told[0]!r}"
        seen.add(told[0])
    assert {"Skip to the page", "Overview", "Lineage", "Drop", "Rows", "Show"} <= seen


def test_tabs_are_walked_with_arrows_and_dialogs_keep_and_return_the_focus(console: Page) -> None:
    console.open("/table/shop/orders")
    console.driver.execute_script("document.querySelector('[role=tab]').focus()")
    console.key(Keys.ARROW_RIGHT)
    console.see("Columns", "h2")
    assert "tab=schema" in console.address()
    console.driver.execute_script("document.querySelector('.page-title .danger').focus()")
    console.key(Keys.ENTER)
    console.see("This cannot be undone", "dialog")
    console.see("What depends on it", "dialog strong")
    console.see("shop.large", "dialog a.object")
    assert broken_rules(console) == []
    confirmed = "return document.querySelector('dialog button.danger').disabled"
    assert console.driver.execute_script(confirmed)
    console.key(Keys.ESCAPE)
    assert console.driver.switch_to.active_element.text == "Drop"


def test_the_theme_is_the_systems_until_somebody_chooses(console: Page) -> None:
    ground = "return getComputedStyle(document.body).backgroundColor"
    console.look(dark=True).open("/jobs")
    dark = console.driver.execute_script(ground)
    console.press("Theme: as the system")
    assert console.driver.execute_script(ground) != dark
    console.open("/catalog")
    assert console.driver.execute_script(ground) != dark
    console.press("Theme: light")
    assert console.driver.execute_script(ground) == dark


def test_who_wants_no_motion_gets_none(console: Page) -> None:
    still = {"features": [{"name": "prefers-reduced-motion", "value": "reduce"}]}
    console.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", still)
    console.open("/jobs")
    console.driver.execute_script(
        "document.querySelector('main').append(Object.assign(document.createElement('div'),"
        " {className: 'skeleton', id: 'probe', innerText: ''}))"
    )
    moves = "return getComputedStyle(document.querySelector('.twist .icon, .icon')).animationName"
    assert console.driver.execute_script(moves) == "none"
