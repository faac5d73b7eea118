"""Views: which state readers get, and when it is made."""

from __future__ import annotations

import math
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
from serving import points, serving

from dynhac.serve import views as module
from dynhac.serve.views import Load, Views


def wait_for(condition) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end, "waited for too long"
        time.sleep(0.01)


class Model:
    """A model whose views take as long as they are told to."""

    def __init__(self, cost: float) -> None:
        self.engine = SimpleNamespace(version=1)
        self._engine = SimpleNamespace(engine=self.engine)
        self.cost = cost
        self.made: list[int] = []

    def make(self) -> int:
        version = self.engine.version
        time.sleep(self.cost)
        self.made.append(version)
        return version


@pytest.fixture
def costly():
    model = Model(0.05)
    views = Views(model, Load())
    assert views.get("a", model.make).value == 1
    yield model, views
    views.close()


def test_a_costly_view_is_given_at_once_and_made_later(costly):
    model, views = costly
    model.engine.version = 2
    assert views.get("a", model.make).value == 1
    assert model.made == [1]
    wait_for(lambda: views.get("a", model.make).value == 2)
    assert model.made == [1, 2]


def test_a_cheap_view_is_always_new():
    model = Model(0.0)
    views = Views(model, Load())
    for version in (1, 2, 5):
        model.engine.version = version
        assert views.get("a", model.make).value == version


def test_readers_wait_for_a_version_and_share_a_view(costly):
    model, views = costly
    model.engine.version = 7
    with ThreadPoolExecutor(8) as pool:
        waiting = [pool.submit(views.get, "a", model.make, 3, 7) for _ in range(8)]
        assert {each.result(5).value for each in waiting} == {7}
    assert model.made == [1, 7]


def test_readers_wait_for_a_version_to_come(costly):
    model, views = costly
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(views.get, "a", model.make, 3, 2)
        time.sleep(0.1)
        assert not waiting.done()
        model.engine.version = 2
        assert waiting.result(5).value == 2


def test_a_version_that_does_not_come_is_not_waited_for_for_ever(costly, monkeypatch):
    model, views = costly
    monkeypatch.setattr(module, "VERSION_SECONDS", 0.1)
    assert views.get("a", model.make, min_version=99).value == 1


def test_only_some_readers_wait(costly):
    model, views = costly
    for _ in range(module.MOST_WAITING):
        assert views._waiting.acquire(blocking=False)
    start = time.monotonic()
    assert views.get("a", model.make, min_version=99).value == 1
    assert time.monotonic() - start < 1


def test_a_view_that_fails_does_not_hold_up_the_next(costly):
    model, views = costly
    model.engine.version = 2

    def fail() -> int:
        raise RuntimeError("no view")

    assert views.get("a", fail).value == 1
    wait_for(lambda: views._places["a"].due is None)
    assert views.get("a", model.make, min_version=2).value == 2


def test_load_is_the_share_of_time_that_was_worked():
    load = Load()
    now = time.monotonic()
    for i in range(100):  # half of the time, for ten seconds until now
        start = now - 10 + i / 10
        load.worked(start, start + 0.05)
    assert load.share == pytest.approx(0.5, abs=0.05)
    load._at = time.monotonic() - 3
    assert load.share == pytest.approx(0.5 * math.exp(-3), abs=0.02)


def test_clusters_of_the_newest_state_come_at_once(tmp_path, monkeypatch):
    """Sizes are new although the summary is old; with a version all is."""
    monkeypatch.setattr(module, "CHEAP", -1.0)  # every view counts as costly
    monkeypatch.setattr(module, "LATER", 0.5)
    rng = np.random.default_rng(0)
    with serving(tmp_path / "store", watch={"theta": 0.01, "min_size": 2}) as served:
        served.post("/v1/points", points(rng.normal(0, 0.1, (10, 2))))
        first = served.client.get("/v1/clusters").json()
        assert first["described_version"] == first["version"]
        near = points(rng.normal(0, 0.1, (5, 2)))
        far = points(rng.normal(50, 0.1, (4, 2)))
        version = served.post("/v1/points", near + far).json()["version"]
        now = served.client.get("/v1/clusters").json()
        assert now["version"] == version > now["described_version"]
        assert [entry["size"] for entry in now["clusters"]] == [15, 4]
        assert now["clusters"][0]["representatives"]
        assert now["clusters"][1]["representatives"] == []
        assert (now["points"], now["unclustered"]) == (19, 0)
        for path in ("/v1/clusters", "/v1/tree", "/v1/clusters/1", "/v1/clusters/1/members"):
            wanted = {"min_version": version}
            answer = served.client.get(path, params=wanted).json()
            assert answer["version"] == version
        entry = served.client.get("/v1/clusters", params=wanted).json()["clusters"][1]
        assert len(entry["representatives"]) == 3
        path = served.client.get("/v1/tree/path", params={"point": 18, **wanted}).json()
        assert path["version"] == version
