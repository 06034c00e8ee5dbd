"""A real Chromium that tests drive: what a page shows, and what people do on it."""

import contextlib
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from axe_core_python.selenium import Axe
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from tests.harness.processes.waiting import until

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ADVICE = (
    "no Chromium with its driver: install them (Debian, Ubuntu: apt install chromium "
    "chromium-driver) to have the console tested"
)
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-dev-shm-usage", "--hide-scrollbars", "--force-device-scale-factor=1"),
)
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]
# Pages come in milliseconds, and later on a busy machine.
SECONDS = 30
# What can be pressed, by the name that people and screen readers know it by.
PRESS = """
const [name, exact] = arguments;
const scope = document.querySelector("dialog[open]") ?? document;
const all = [...scope.querySelectorAll("button, a, summary, [role=tab]")].filter(
  (each) => each.checkVisibility({visibilityProperty: true}) && !each.disabled);
const named = (each) => (each.getAttribute("aria-label") ?? each.textContent).trim();
return all.find((each) => named(each) === name)
  ?? (exact ? null : all.find((each) => named(each).includes(name))) ?? null;
"""
FIND = """
const [css, text] = arguments;
return [...document.querySelectorAll(css)].find((each) =>
  each.checkVisibility({visibilityProperty: true}) && each.textContent.includes(text)) ?? null;
"""
# Everything that is loading has come.
CALM = """return document.readyState === "complete" && document.querySelector("main, .gate")
  && !document.querySelector("[aria-busy=true], .skeleton");"""


@dataclass
class Page:
    """A tab of the browser, at one server's console."""

    driver: webdriver.Chrome
    url: str = ""

    def open(self, path: str = "") -> "Page":
        self.driver.get(f"{self.url}/console{path}")
        return self.settle()

    def settle(self) -> "Page":
        """Wait until nothing loads any more."""
        self._wait(lambda: self._run(CALM), "it still loads")
        return self

    def text(self) -> str:
        return str(self.driver.execute_script("return document.body.innerText"))

    def address(self) -> str:
        return self.driver.current_url.removeprefix(f"{self.url}/console")

    def see(self, text: str, css: str = "body *") -> WebElement:
        """Wait for an element with this text."""
        found: WebElement = self._wait(
            lambda: self._run(FIND, css, text), f"{text!r} never came in {css!r}"
        )
        return found

    def miss(self, text: str, css: str = "body *") -> None:
        """Wait until no element has this text."""
        self._wait(lambda: self._run(FIND, css, text) is None, f"{text!r} never went")

    def offers(self, name: str) -> bool:
        """Whether something of exactly this name can be pressed at this moment."""
        return self._run(PRESS, name, True) is not None

    def press(self, name: str) -> "Page":
        """Press a button, link or tab by its name."""
        self._wait(lambda: self._click(name), f"nothing to press is called {name!r}")
        return self

    def _click(self, name: str) -> bool:
        found = self._run(PRESS, name, False)
        if found is not None:
            self.driver.execute_script("arguments[0].click()", found)
        return found is not None

    def write(self, label: str, text: str, *, enter: bool = False) -> "Page":
        """Write into the field of this label."""
        found = self._wait(lambda: self._field(label), f"no field is called {label!r}")
        found.clear()
        found.send_keys(text + (Keys.ENTER if enter else ""))
        return self

    def _field(self, label: str) -> Any:
        return self._run(
            """const scope = document.querySelector("dialog[open]") ?? document;
            return [...scope.querySelectorAll("input, textarea, select")].find((each) =>
              each.checkVisibility() && [each.getAttribute("aria-label"), each.placeholder,
                each.closest("label")?.textContent].some((name) => name?.includes(arguments[0])))
              ?? null;""",
            label,
        )

    def key(self, *keys: str) -> "Page":
        """Press keys where the focus is."""
        self.driver.switch_to.active_element.send_keys(*keys)
        return self

    def count(self, css: str) -> int:
        return len(self.driver.find_elements(By.CSS_SELECTOR, css))

    def fetch(self, path: str, body: Any = None, method: str = "POST") -> int:
        """Ask the server as the page would; returns the status."""
        return int(
            self.driver.execute_async_script(
                """const [path, body, method, done] = arguments;
                fetch(path, {method, body}).then((answer) => done(answer.status));""",
                path,
                None if body is None else json.dumps(body),
                method,
            )
        )

    def look(self, width: int = 1280, height: int = 900, *, dark: bool = False) -> "Page":
        """Look at it on another screen."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        return self

    def photograph(self, path: Path) -> None:
        self.driver.save_screenshot(str(path))

    def complaints(self) -> list[str]:
        """What the browser complained of since the last look, but for answers that are errors."""
        log: Any = self.driver.get_log("browser")  # type: ignore[no-untyped-call]
        found = [str(entry["message"]) for entry in log]
        return [each for each in found if "Failed to load resource" not in each]

    def forget(self) -> None:
        """Be a new visitor: no cookies, nothing kept, one tab."""
        first, *others = self.driver.window_handles
        for other in others:
            self.driver.switch_to.window(other)
            self.driver.close()
        self.driver.switch_to.window(first)
        if self.url:
            origin = {"origin": self.url, "storageTypes": "all"}
            self.driver.execute_cdp_cmd("Storage.clearDataForOrigin", origin)
        self.driver.delete_all_cookies()
        self.driver.get("about:blank")
        self.complaints()
        self.look()

    def _wait(self, look: Callable[[], Any], complaint: str) -> Any:
        """Look until there is something; complain with what the page has at the end."""
        try:
            return until(look, complaint, SECONDS)
        except AssertionError as error:
            raise AssertionError(f"{complaint}; the page has:\n{self.text()}") from error

    def _run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)


def broken_rules(page: Page) -> list[str]:
    """The rules of accessibility that the page breaks, by axe."""
    found = Axe().run(page.driver, options={"runOnly": RULES})
    return [
        f"{each['id']}: {each['help']}: {each['nodes'][0]['html'][:160]}"
        for each in found["violations"]
    ]


def find_browser() -> tuple[str, str] | None:
    """Where Chromium and its driver are."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    driver = shutil.which("chromedriver")
    return None if browser is None or driver is None else (browser, driver)


@contextlib.contextmanager
def browsing() -> Iterator[webdriver.Chrome]:
    """A Chromium with a profile of its own; skips the test where there is none."""
    found = find_browser()
    if found is None:
        pytest.skip(ADVICE)
    with tempfile.TemporaryDirectory(prefix="penstock-browser-") as profile:
        options = Options()
        options.binary_location = found[0]
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        driver = webdriver.Chrome(options=options, service=Service(found[1]))
        try:
            driver.set_script_timeout(60)
            yield driver
        finally:
            driver.quit()
