"""The drawer of the page: it stays calm while points come, and leads to where things are now."""

from __future__ import annotations

import pytest
from browser import NEEDS_BROWSER, NO_SELENIUM, PHONE, Page, groups, insert

pytest.importorskip("selenium.webdriver", reason=NO_SELENIUM)
pytestmark = NEEDS_BROWSER

OPEN = "document.querySelectorAll('#detail .points .point').length"
FACT = "document.querySelector('#detail .facts dd').textContent"


def open_first_cluster(page: Page) -> None:
    insert(page, groups(2, 6))
    page.open()
    page.until_text("#status", "live")
    page.click("#clusters-list .cluster[data-cluster='0']")
    page.until(f"{OPEN} >= 6")


def grow_first_cluster(page: Page) -> None:
    insert(page, groups(2, 9)[6:9])
    page.until(f"{FACT} === '9'")


def test_what_is_the_same_stays_while_points_come(page: Page) -> None:
    open_first_cluster(page)
    page.ask("(window.title = document.querySelector('#detail h2')).isConnected")
    page.ask("document.querySelector('#detail .points .plain').focus()")
    grow_first_cluster(page)
    assert page.ask("window.title.isConnected")
    assert page.ask("document.activeElement.closest('#detail .point') !== null")


def test_what_is_unfolded_stays_unfolded(page: Page) -> None:
    insert(page, groups(2, 6))
    page.open("#a=g0-0&b=g0-1")
    page.until_text("#status", "live")
    page.until("document.querySelector('#detail details')")
    page.ask("(document.querySelector('#detail details').open = true)")
    page.ask("(window.asked = performance.now())")
    insert(page, groups(2, 9)[6:9])
    page.until(
        "performance.getEntriesByType('resource')"
        ".some((e) => e.name.includes('/v1/explain') && e.startTime > window.asked)"
    )
    page.settle()
    assert page.ask("document.querySelector('#detail details').open")


def test_a_point_that_looks_like_another_is_told_apart(page: Page) -> None:
    """What is written of both is the same; where their buttons lead is not."""
    twin = {"vector": [10.0, 0.0], "payload": {"text": "the same story"}}
    insert(page, [*groups(2, 4), {"id": "p", **twin}, {"id": "first", **twin}])
    page.open("#point=p")
    page.until_text("#status", "live")
    page.until_text("#detail", "Nearest points")
    body = {"insert": [{"id": "second", **twin}], "delete": ["first"]}
    assert page.served.post("/v1/update", body).status_code == 200
    page.until("document.querySelector('#detail .point .plain').dataset.to.includes('second')")
    page.click("#detail .point .plain")
    page.until_text("#detail .id", "second")


def test_a_button_leads_to_the_node_of_the_cluster(page: Page) -> None:
    open_first_cluster(page)
    grow_first_cluster(page)
    node = page.served.client.get("/v1/clusters/0").json()["node_id"]
    page.click("#detail .chip")
    page.until(f"location.hash.includes('node={node}')")
    page.until_text("#way", "Open cluster")


def test_a_search_that_fails_says_so(page: Page) -> None:
    open_first_cluster(page)
    page.ask(
        """(window.fetch = async () =>
        new Response('{"detail": "the disk is full"}', { status: 503 })).name"""
    )
    page.ask("document.querySelector('#detail input').focus()")
    page.press("story")
    page.until_text("#banner.shown", "the disk is full")
    assert page.ask(OPEN) >= 6


def test_on_a_phone_the_hierarchy_is_seen_when_asked_for(page: Page) -> None:
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    try:
        open_first_cluster(page)
        page.click("#detail .chip")
        page.until("document.getElementById('detail').hidden")
        page.until_text("#way", "Open cluster")
    finally:
        page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
