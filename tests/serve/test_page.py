"""The page in a real browser: Chromium from the system's packages, driven by Selenium.

What is drawn on the canvas is read from its twin, the table for screen readers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import NEEDS_BROWSER, NO_SELENIUM, PHONE, Page, groups, insert
from serving import READ, WRITE, serving

from dynhac.serve.tokens import Tokens

pytest.importorskip("selenium.webdriver", reason=NO_SELENIUM)
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

pytestmark = NEEDS_BROWSER
HOSTILE = '<img src=x onerror="window.hacked = 1"><script>window.hacked = 1</script>'

MORE = [
    {"id": f"new-{i}", "vector": [-10.0, 0.01 * i], "payload": {"text": "quite new"}}
    for i in range(4)
]


def test_an_empty_store_tells_how_to_begin_and_its_command_works(page: Page) -> None:
    page.open()
    page.until("!document.getElementById('empty').hidden")
    command = page.text("#empty-command")
    assert f"{page.served.url}/v1/points" in command
    body = command.split("-d '")[1].rstrip("'")
    answer = page.served.client.post(
        "/v1/points", content=body, headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 200, answer.text
    page.until("!document.getElementById('views').hidden")
    page.until_text("#n-points", "3")
    page.until_text("#twin tbody", "3 points")


def test_an_insertion_is_seen_in_icicle_list_feed_and_numbers(page: Page) -> None:
    insert(page, groups(2, 4))
    page.open()
    page.until_text("#status", "live")
    page.until("document.querySelectorAll('#clusters-list .cluster').length === 2")
    page.until_text("#twin tbody", "8 points")
    insert(page, MORE)
    page.until_text("#n-points", "12")
    page.until("document.querySelectorAll('#clusters-list .cluster').length === 3")
    page.until_text("#twin tbody", "12 points")
    page.until_text("#feed-list", "born")
    page.until("document.querySelectorAll('#timeline .lane').length === 3")
    # The same colour for a cluster in the list and in the feed.
    colours = page.ask(
        "[...document.querySelectorAll('#clusters-list .swatch')].map((s) => s.style.background)"
    )
    assert len(set(colours)) == 3
    assert page.ask("document.querySelector('#feed-list .swatch').style.background") in colours


def test_the_drawer_of_a_cluster_and_why_two_members_are_together(page: Page) -> None:
    insert(page, groups(2, 6))
    page.open()
    page.click("#clusters-list .cluster")
    page.until("!document.getElementById('detail').hidden")
    page.until("document.querySelectorAll('#detail .points .point').length >= 6")
    assert "cluster=" in page.ask("location.hash")
    page.ask("document.querySelectorAll('#detail .small')[0].click()")
    page.until("document.querySelector('#detail .small.chosen')")
    page.ask("document.querySelectorAll('#detail .small')[1].click()")
    page.until_text("#detail h2", "They are in one cluster")
    assert "a=" in page.ask("location.hash")
    page.open("#a=g0-0&b=g1-0")
    page.until("document.querySelector('#detail h2')")
    assert "one cluster" not in page.text("#detail h2") or "not" in page.text("#detail h2")
    assert "/v1/explain?a=g0-0&b=g1-0" in page.ask("document.querySelector('#detail-data').href")


def test_search_opens_a_point_with_its_path(page: Page) -> None:
    insert(page, groups(3, 5))
    page.open()
    page.until("document.querySelectorAll('#clusters-list .cluster').length === 3")
    page.press("/")
    page.until("document.activeElement.id === 'search'")
    page.press("number3")
    page.until("document.querySelectorAll('#search-hits [role=option]').length === 3")
    page.press(Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ENTER)
    page.until_text("#detail h2", "story number3")
    page.until("document.querySelectorAll('#detail .path li').length >= 2")
    assert page.ask("location.hash").startswith("#point=g")
    page.press(Keys.ESCAPE)
    page.until("document.getElementById('detail').hidden")
    # An id comes first.
    page.press("/")
    page.ask("document.getElementById('search').select()")
    page.press("g2-4", Keys.ENTER)
    page.until_text("#detail h2", "topic2 story number4")


def test_hostile_and_strange_texts_stay_text(page: Page) -> None:
    long = "i" * 200
    points = groups(2, 3)
    points[0]["payload"] = {"text": HOSTILE, HOSTILE: HOSTILE}
    points[1]["payload"] = {"text": "ارتفاع أسعار القهوة في البرازيل"}
    points[2] |= {"payload": {"title": "咖啡价格上涨"}, "id": HOSTILE}
    points[3] |= {"payload": {}, "id": long}
    points[4] |= {"payload": {"deep": {"list": [1, HOSTILE]}}, "id": "a/b?c#d"}
    insert(page, points)
    page.open()
    page.until("document.querySelectorAll('#clusters-list .cluster').length === 2")
    for id in (points[0]["id"], HOSTILE, long, "a/b?c#d"):
        view = page.ask("'#' + new URLSearchParams({point: arguments[0]})", id)
        page.open(view)
        page.until("document.querySelector('#detail .id')?.textContent === arguments[0]", id)
        wide = page.ask("document.documentElement.scrollWidth <= innerWidth")
        assert wide
        if id == points[0]["id"]:
            assert page.text("#detail h2") == HOSTILE
    page.open("#cluster=0")
    page.until("document.querySelectorAll('#detail .points .point').length >= 3")
    assert page.ask("document.querySelectorAll('img, #detail script').length") == 0
    page.press("/")
    page.press("onerror")
    page.until("document.querySelectorAll('#search-hits [role=option]').length > 0")


def test_the_keyboard_walks_list_and_icicle(page: Page) -> None:
    insert(page, groups(2, 4))
    page.open()
    page.until("document.querySelectorAll('#clusters-list .cluster').length === 2")
    page.ask("document.querySelector('#clusters-list .cluster[tabindex=\"0\"]').focus()")
    page.press(Keys.ARROW_DOWN, Keys.ENTER)
    second = page.ask("document.querySelectorAll('#clusters-list .cluster')[1].dataset.cluster")
    page.until("location.hash === arguments[0]", f"#cluster={second}")
    page.until("!document.getElementById('detail').hidden")
    page.press(Keys.ESCAPE)
    page.until("document.getElementById('detail').hidden")
    page.until_text("#twin tbody", "8 points")
    page.ask("document.getElementById('icicle').focus()")
    page.press(Keys.ARROW_DOWN)
    page.until_text("#icicle-told", "All points")
    page.press(Keys.ARROW_DOWN)
    page.until_text("#icicle-told", "4 points")
    first = page.text("#icicle-told")
    page.press(Keys.ARROW_RIGHT)
    page.until("document.getElementById('icicle-told').textContent !== arguments[0]", first)
    page.press(Keys.SPACE)
    page.until("location.hash.startsWith('#node=')")
    page.until("document.querySelector('#twin tbody').textContent.includes('4 points')")
    page.until("!document.querySelector('#twin tbody').textContent.includes('8 points')")
    page.press(Keys.BACKSPACE)
    page.until_text("#twin tbody", "8 points")
    page.press(Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ENTER)
    page.until("location.hash.includes('cluster=') || location.hash.includes('point=')")


def test_a_window_of_time_is_chosen_with_the_keyboard_and_kept_in_the_address(page: Page) -> None:
    for point in groups(2, 4):
        insert(page, [point])
    page.open()
    page.until("document.querySelectorAll('#timeline .lane').length === 2")
    page.ask("document.getElementById('timeline').focus()")
    page.press(Keys.ARROW_LEFT, Keys.ARROW_LEFT)
    page.until("document.getElementById('timeline').getAttribute('aria-valuenow') === '6'")
    page.until("!document.querySelector('#timeline .cursor').hasAttribute('hidden')")
    place = page.ask(
        "['now', 'max', 'text']"
        ".map((name) => document.getElementById('timeline').getAttribute(`aria-value${name}`))"
    )
    assert place == ["6", "8", "update 6"]
    ActionChains(page.driver).key_down(Keys.SHIFT).send_keys(Keys.ARROW_LEFT * 2).key_up(
        Keys.SHIFT
    ).perform()
    page.until("/from=\\d+&to=\\d+/.test(location.hash)")
    page.until("!document.getElementById('window').hidden")
    view = page.ask("location.hash")
    page.open(view)
    page.until("!document.getElementById('window').hidden")
    page.press(Keys.ESCAPE)
    page.until("document.getElementById('window').hidden")


def test_thousands_of_clusters(chromium: Any, tmp_path: Path) -> None:
    pairs = 5000
    with serving(tmp_path / "store", kind="graph") as served:
        page = Page(chromium, served)
        edges = [[2 * i, 2 * i + 1, 0.5 + i / (3 * pairs)] for i in range(pairs)]
        body = {"add": list(range(2 * pairs)), "edges": edges}
        assert served.post("/v1/graph/update", body).status_code == 200
        page.open()
        page.until_text("#clusters-more", "4,900 left")
        assert page.ask("document.querySelectorAll('#clusters-list .cluster').length") == 100
        page.click("#clusters-more")
        page.until("document.querySelectorAll('#clusters-list .cluster').length === 200")
        # Only rows that are seen have a trend.
        page.until("document.querySelectorAll('#clusters-list .sparkline').length > 0")
        assert page.ask("document.querySelectorAll('#clusters-list .sparkline').length") < 50
        page.until_text("#twin tbody", "Smaller branches")
        assert page.ask("document.querySelectorAll('svg *').length") < 2000
        page.ask("document.getElementById('icicle').focus()")
        page.press(Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ENTER)
        page.until("location.hash.includes('cluster=')")
        page.until_text("#detail .kind", "Cluster")
        page.open("#skip=50")
        page.until_text("#way", "without the largest 50")
        chromium.get("about:blank")


def test_one_cluster_of_all_points(page: Page) -> None:
    rng = np.random.default_rng(0)
    points = [
        {"id": i, "vector": rng.standard_normal(2).tolist(), "payload": {"text": "the same"}}
        for i in range(40)
    ]
    insert(page, points)
    page.served.post("/v1/points", [{"id": 40, "vector": [0.0, 0.0]}])
    page.open("#cluster=99")
    # A cluster that is not there: the drawer tells it.
    page.until_text("#detail h2", "Not there")
    assert page.errors()  # 404
    page.press(Keys.ESCAPE)
    page.until("document.querySelectorAll('#clusters-list .cluster').length >= 1")
    page.until_text("#twin tbody", "41 points")
    page.until("document.querySelectorAll('#timeline .lane').length >= 1")
    assert not page.ask("document.querySelector('section.loading')")


def test_few_points_are_no_cluster(chromium: Any, tmp_path: Path) -> None:
    with serving(tmp_path / "store", watch={"min_size": 25}) as served:
        page = Page(chromium, served)
        insert(page, groups(2, 2))
        page.open()
        page.until_text("#clusters-none", "at least 25 points")
        page.until_text("#feed-none", "Nothing has changed yet")
        page.until("!document.getElementById('timeline-none').hidden")
        page.until_text("#twin tbody", "4 points")
        chromium.get("about:blank")


def test_the_tab_key_passes_the_table_that_is_not_seen(page: Page) -> None:
    insert(page, groups(2, 4))
    page.open()
    page.until_text("#twin tbody", "8 points")
    stops = "[...document.querySelectorAll('#twin button')].map((b) => b.tabIndex)"
    page.until(f"new Set({stops}).size === 1 && {stops}[0] === -1")
    page.ask("document.getElementById('icicle').focus()")
    page.press(Keys.TAB)
    assert page.ask("document.activeElement.id") == "feed-filter"
    page.click("#as-table")
    page.until(f"{stops}[0] === 0")
    assert page.ask("location.hash") == "#table=1"
    page.open("#table=1&events=structure")
    page.until_text("#twin.shown tbody", "8 points")
    page.until("document.getElementById('feed-filter').value === 'structure'")
    # The row keeps the focus while points come.
    page.ask("document.querySelectorAll('#twin button')[0].focus()")
    insert(page, MORE)
    page.until_text("#twin tbody", "12 points")
    assert page.ask("document.activeElement.closest('#twin') !== null")


def test_growth_is_told_once_and_in_its_place(page: Page) -> None:
    insert(page, groups(2, 4))
    page.open()
    page.until_text("#status", "live")
    rows = "[...document.querySelectorAll('#feed-list .event')].map((e) => e.textContent)"
    more = [{**point, "id": f"more-{i}"} for i, point in enumerate(groups(2, 16)[4:16])]
    for i in range(12):
        insert(page, [more[i]])
    page.until(f"{rows}.some((text) => text.includes('+'))")
    page.until_text("#n-points", "20")
    grown = "[...document.querySelectorAll('#feed-list b')].filter((b) => b.textContent[0] === '+')"
    # Once for each minute.
    page.until(f"{grown}.reduce((sum, b) => sum + Number(b.textContent), 0) === 12")
    assert 1 <= page.ask(f"{grown}.length") <= 3


def test_new_numbers_do_not_draw_the_hierarchy_again(page: Page) -> None:
    """If they did, an update would wait for its turn after them."""
    insert(page, groups(2, 4))
    page.open()
    page.until_text("#twin tbody", "8 points")
    drawn = page.driver.execute_async_script(
        """
        const done = arguments[0];
        const { state, set } = await import("/state.js");
        const pause = () => new Promise((go) => setTimeout(go, 1000));
        await pause();
        let drawn = 0;
        const { clearRect } = CanvasRenderingContext2D.prototype;
        CanvasRenderingContext2D.prototype.clearRect = function (...place) {
          drawn += 1;
          clearRect.apply(this, place);
        };
        set({ stats: { ...state.stats } });
        await pause();
        done(drawn);
        """
    )
    assert drawn == 0


def test_points_have_their_ids_in_the_table(page: Page) -> None:
    insert(page, groups(2, 4))
    page.open()
    page.until_text("#twin tbody", "g0-0")
    page.until_text("#twin tbody", "g1-3")


def test_pause_freezes_the_view_and_not_the_service(page: Page) -> None:
    insert(page, groups(2, 4))
    page.open()
    page.until_text("#status", "live")
    page.until_text("#n-points", "8")
    page.click("#pause")
    page.until_text("#status", "paused")
    insert(page, MORE)
    page.until_text("#pause", "new")
    assert page.text("#n-points") == "8"
    page.click("#pause")
    page.until_text("#n-points", "12")
    page.until("document.querySelectorAll('#clusters-list .cluster').length === 3")


def test_the_connection_is_lost_and_comes_back(chromium: Any, tmp_path: Path) -> None:
    with serving(tmp_path / "store") as served:
        page = Page(chromium, served)
        insert(page, groups(2, 4))
        page.open()
        page.until_text("#status", "live")
        page.until("document.querySelectorAll('#clusters-list .cluster').length === 2")
        port = served.port
    header = "document.getElementById('n-points').getBoundingClientRect().right"
    before = page.ask(header)
    page.until_text("#banner", "Connection lost")
    assert page.ask(header) == before
    page.until("document.querySelector('#banner').classList.contains('shown')")
    assert page.ask("document.querySelectorAll('#clusters-list .cluster').length") == 2
    with serving(tmp_path / "store", port=port) as served:
        page.served = served
        page.until_text("#status", "live")
        page.until_text("#banner", "Connected again")
        insert(page, MORE)
        page.until_text("#n-points", "12")
        page.until_text("#feed-list", "born")
        page.until("!document.querySelector('#banner').classList.contains('shown')")
        chromium.get("about:blank")


def test_a_token_is_asked_for_and_not_put_into_the_address(chromium: Any, tmp_path: Path) -> None:
    with serving(tmp_path / "store", tokens=Tokens([("read", READ), ("write", WRITE)])) as served:
        page = Page(chromium, served)
        served.client.headers["Authorization"] = f"Bearer {WRITE}"
        insert(page, groups(2, 4))
        page.open()
        page.until("document.getElementById('token-dialog').open")
        page.press("x" * 20, Keys.ENTER)
        page.until("document.getElementById('token-dialog').open")
        page.until("document.getElementById('token').value === ''")
        page.until_text("#token-why", "not known")
        page.press(Keys.ESCAPE)
        page.settle()
        assert page.ask("document.getElementById('token-dialog').open")
        page.press(READ, Keys.ENTER)
        page.until("!document.getElementById('token-dialog').open")
        page.until_text("#status", "live")
        page.until("document.querySelectorAll('#clusters-list .cluster').length === 2")
        assert READ not in page.driver.current_url
        # The data of the events have no end: what has come in a second is opened.
        page.ask(
            "(URL.createObjectURL = (blob) => void blob.text().then((t) => window.told = t)).name"
        )
        page.ask("(window.open = () => null).name")
        page.click("#feed .data")
        page.until("window.told?.includes('event: cluster')")
        page.ask("sessionStorage.clear()")
        chromium.get("about:blank")


def test_a_tab_that_is_not_seen_fetches_nothing(page: Page) -> None:
    insert(page, groups(2, 4))
    hidden = "Object.defineProperty(document, 'hidden', {get: () => !window.seen})"
    script = page.driver.execute_cdp_cmd(
        "Page.addScriptToEvaluateOnNewDocument", {"source": hidden}
    )
    try:
        page.open()
        page.settle()
        fetched = "performance.getEntriesByType('resource').filter((e) => e.name.includes('/v1/'))"
        assert page.ask(f"{fetched}.length") == 0
        page.ask("(window.seen = true)")
        page.ask("document.dispatchEvent(new Event('visibilitychange'))")
        page.until_text("#status", "live")
        page.until_text("#twin tbody", "8 points")
    finally:
        page.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)


def test_the_axis_of_time_has_round_numbers(page: Page) -> None:
    for point in groups(2, 10):
        insert(page, [point])
    page.open()
    page.until("document.querySelectorAll('#timeline .axis text').length > 1")
    texts = page.ask(
        "[...document.querySelectorAll('#timeline .axis text')].map((t) => t.textContent)"
    )
    updates = [int(text.removeprefix("update ")) for text in texts]
    step = updates[1] - updates[0]
    assert step in (1, 2, 5, 10)
    assert updates == list(range(updates[0], updates[-1] + 1, step))
    assert updates[0] % step == 0


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_rows_glide_to_another_place_unless_people_want_no_motion(page: Page, motion: str) -> None:
    features = [{"name": "prefers-reduced-motion", "value": motion}]
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    try:
        insert(page, groups(2, 5)[:9])
        page.open()
        page.until_text("#status", "live")
        first = "document.querySelector('#clusters-list .cluster').dataset.cluster"
        page.until(f"{first} === '0'")
        page.ask("(window.moved = 0)")
        page.ask("(Element.prototype.animate = () => { window.moved += 1; }).name")
        insert(page, [{**point, "id": f"more-{point['id']}"} for point in groups(2, 6)[6:]])
        page.until(f"{first} === '1'")
        assert (page.ask("window.moved") > 0) == (motion == "no-preference")
    finally:
        page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_a_phone_shows_all_in_one_column(page: Page) -> None:
    insert(page, groups(2, 4))
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    try:
        page.open()
        page.until("document.querySelectorAll('#clusters-list .cluster').length === 2")
        tops = page.ask(
            "['clusters', 'hierarchy', 'feed', 'time']"
            ".map((id) => document.getElementById(id).getBoundingClientRect().top)"
        )
        assert tops == sorted(tops)
        header = "document.querySelector('header').getBoundingClientRect().bottom"
        last = "document.getElementById('numbers').getBoundingClientRect().bottom"
        assert page.ask(last) <= page.ask(header) <= tops[0]
        assert page.ask("document.documentElement.scrollWidth") <= 390
    finally:
        page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
