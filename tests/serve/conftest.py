"""Fixtures of the tests in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import Page, start_browser
from serving import serving


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    driver = start_browser()
    yield driver
    driver.quit()


@pytest.fixture
def page(chromium: Any, tmp_path: Path) -> Iterator[Page]:
    """The page of a new store."""
    with serving(tmp_path / "store") as served:
        page = Page(chromium, served)
        chromium.get("about:blank")
        chromium.get_log("browser")
        yield page
        assert page.errors() == []
        assert page.ask("window.hacked") is None
        chromium.get("about:blank")
