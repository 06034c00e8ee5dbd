"""Whether there is a browser to test the console in; without one this is the only test of it."""

from selenium import webdriver

from tests.harness.clients.browser import Page


def test_there_is_a_browser(tab: Page) -> None:
    assert isinstance(tab.driver, webdriver.Chrome)
