"""Watches that are made, closed and read while something else goes on."""

import copy
import threading

import numpy as np
import pytest

import dynhac
from dynhac import DynHAC, GraphHAC
from dynhac.watch.watch import Watch

LIMIT = 20.0


@pytest.fixture
def model():
    made = DynHAC(n_neighbors=5)
    made.insert(np.random.default_rng(0).normal(size=(200, 2)))
    return made


def in_time(call):
    """Return what a call returns; fail if it hangs."""
    results = []
    thread = threading.Thread(target=lambda: results.append(call()), daemon=True)
    thread.start()
    thread.join(LIMIT)
    assert not thread.is_alive(), "it hangs"
    assert results
    return results[0]


def test_a_watch_without_clusters_is_found_again(tmp_path):
    graph = GraphHAC()
    watch = graph.watch(0.5, min_size=2)
    assert len(watch) == 0
    assert graph.watch(0.5, min_size=2) is watch
    assert graph.watches == (watch,)
    assert len(copy.copy(graph).watches) == 1
    for _ in range(3):  # each run of a program begins like this
        with dynhac.open(tmp_path / "store", "graph") as store:
            store.watch(0.5, min_size=2)
            assert len(store.watches) == 1


def test_progress_of_verify_does_not_wait_for_itself(model):
    watch = model.watch(0.5)
    refused = []

    def function(progress):
        for call in (lambda: model.watch(0.3), watch.close):
            if progress.phase == "auditing":
                with pytest.raises(RuntimeError, match="is being verified"):
                    call()
                refused.append(call)
        assert watch.clusters()
        assert watch.events
        assert len(model.labels(0.5)) == len(model)

    assert in_time(lambda: model.verify(progress=function)).ok
    assert refused
    assert model.watches == (watch,)
    assert model.watch(0.3) is not watch


def test_a_watch_that_cannot_be_closed_stays(model):
    watch = model.watch(0.5)
    refused = []

    def function(progress):
        if progress.phase == "building":
            with pytest.raises(RuntimeError, match="is being updated"):
                watch.close()
            refused.append(progress)

    model.insert(np.random.default_rng(1).normal(size=(50, 2)), progress=function)
    assert refused
    assert model.watches == (watch,)
    assert sum(watch.clusters().values()) == len(model) == 250
    watch.close()
    assert model.watches == ()


def test_timeline_while_another_thread_updates(model, monkeypatch):
    watch = model.watch(0.5)
    take = Watch._take

    def update_first(self):
        monkeypatch.setattr(Watch, "_take", take)
        thread = threading.Thread(target=lambda: model.insert([50.0, 50.0]))
        thread.start()
        while model.version == before:
            pass
        take(self)
        threads.append(thread)

    before, threads = model.version, []
    monkeypatch.setattr(Watch, "_take", update_first)
    timeline = watch.timeline()
    threads[0].join()
    assert timeline.update[-1] == timeline.last_update == before + 1
    watch.plot_timeline()
