"""Payloads: they come and go with their points, whatever happens to the store."""

import contextlib
import json
import os
import shutil
import signal
import sqlite3
import threading

import numpy as np
import pytest
from interrupts import alarms_interrupt
from payload_steps import SORTS, Twin, check, step
from soak import SOAK
from stores import overwrite, small_files, start_writers

import dynhac
from dynhac import DynHAC, RecoveryWarning, StoreError
from dynhac.store import payloads as tables

KILLS = 4 if SOAK == 1 else 13 * SOAK


def new(path, sort="int ids", **options):
    kind, parameters = SORTS[sort]
    return dynhac.open(path, kind, **parameters, **options)


def rows(model):
    """How many rows and how many entries of the text index there are."""
    database = model._writer.log.connection
    query = "SELECT (SELECT COUNT(*) FROM payloads), (SELECT COUNT(*) FROM payload_words_docsize)"
    return database.execute(query).fetchone()


@pytest.mark.parametrize("sort", SORTS)
def test_against_a_dict(tmp_path, sort):
    model, twin = new(tmp_path / "a", sort), Twin(sort)
    with dynhac.open(tmp_path / "a", mode="r") as reader:
        for i in range(1, 40):
            for each in (model, twin):
                step(each, sort, 1, i)
            check(model, twin)
            if i % 8 == 0:
                model.snapshot()
            if i % 3 == 0:
                reader.refresh()
                check(reader, twin)
            if i % 10 == 0:
                model.close()
                model = new(tmp_path / "a", sort)
                assert rows(model) == (len(twin.kept),) * 2
    model.close()
    with contextlib.closing(sqlite3.connect(tmp_path / "a" / "log.sqlite")) as database:
        assert database.execute("SELECT COUNT(*) FROM payloads").fetchone() == (len(twin.kept),)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    with dynhac.open(tmp_path / "b") as copy:
        check(copy, twin)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed(tmp_path):
    with start_writers() as run:
        for sort in SORTS:
            path, copy = tmp_path / sort, tmp_path / "copy"
            twin, made, acknowledged = Twin(sort), 0, 0
            for kill in range(KILLS):
                lines = run(
                    path=str(path),
                    sort=sort,
                    seed=2,
                    durability=["full", "normal"][kill % 2],
                    delay=0.1 + 0.07 * kill,
                )
                failed = [line for line in lines if line.startswith("failed")]
                assert not failed, json.loads(failed[0].removeprefix("failed "))
                numbers = [line.removeprefix("opened ") for line in lines]
                acknowledged = max([acknowledged, *map(int, numbers)])
                if not path.exists():
                    continue
                shutil.rmtree(copy, ignore_errors=True)
                shutil.copytree(path, copy)
                with new(copy, sort) as model:
                    assert acknowledged <= model.update_number <= acknowledged + 1
                    for i in range(made + 1, model.update_number + 1):
                        step(twin, sort, 2, i)
                    made = model.update_number
                    check(model, twin)
                    if twin.kept:
                        assert rows(model) == (len(twin.kept),) * 2
                with dynhac.open(copy, mode="r") as reader:
                    check(reader, twin)
            assert made > 0


@pytest.mark.parametrize("sort", SORTS)
def test_a_group_that_cannot_be_written(tmp_path, sort):
    pytest.importorskip("resource")
    model, twin = new(tmp_path / "a", sort), Twin(sort)
    for i in range(1, 12):
        for each in (model, twin):
            step(each, sort, 3, i)
    size = max(file.stat().st_size for file in (tmp_path / "a").iterdir())

    def group():
        with model.batch():
            for i in range(12, 400):
                step(model, sort, 3, i)

    with small_files(size + 10_000), pytest.raises(StoreError, match="as it was before the batch"):
        group()
    check(model, twin)
    for i in range(12, 24):
        for each in (model, twin):
            step(each, sort, 3, i)
    check(model, twin)
    model._writer.release()
    with dynhac.open(tmp_path / "a") as model:
        check(model, twin)


def test_the_first_payload_in_a_group_that_fails(tmp_path, monkeypatch):
    with new(tmp_path / "a") as model:
        model.insert([[0.0], [1.0]])

        def fail():
            raise sqlite3.OperationalError("disk I/O error")

        def group():
            with model.batch():
                model.set_payload(0, {"title": "oil"})
                model.insert([2.0], payload={"title": "gold"})

        monkeypatch.setattr(model._writer.log, "commit", fail)
        with pytest.raises(StoreError, match="as it was before"):
            group()
        monkeypatch.undo()
        assert model.payloads([0, 1]) == [None, None]
        model.set_payload(1, {"title": "rain"})
        assert model.find("rain").tolist() == [1]
        assert model.find("oil").tolist() == []


def test_a_disk_that_is_full(tmp_path):
    pytest.importorskip("resource")
    with new(tmp_path / "a") as model:
        model.insert([[0.0], [1.0]], payload=[{"title": "oil"}, None])
        before = model.update_number, model.payloads([0, 1])
        size = max(file.stat().st_size for file in (tmp_path / "a").iterdir())
        large = {"title": "gold " * 40_000}
        with small_files(size + 10_000):
            with pytest.raises(StoreError, match="nothing changed"):
                model.insert([2.0], payload=large)
            with pytest.raises(StoreError, match="nothing changed"):
                model.set_payload(0, large)
            with pytest.raises(StoreError, match="nothing changed"):
                model.update(insert=[[3.0]], ids=[0], delete=[0], payload=[large])
        assert (model.update_number, model.payloads([0, 1])) == before
        assert model.find("gold").tolist() == []
        assert model.insert([2.0], payload=large) == 2
        assert model.find("gold").tolist() == [2]


@pytest.mark.parametrize("grouped", [False, True])
def test_rejected_updates(tmp_path, grouped):
    with new(tmp_path / "a") as model:
        model.insert([[0.0], [1.0]], payload=[{"title": "oil"}, {"title": "gold"}])
        before = model.payloads([0, 1])
        with model.batch() if grouped else contextlib.nullcontext():
            with pytest.raises(ValueError, match="already in the model"):
                model.insert([[2.0], [3.0]], ids=[7, 0], payload=[{"title": "rain"}] * 2)
            with pytest.raises(KeyError):
                model.update(insert=[[2.0]], ids=[0], delete=[0, 9], payload=[{"title": "rain"}])
            with pytest.raises(KeyError):
                model.update(insert=[[2.0]], ids=[0], delete=[0, 9])
            with pytest.raises(KeyError, match="id 9"):
                model.set_payload([0, 9], [{"title": "rain"}] * 2)
            assert model.payloads([0, 1, 7]) == [*before, None]
            assert model.find("rain").tolist() == []
        assert model.payloads([0, 1, 7]) == [*before, None]
        assert rows(model) == (2, 2)


@pytest.mark.parametrize("after", [False, True])
def test_interrupted_updates(tmp_path, monkeypatch, after):
    with new(tmp_path / "a", max_points=2) as model:
        model.insert([[0.0], [1.0]], payload=[{"title": "oil"}, {"title": "gold"}])
        apply = DynHAC._apply

        def stop(self, *arguments):
            if after:
                apply(self, *arguments)
            raise KeyboardInterrupt

        monkeypatch.setattr(DynHAC, "_apply", stop)
        with pytest.raises(KeyboardInterrupt):
            model.insert([2.0], payload={"title": "rain"})
        monkeypatch.undo()
        assert model.find("oil").tolist() == ([] if after else [0])
        assert model.find("rain").tolist() == ([2] if after else [])
        model.insert([3.0], ids=[9])
        assert rows(model) == (2, 2)
        if not after:
            return
        model.insert([4.0], ids=[0])
        assert model.payloads(0) == [None]


class Updates:
    """A model that makes updates only: whether these were made can be seen by their number."""

    def __init__(self, model):
        self.model = model

    @property
    def ids(self):
        return self.model.ids

    def update(self, **batch):
        self.model.update(**batch)

    def set_payload(self, ids, payload):
        pass


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers")
@pytest.mark.parametrize("sort", ["str ids", "few points", "vertices"])
def test_real_interrupts(tmp_path, sort):
    rng = np.random.default_rng(0)
    model, twin = new(tmp_path / "a", sort, durability="normal"), Twin(sort)
    stopped = 0
    with alarms_interrupt():
        for i in range(1, 120 * SOAK):
            number = model.update_number
            try:
                signal.setitimer(signal.ITIMER_REAL, float(rng.uniform(1e-5, 3e-3)))
                step(Updates(model), sort, 6, i)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                stopped += 1
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            if model.stats()["broken"]:
                model.close()
                model = new(tmp_path / "a", sort, durability="normal")
            if model.update_number > number:
                step(Updates(twin), sort, 6, i)
            if i % 5 == 0:
                check(model, twin)
    assert stopped > 10
    check(model, twin)
    model._writer.release()
    with dynhac.open(tmp_path / "a") as model:
        check(model, twin)


def test_other_threads_read(tmp_path):
    """They never fail, and see whole payloads, also within a batch."""
    sort, wrong, done = "few points", [], threading.Event()
    with new(tmp_path / "a", sort, durability="normal", snapshot_seconds=0.05) as model:

        def read():
            while not done.is_set():
                try:
                    found = model.payloads(model.find("oil", limit=None))
                    assert all(kept is None or len(kept) == 3 for kept in found)
                except Exception as error:
                    wrong.append(error)

        threads = [threading.Thread(target=read) for _ in range(2)]
        for thread in threads:
            thread.start()
        twin = Twin(sort)
        for i in range(1, 60):
            with model.batch():
                step(model, sort, 5, i)
            step(twin, sort, 5, i)
        done.set()
        for thread in threads:
            thread.join()
        check(model, twin)
    assert not wrong


def test_a_crash_before_payloads_are_dropped(tmp_path):
    model = new(tmp_path / "a")
    model.insert([[0.0], [1.0], [2.0]], payload=[{"title": f"w{i}"} for i in range(3)])
    model.delete(0)
    model.update(insert=[[5.0]], ids=[1], delete=[1])
    model.update(insert=[[5.0]], ids=[2], delete=[2], payload=[{"title": "again"}])
    model._writer.release()
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    with dynhac.open(tmp_path / "b") as model:
        assert rows(model) == (1, 1)
        model.insert([9.0], ids=[0])
        assert model.payloads([0, 1, 2]) == [None, None, {"title": "again"}]
        assert model.find("w2").tolist() == []


def test_readers(tmp_path):
    with new(tmp_path / "a") as model, dynhac.open(tmp_path / "a", mode="r") as reader:
        assert reader.payloads([0]) == [None]
        assert reader.find("oil").tolist() == []
        model.insert([[0.0], [1.0]], payload=[{"title": "oil"}, {"title": "oil oil"}])
        assert reader.payloads([0, 1]) == [None, None]
        assert reader.find("oil").tolist() == []
        reader.refresh()
        assert reader.payloads([0, 1]) == model.payloads([0, 1])
        assert reader.find("oil").tolist() == [1, 0]
        model.set_payload(0, {"title": "gold"})
        assert reader.find("gold").tolist() == [0]
        with pytest.raises(StoreError, match="open for reading"):
            reader.set_payload(0, {})
        with model.batch():
            model.set_payload(0, {"title": "rain"})
            assert model.payloads(0) == [{"title": "rain"}]
            assert reader.payloads(0) == [{"title": "gold"}]
    with pytest.raises(StoreError, match="closed"):
        model.payloads(0)
    with pytest.raises(StoreError, match="closed"):
        reader.find("oil")


def test_a_damaged_payload(tmp_path):
    with new(tmp_path / "a") as model:
        model.insert([[0.0], [1.0]], payload=[{"title": "before"}, {"title": "after"}])
    database = tmp_path / "a" / "log.sqlite"
    place = database.read_bytes().index(b'{"title":"before"}')
    overwrite(database, place + 11, b"X")
    with dynhac.open(tmp_path / "a", mode="r") as reader:
        with pytest.raises(StoreError, match="the payload of id 0 is damaged"):
            reader.payloads([0, 1])
        assert reader.payloads(1) == [{"title": "after"}]
    with pytest.warns(RecoveryWarning, match="payloads are damaged, and lost, of these ids: 0"):
        model = dynhac.open(tmp_path / "a")
    with model:
        assert model.payloads([0, 1]) == [None, {"title": "after"}]


def test_a_damaged_text_index(tmp_path):
    with new(tmp_path / "a") as model:
        model.insert([[0.0], [1.0]], payload=[{"title": "oil"}, {"title": "gold"}])
        model._writer.log.connection.execute(
            "UPDATE payload_words_data SET block = x'00ff' WHERE id > 10"
        )
    with pytest.warns(RecoveryWarning, match="text index of the payloads was damaged"):
        model = dynhac.open(tmp_path / "a")
    with model:
        assert model.find("oil").tolist() == [0]


def test_without_full_text_search(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "has_fts5", lambda: False)
    with new(tmp_path / "a") as model:
        model.insert([0.0], payload={"title": "oil", "topic": "energy"})
        assert model.find(where={"topic": "energy"}).tolist() == [0]
        with pytest.raises(StoreError, match="FTS5"):
            model.find("oil")
    monkeypatch.undo()
    with dynhac.open(tmp_path / "a") as model:
        assert model.find("oil").tolist() == [0]
    monkeypatch.setattr(tables, "has_fts5", lambda: False)
    with dynhac.open(tmp_path / "a") as model:
        model.insert([1.0], payload={"title": "gold"})
        model.delete(0)
    monkeypatch.undo()
    with dynhac.open(tmp_path / "a") as model:
        assert model.find("gold").tolist() == [1]
        assert model.find("oil").tolist() == []


def test_find_within_some_points(tmp_path):
    with dynhac.open(tmp_path / "store", n_neighbors=2) as model:
        news = [{"title": "oil", "n": i % 2} for i in range(10)]
        model.insert([[float(i)] for i in range(10)], payload=news)
        assert sorted(model.find("oil", within=[7, 2, 5]).tolist()) == [2, 5, 7]
        assert sorted(model.find("oil", {"n": 1}, within=range(6)).tolist()) == [1, 3, 5]
        assert model.find("oil", limit=1, within=[9]).tolist() == [9]
        assert model.find("oil", within=[]).tolist() == []
        model.delete(2)
        assert sorted(model.find("oil", within=[7, 2, 5]).tolist()) == [5, 7]
