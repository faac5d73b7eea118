"""The page of a service in Chromium from the system's packages, driven by Selenium."""

from __future__ import annotations

import shutil
import time
from typing import Any

import numpy as np
import pytest
from serving import Served

NO_SELENIUM = "THE PAGE IS NOT TESTED: no selenium"
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
DRIVER = shutil.which("chromedriver")
NEEDS_BROWSER = pytest.mark.skipif(
    not (BROWSER and DRIVER),
    reason="THE PAGE IS NOT TESTED: there is no chromium with chromedriver on this machine",
)
PATIENCE = 20.0
PHONE = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}


def start_browser() -> Any:
    """Start Chromium without a window."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for option in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"):
        options.add_argument(option)
    options.add_argument("--window-size=1400,900")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options, webdriver.ChromeService(DRIVER))


class Page:
    """The page of a service in the browser."""

    def __init__(self, driver: Any, served: Served) -> None:
        self.driver = driver
        self.served = served

    def open(self, view: str = "") -> Page:
        self.driver.get("about:blank")
        self.driver.get(f"{self.served.url}/{view}")
        return self

    def ask(self, script: str, *values: Any) -> Any:
        return self.driver.execute_script(f"return {script}", *values)

    def until(self, script: str, *values: Any) -> Any:
        """Wait until a value is there, and return it."""
        end = time.monotonic() + PATIENCE
        while not (found := self.ask(script, *values)):
            assert time.monotonic() < end, f"never true: {script}\n{self.text('body')[:3000]}"
            time.sleep(0.05)
        return found

    def text(self, selector: str) -> str:
        return str(self.ask("document.querySelector(arguments[0]).textContent", selector))

    def until_text(self, selector: str, text: str) -> None:
        self.until(
            "document.querySelector(arguments[0])?.textContent.includes(arguments[1])",
            selector,
            text,
        )

    def click(self, selector: str) -> None:
        self.until("document.querySelector(arguments[0])", selector)
        self.ask("document.querySelector(arguments[0]).click()", selector)

    def press(self, *keys: str) -> None:
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.driver).send_keys(*keys).perform()

    def settle(self) -> None:
        """Wait until what is due is drawn."""
        self.driver.execute_async_script(
            "const [done] = arguments;"
            "setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(done)), 300);"
        )

    def errors(self) -> list[str]:
        """What the browser complains about."""
        return [entry["message"] for entry in self.driver.get_log("browser")]


def groups(count: int, size: int) -> list[dict[str, Any]]:
    """Points in groups far from each other, with texts."""
    rng = np.random.default_rng(0)
    points = []
    for group in range(count):
        center = np.zeros(count)
        center[group] = 10.0
        for i in range(size):
            vector = center + 0.01 * rng.standard_normal(count)
            payload = {"text": f"topic{group} story number{i}"}
            points.append({"id": f"g{group}-{i}", "vector": vector.tolist(), "payload": payload})
    return points


def insert(page: Page, points: list[dict[str, Any]]) -> None:
    answer = page.served.post("/v1/points", points)
    assert answer.status_code == 200, answer.text
