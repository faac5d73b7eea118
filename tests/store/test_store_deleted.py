"""Files that are deleted or replaced while a store is open: noticed before the next update."""

import os
import shutil

import pytest
from stores import everything, new, plain, step

import dynhac
from dynhac import DynHAC, StoreError, StoreLockedError

NAMES = ("lock", "head", "log.sqlite", "log.sqlite-wal", "log.sqlite-shm", ".")
NOTICED = "was deleted or replaced while the store was open; nothing changed"

pytestmark = pytest.mark.skipif(os.name == "nt", reason="open files cannot be deleted")


@pytest.mark.filterwarnings("ignore::dynhac.RecoveryWarning")
@pytest.mark.parametrize("way", ["deleted", "replaced", "moved"])
@pytest.mark.parametrize("name", NAMES)
def test_noticed_at_the_next_update(tmp_path, name, way):
    model = new(tmp_path / "a", "kd")
    for i in range(1, 4):
        step(model, "kd", 0, i)
    before, file = everything(model), tmp_path / "a" / name
    if way == "replaced":
        if name == ".":
            shutil.copytree(file, tmp_path / "b")
            shutil.rmtree(file)
            os.rename(tmp_path / "b", tmp_path / "a")
        else:
            shutil.copyfile(file, tmp_path / "copy")
            os.replace(tmp_path / "copy", file)
    elif way == "moved":
        os.rename(tmp_path / "a" if name == "." else file, tmp_path / "elsewhere")
    elif name == ".":
        shutil.rmtree(tmp_path / "a")
    else:
        file.unlink()
    for call in (lambda: step(model, "kd", 0, 4), lambda: model.batch().__enter__()):
        with pytest.raises(StoreError, match=NOTICED):
            call()
    with pytest.raises(StoreError, match=NOTICED):
        model.snapshot()
    assert model.update_number == 3
    assert model.stats()["broken"]
    assert everything(model) == before
    model.save(tmp_path / "rescued")
    assert everything(DynHAC.load(tmp_path / "rescued")) == before
    model.close()
    if name in ("lock", "head", "log.sqlite-wal", "log.sqlite-shm") and way == "deleted":
        with dynhac.open(tmp_path / "a") as model:
            assert model.update_number == 3
            assert everything(model) == before


def test_a_second_writer_after_the_lock_was_deleted(tmp_path):
    """It may come in, but only one of the two can write, and closing the first does no harm."""
    first, twin = new(tmp_path / "a", "kd"), plain("kd")
    for i in range(1, 4):
        step(first, "kd", 0, i)
        step(twin, "kd", 0, i)
    (tmp_path / "a" / "lock").unlink()
    second = dynhac.open(tmp_path / "a")
    for i in range(4, 8):
        step(second, "kd", 0, i)
        step(twin, "kd", 0, i)
        with pytest.raises(StoreError, match=NOTICED):
            step(first, "kd", 0, i)
    first.close()
    with pytest.raises(StoreLockedError):
        dynhac.open(tmp_path / "a")
    step(second, "kd", 0, 8)
    step(twin, "kd", 0, 8)
    second._writer.release()
    with dynhac.open(tmp_path / "a") as model:
        assert model.update_number == 8
        assert everything(model) == everything(twin)


def test_another_store_in_the_place_of_one_that_is_open(tmp_path):
    """Closing the old one must not touch the files of the new one."""
    old = new(tmp_path / "a", "kd")
    step(old, "kd", 0, 1)
    shutil.rmtree(tmp_path / "a")
    young, twin = new(tmp_path / "a", "graph"), plain("graph")
    for i in range(1, 4):
        step(young, "graph", 0, i)
        step(twin, "graph", 0, i)
    old.close()
    assert (tmp_path / "a" / "log.sqlite-wal").exists()
    step(young, "graph", 0, 4)
    step(twin, "graph", 0, 4)
    young._writer.release()
    with dynhac.open(tmp_path / "a") as model:
        assert everything(model) == everything(twin)


def test_deleted_within_a_batch(tmp_path):
    model, twin = new(tmp_path / "a", "kd"), plain("kd")
    for i in range(1, 4):
        step(model, "kd", 0, i)
        step(twin, "kd", 0, i)

    def group():
        with model.batch():
            step(model, "kd", 0, 4)
            (tmp_path / "a" / "lock").unlink()

    with pytest.raises(StoreError, match=r"lock was deleted .* the model is as it was before"):
        group()
    assert everything(model) == everything(twin)
    model.close()
    with dynhac.open(tmp_path / "a") as model:
        assert everything(model) == everything(twin)
