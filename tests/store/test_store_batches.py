"""Batches of updates that cannot be written: the model is as it was before the block."""

import os
import sqlite3
import subprocess
import sys
import warnings

import numpy as np
import pytest
from soak import SOAK
from stores import SORTS, everything, everything_of, new, plain, small_files, step

import dynhac
from dynhac import DynHAC, RecoveryWarning, StoreError
from dynhac.neighbors import ExactIndex

pytest.importorskip("resource")


def seen(model, watch):
    """What a user sees, also through the objects that he had before."""
    graph = model.graph if isinstance(model, DynHAC) else model
    return {**everything(model), "graph": everything(graph), "watch": everything_of(watch)}


@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize("sort", SORTS)
def test_the_model_goes_back(tmp_path, sort, saved):
    model, twin = new(tmp_path / "a", sort), plain(sort)
    both = (model, twin)
    for i in range(1, 4):
        for each in both:
            step(each, sort, 0, i)
    watch, other = (each.watch(0.4, min_size=2) for each in both)
    model.snapshot()
    graph = model.graph if isinstance(model, DynHAC) else model
    for i in range(4, 11):
        for each in both:
            step(each, sort, 0, i)
    if saved:
        model.snapshot()
        if sort == "usearch":
            twin._state()  # saving is part of the history of this index
    before, last, number = seen(model, watch), getattr(model, "last_change", 0), model.update_number
    watches = model.watches

    def group():
        with model.batch():
            for i in range(11, 400):
                step(model, sort, 0, i)

    size = max(file.stat().st_size for file in (tmp_path / "a").iterdir())
    with small_files(size + 10_000):
        for _ in range(2):
            with pytest.raises(StoreError, match="the model is as it was before the batch"):
                group()
            assert seen(model, watch) == before
            assert model.update_number == number == 11
            assert getattr(model, "last_change", 0) is last
            assert model.stats()["broken"] is None
    assert model.watches == watches
    assert (model.graph if isinstance(model, DynHAC) else model) is graph
    for i in range(11, 30):
        for each in both:
            step(each, sort, 0, i)
    assert everything(model) == everything(twin)
    assert watch.labels().tolist() == other.labels().tolist()
    assert model.verify().ok
    model._writer.release()
    with dynhac.open(tmp_path / "a") as model:
        assert everything(model) == everything(twin)


def test_watches_that_were_made_or_closed_in_the_block(tmp_path, monkeypatch):
    model = new(tmp_path / "a", "kd")
    step(model, "kd", 0, 1)
    first = model.watch(0.4)
    model.snapshot()
    clusters, made = first.clusters(), []

    def fail():
        raise sqlite3.OperationalError("disk I/O error")

    def group():
        with model.batch():
            step(model, "kd", 0, 2)
            first.close()
            made.append(model.watch(0.3))

    with monkeypatch.context() as patch:
        patch.setattr(model._writer.log, "commit", fail)
        with pytest.raises(StoreError, match="disk I/O error; the model is as it was"):
            group()
    assert model.watches == (first,)
    assert first.clusters() == clusters
    with pytest.raises(ValueError, match="is closed"):
        made[0].clusters()
    step(model, "kd", 0, 2)
    assert sum(first.clusters().values()) == len(model)
    model.close()


def test_an_exception_of_the_users_own_takes_nothing_back(tmp_path):
    model, twin = new(tmp_path / "a", "kd"), plain("kd")

    def group():
        with model.batch():
            for i in range(1, 4):
                step(model, "kd", 0, i)
                step(twin, "kd", 0, i)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        group()
    assert everything(model) == everything(twin)
    model._writer.release()
    with dynhac.open(tmp_path / "a") as model:
        assert model.update_number == 3
        assert everything(model) == everything(twin)


def test_an_error_that_is_caught_within_the_block(tmp_path):
    """Whatever the user does with it, the block fails as a whole."""
    model, twin = new(tmp_path / "a", "graph"), plain("graph")
    for each in (model, twin):
        for i in range(1, 11):
            step(each, "graph", 0, i)
    errors = []

    def group():
        with model.batch():
            for i in range(11, 40):
                step(model, "graph", 0, i)
            model._writer.log.connection.execute("ROLLBACK")  # as SQLite does if a disk is full
            for i in range(40, 50):
                try:
                    step(model, "graph", 0, i)
                except StoreError as error:
                    errors.append(error)

    with pytest.raises(StoreError, match="the model is as it was before the batch"):
        group()
    assert len(errors) == 10
    assert everything(model) == everything(twin)
    for each in (model, twin):
        step(each, "graph", 0, 11)
    model.close()
    with dynhac.open(tmp_path / "a") as model:
        assert everything(model) == everything(twin)


@pytest.mark.parametrize("own", [False, True])
def test_a_model_that_cannot_be_brought_back(tmp_path, monkeypatch, own):
    index = {"neighbors": ExactIndex()} if own else {}
    model = dynhac.open(tmp_path / "a", n_neighbors=3, **index)
    model.insert(np.eye(4))
    before = everything(model)

    def fail(*arguments):
        raise sqlite3.OperationalError("disk I/O error")

    def group():
        with model.batch():
            model.insert(np.eye(4) * 2)

    with monkeypatch.context() as patch:
        patch.setattr(model._writer.log, "commit", fail)
        if not own:
            patch.setattr(model._writer.log, "rows", fail)
        with pytest.raises(StoreError, match=r"nor could the model be brought back .*open it"):
            group()
    with pytest.raises(StoreError, match="open it again, which gives the last acknowledged"):
        model.insert(np.eye(4) * 3)
    model.close()
    if own:
        index["neighbors"] = ExactIndex()
    with dynhac.open(tmp_path / "a", **index) as model:
        assert everything(model) == before


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="needs to mount")
def test_batches_on_a_full_disk(tmp_path):
    """The disk is full again and again; whole batches are there, or not at all."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("cannot mount")
    rng = np.random.default_rng(0 if SOAK == 1 else None)
    ballast, full, done = disk / "ballast", 0, 0
    try:
        model, twin = new(disk / "a", "graph", snapshot_bytes=30_000), plain("graph")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RecoveryWarning)
            for _ in range(60 * SOAK):
                free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
                ballast.write_bytes(bytes(int(rng.uniform(0, 1) ** 0.2 * free)))
                count = int(rng.integers(1, 20))
                try:
                    with model.batch():
                        for i in range(done + 1, done + count + 1):
                            step(model, "graph", 0, i)
                except StoreError:
                    full += 1
                else:
                    for i in range(done + 1, done + count + 1):
                        step(twin, "graph", 0, i)
                    done += count
                ballast.unlink()
                assert model.update_number == done
                assert everything(model) == everything(twin)
                assert model.stats()["broken"] is None
            model.close()
        assert full >= 5
        with dynhac.open(disk / "a") as model:
            assert everything(model) == everything(twin)
            model._writer.release()
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)
