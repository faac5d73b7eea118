"""Stores with damaged, missing and foreign files.

Never a crash, and never silently wrong: a store that opens is as it was after some acknowledged
update, and if that is not the last one, it says so.
"""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import warnings
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pytest
from soak import SOAK
from stores import everything, new, overwrite, step

import dynhac
from dynhac import RecoveryWarning, StoreError
from dynhac.store.files import head_bytes
from dynhac.store.log import first_digest

UPDATES = 30


LAST_SAVES = (10, 20)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Stores after `UPDATES` updates, with snapshots after `LAST_SAVES`, and all their states.

    "live" is a copy made while its writer was at work, "clean" was let go without a snapshot.
    """
    folder = tmp_path_factory.mktemp("made")
    found = {}
    for sort in ("kd", "graph"):
        model = new(folder / sort, sort)
        states = [everything(model)]
        for i in range(1, UPDATES + 1):
            step(model, sort, 0, i)
            states.append(everything(model))
            if i in LAST_SAVES:
                model.snapshot()
        shutil.copytree(folder / sort, folder / f"{sort} live")
        (folder / f"{sort} live" / "log.sqlite-shm").unlink(missing_ok=True)
        model._writer.release()
        found[sort, "clean"] = folder / sort, states
        found[sort, "live"] = folder / f"{sort} live", states
    return found


@pytest.fixture
def store(made, tmp_path):
    """A copy of a store of points, and its states."""
    source, states = made["kd", "clean"]
    shutil.copytree(source, tmp_path / "store")
    return tmp_path / "store", states


@contextmanager
def edited(path):
    """The database of a log, to be changed."""
    with closing(sqlite3.connect(path / "log.sqlite")) as connection, connection:
        yield connection


def require(path, states, number, **options):
    """Open a store and see that it is as after an update, can be written to and opened again."""
    with dynhac.open(path, **options) as model:
        assert model.update_number == number
        assert everything(model) == states[number]
        assert model.verify().ok
        step(model, "kd", 0, number + 1)
        after = everything(model)
    with dynhac.open(path) as model:
        assert everything(model) == after
        assert model.update_number == number + 1


def test_a_damaged_snapshot_is_passed_over(store):
    path, states = store
    overwrite(path / "snapshot-20.dynhac", 1000, b"damaged")
    with pytest.warns(
        RecoveryWarning, match="snapshot-20.dynhac.* made from snapshot 10 and 20 up"
    ):
        reader = dynhac.open(path, mode="r")
    assert everything(reader) == states[UPDATES]
    assert (path / "snapshot-20.dynhac").exists()
    with pytest.warns(
        RecoveryWarning, match="snapshot-20.dynhac.* made from snapshot 10 and 20 up"
    ):
        dynhac.open(path).close()
    assert (path / "snapshot-20.dynhac.damaged").exists()
    require(path, states, UPDATES)


@pytest.mark.parametrize("damage", ["cut", "empty", "foreign", "other store", "other number"])
def test_kinds_of_damage(store, tmp_path, damage):
    path, states = store
    file = path / "snapshot-20.dynhac"
    if damage == "cut":
        os.truncate(file, 500)
    elif damage == "empty":
        os.truncate(file, 0)
    elif damage == "foreign":
        file.write_text("hello")
    elif damage == "other number":
        shutil.copyfile(path / "snapshot-10.dynhac", file)
    else:
        with new(tmp_path / "other", "kd") as other:
            for i in range(1, 21):
                step(other, "kd", 0, i)
        shutil.copyfile(tmp_path / "other" / "snapshot-20.dynhac", file)
    with pytest.warns(RecoveryWarning, match="passed over"):
        dynhac.open(path).close()
    require(path, states, UPDATES)


def test_a_missing_snapshot(store):
    path, states = store
    (path / "snapshot-20.dynhac").unlink()
    require(path, states, UPDATES)


def test_no_snapshot_and_a_log_that_does_not_go_back(store):
    path, _ = store
    before = sorted(os.listdir(path))
    for number in LAST_SAVES:
        overwrite(path / f"snapshot-{number}.dynhac", 1000, b"damaged")
    for mode in "rw":
        with pytest.raises(StoreError, match=r"no snapshot can be read: .*snapshot-20"):
            dynhac.open(path, mode=mode)
    assert set(before) <= set(os.listdir(path))
    for number in LAST_SAVES:
        (path / f"snapshot-{number}.dynhac").unlink()
    with pytest.raises(StoreError, match="the log begins with update 11"):
        dynhac.open(path)


def test_damaged_rows_at_the_end(store):
    path, states = store
    with edited(path) as log:
        log.execute("UPDATE log SET payload = x'00' || payload WHERE number >= 28")
    with pytest.warns(RecoveryWarning, match="updates 28 to 30 are lost"):
        reader = dynhac.open(path, mode="r")
    assert everything(reader) == states[27]
    with pytest.warns(RecoveryWarning, match="updates 28 to 30 are lost"):
        dynhac.open(path).close()
    require(path, states, 27)


def test_rows_missing_at_the_end(store):
    path, states = store
    with edited(path) as log:
        log.execute("DELETE FROM log WHERE number >= 30")
    with pytest.warns(RecoveryWarning, match="update 30 is lost"):
        dynhac.open(path).close()
    require(path, states, 29)


def test_a_snapshot_beyond_the_log(store):
    path, states = store
    with edited(path) as log:
        log.execute("DELETE FROM log WHERE number >= 15")
    with pytest.warns(RecoveryWarning, match="updates 21 to 30 are lost"):
        dynhac.open(path).close()
    require(path, states, 20)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE log SET payload = x'00' || payload WHERE number = 25",
        "UPDATE log SET flags = 1 WHERE number = 25",
        "UPDATE log SET op = 'expire' WHERE number = 25",
        "UPDATE log SET payload = (SELECT payload FROM log WHERE number = 26) WHERE number = 25",
        "UPDATE log SET payload = 'text' WHERE number = 25",
        "DELETE FROM log WHERE number = 25",
        "DELETE FROM log WHERE number < 25",
    ],
)
def test_damage_in_the_middle(store, change):
    path, _ = store
    with edited(path) as log:
        log.execute(change)
    before = {name: (path / name).read_bytes() for name in os.listdir(path)}
    for mode in "rw":
        with pytest.raises(StoreError, match=r"update 2[0145]"):
            dynhac.open(path, mode=mode)
    for name in ("log.sqlite", "head", "snapshot-10.dynhac", "snapshot-20.dynhac"):
        assert (path / name).read_bytes() == before[name]


def test_damage_before_the_snapshot_does_not_matter(store):
    path, states = store
    with edited(path) as log:
        log.execute("UPDATE log SET payload = x'00' || payload WHERE number = 15")
    require(path, states, UPDATES)


def test_rows_of_another_store(store, tmp_path):
    path, _ = store
    with new(tmp_path / "other", "kd") as other:
        for i in range(1, 41):
            step(other, "kd", 1, i)
        other._writer.release()
    with edited(path) as log:
        log.execute("ATTACH ? AS other", (str(tmp_path / "other" / "log.sqlite"),))
        log.execute("DELETE FROM log")
        log.execute("INSERT INTO log SELECT * FROM other.log")
    with pytest.raises(StoreError, match="update 21 in the log is damaged"):
        dynhac.open(path)


def test_what_is_not_a_store(tmp_path, store):
    path, _ = store
    (tmp_path / "file").write_text("hello")
    with pytest.raises(StoreError, match="is a file"):
        dynhac.open(tmp_path / "file")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "notes.txt").write_text("hello")
    with pytest.raises(StoreError, match=r"not empty: it holds 'notes.txt'"):
        dynhac.open(tmp_path / "folder")
    assert os.listdir(tmp_path / "folder") == ["notes.txt"]
    for nothing in (tmp_path / "folder", tmp_path / "missing"):
        with pytest.raises(StoreError, match="holds no store"):
            dynhac.open(nothing, mode="r")
    (tmp_path / "empty").mkdir()
    dynhac.open(tmp_path / "empty").close()
    (path / "notes.txt").write_text("a store may hold other files")
    dynhac.open(path).close()
    assert (path / "notes.txt").exists()
    (tmp_path / "folder" / "log.sqlite").write_text("this is no database at all" * 100)
    for mode in "rw":
        with pytest.raises(StoreError, match="not a database"):
            dynhac.open(tmp_path / "folder", mode=mode)
    (tmp_path / "folder" / "log.sqlite").unlink()
    with closing(sqlite3.connect(tmp_path / "folder" / "log.sqlite")) as other:
        other.execute("CREATE TABLE mine (x)")
    with pytest.raises(StoreError, match="not the log of a store"):
        dynhac.open(tmp_path / "folder")


def test_a_future_version(store):
    path, _ = store
    with edited(path) as log:
        (text,) = log.execute("SELECT text FROM about").fetchone()
        text = json.dumps(json.loads(text) | {"format": 4})
        log.execute("UPDATE about SET text = ?, digest = ?", (text, first_digest(text)))
    for mode in "rw":
        with pytest.raises(StoreError, match="format version 4"):
            dynhac.open(path, mode=mode)


def test_changed_parameters(store):
    path, _ = store
    with edited(path) as log:
        log.execute("UPDATE about SET text = replace(text, '0.1', '0.3')")
    with pytest.raises(StoreError, match="what it says about the store has changed"):
        dynhac.open(path)


def test_a_lost_log(store):
    path, _ = store
    (path / "log.sqlite").unlink()
    with pytest.raises(StoreError, match=r"snapshots but no log.sqlite; .*snapshot-20"):
        dynhac.open(path)
    for number in LAST_SAVES:
        (path / f"snapshot-{number}.dynhac").unlink()
    with pytest.raises(StoreError, match="had updates up to 30"):
        dynhac.open(path)
    (path / "log.sqlite").touch()
    with pytest.raises(StoreError, match="had updates up to 30"):
        dynhac.open(path)


def test_the_head(store):
    path, states = store
    (path / "head").unlink()
    for mode in "rw":
        with pytest.warns(RecoveryWarning, match="head is missing; whether the last updates"):
            dynhac.open(path, mode=mode).close()
    dynhac.open(path).close()  # it is told once
    (path / "head").write_bytes(b"nonsense")
    with pytest.warns(RecoveryWarning, match="head is damaged"):
        dynhac.open(path).close()
    assert (path / "head").read_bytes() == head_bytes(UPDATES)
    require(path, states, UPDATES)


def test_a_row_that_was_never_acknowledged(store):
    """The writer died between the log and the model, or before it could take a row back."""
    path, states = store
    (path / "head").write_bytes(head_bytes(UPDATES - 1))
    with dynhac.open(path, mode="r") as reader:
        assert reader.update_number == UPDATES - 1
        assert everything(reader) == states[UPDATES - 1]
    require(path, states, UPDATES)


def test_warnings_as_errors_lose_nothing(store):
    path, states = store
    overwrite(path / "snapshot-20.dynhac", 1000, b"damaged")
    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(RecoveryWarning):
                dynhac.open(path)
    with pytest.warns(RecoveryWarning):
        dynhac.open(path).close()
    require(path, states, UPDATES)


READ = """
import os, sys
sys.path.insert(0, sys.argv[2])
import dynhac, dynhac.store
import scipy.spatial
if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
try:
    dynhac.open(sys.argv[1])
except OSError as error:
    print(type(error).__name__)
with dynhac.open(sys.argv[1], mode="r") as model:
    print(model.update_number, model.labels(0.3).tolist(), model.refresh())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs permissions")
@pytest.mark.parametrize("state", ["clean", "live"])
def test_a_directory_that_cannot_be_written(made, state):
    import tempfile

    source, _ = made["kd", state]
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        path = Path(folder) / "store"
        shutil.copytree(source, path)
        with dynhac.open(path, mode="r") as model:
            expected = f"{UPDATES} {model.labels(0.3).tolist()} 0"
        (path / "log.sqlite-shm").unlink(missing_ok=True)
        for name in os.listdir(path):
            os.chmod(path / name, 0o444)
        os.chmod(path, 0o555)
        before = sorted(os.listdir(path))
        tests = str(Path(__file__).parents[1] / "support")
        command = [sys.executable, "-W", "error", "-c", READ, str(path), tests]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.stdout.splitlines() == ["PermissionError", expected], done.stderr
        assert sorted(os.listdir(path)) == before
        os.chmod(path, 0o755)


def damage(rng, file):
    """Change a file at random."""
    size = file.stat().st_size
    kind = rng.integers(6)
    data = bytearray(file.read_bytes())
    place = int(rng.integers(max(size, 1)))
    if kind == 0 or not size:
        os.truncate(file, place)
    elif kind == 1:
        file.write_bytes(bytes(data) + rng.bytes(int(rng.integers(1, 5000))))
    else:
        if kind == 2:
            data[place] ^= 1 << int(rng.integers(8))
        elif kind == 3:
            data[place : place + 4096] = rng.bytes(len(data[place : place + 4096]))
        elif kind == 4:
            page = place // 4096 * 4096
            data[page : page + 4096] = bytes(len(data[page : page + 4096]))
        else:
            for _ in range(20):
                data[int(rng.integers(size))] ^= int(rng.integers(1, 256))
        file.write_bytes(bytes(data))


@pytest.mark.parametrize("part", range(1 if SOAK == 1 else SOAK))
@pytest.mark.parametrize("state", ["clean", "live"])
@pytest.mark.parametrize("sort", ["kd", "graph"])
def test_random_damage(made, tmp_path, sort, state, part):
    """One file is damaged at random: the store opens in a state it had, or says what is wrong."""
    source, states = made[sort, state]
    rng = np.random.default_rng(7 if SOAK == 1 else None)
    path = tmp_path / "store"
    names = sorted(set(os.listdir(source)) - {"lock"})
    outcomes = {"whole": 0, "warned": 0, "refused": 0}
    for _ in range(75 if SOAK == 1 else 250):
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(source, path)
        name = str(rng.choice(names))
        damage(rng, path / name)
        mode = str(rng.choice(["r", "w"]))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                model = dynhac.open(path, mode=mode)
            except StoreError:
                outcomes["refused"] += 1
                for number in LAST_SAVES:
                    assert (path / f"snapshot-{number}.dynhac").exists()
                continue
        with model:
            number = model.update_number
            assert everything(model) == states[number], name
            told = any(warning.category is RecoveryWarning for warning in caught)
            assert number == UPDATES or told, f"{name}: {number} updates, and nothing was said"
            outcomes["warned" if told else "whole"] += 1
            if mode == "w":
                step(model, sort, 0, number + 1)
                assert model.verify().ok
    assert all(outcomes.values()), outcomes
