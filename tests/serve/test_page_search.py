"""The search of the page: its address, its keys, and where the focus is."""

from __future__ import annotations

import pytest
from browser import NEEDS_BROWSER, NO_SELENIUM, Page, groups, insert

pytest.importorskip("selenium.webdriver", reason=NO_SELENIUM)
from selenium.webdriver.common.keys import Keys

pytestmark = NEEDS_BROWSER

HITS = "document.querySelectorAll('#search-hits [role=option]').length"
SHOWN = "document.getElementById('search').getAttribute('aria-expanded') === 'true'"


def test_a_search_has_an_address(page: Page) -> None:
    insert(page, groups(3, 5))
    page.open("#q=number3")
    page.until(f"{HITS} === 3")
    assert page.ask("document.getElementById('search').value") == "number3"
    assert page.ask("document.getElementById('search-data').href").endswith("q=number3&limit=12")
    # The way back from a hit leads to the search.
    page.press(Keys.ARROW_DOWN, Keys.ENTER)
    page.until_text("#detail h2", "story number3")
    assert "q=" not in page.ask("location.hash")
    page.driver.back()
    page.until(f"location.hash === '#q=number3' && {SHOWN}")
    page.press(Keys.ESCAPE)
    page.until(f"location.hash === '' && !({SHOWN})")


def test_names_of_clusters_are_told_when_they_are_known(page: Page) -> None:
    insert(page, groups(2, 5))
    page.open("#q=story")
    page.until(f"{HITS} === 10")
    page.until_text("#search-hits", "topic0")
    page.until("!document.getElementById('search-hits').textContent.includes('· Cluster ')")


def test_the_tab_key_reaches_the_data_of_the_search(page: Page) -> None:
    insert(page, groups(2, 5))
    page.open()
    page.until_text("#status", "live")
    page.press("/")
    page.press("story")
    page.until(f"{HITS} === 10")
    page.press(Keys.TAB)
    assert page.ask("document.activeElement.id") == "search-data"
    page.settle()
    assert page.ask(SHOWN)
    page.press(Keys.TAB)
    page.until(f"!({SHOWN}) && !location.hash.includes('q=')")


def test_another_window_does_not_end_the_search(page: Page) -> None:
    """Such as the field of the address, from which it is copied."""
    insert(page, groups(2, 5))
    page.open("#q=story")
    page.until(f"{HITS} === 10")
    # What the browser sends when the window loses the focus.
    left = "new FocusEvent(arguments[0], {bubbles: true})"
    for kind in ("blur", "focusout"):
        page.ask(f"document.getElementById('search').dispatchEvent({left})", kind)
    page.settle()
    assert page.ask(SHOWN)
    assert page.ask("location.hash") == "#q=story"
