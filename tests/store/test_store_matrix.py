"""Every combination of missing, and of two damaged, files of a store: nothing is lost silently.

The store has updates that only its ``-wal`` file has, as after a crash. It opens with all of them,
or with fewer and a `RecoveryWarning`, or not at all. "old" has snapshots and "young" has none yet.
"""

import itertools
import os
import shutil
import warnings

import numpy as np
import pytest
from soak import SOAK
from stores import everything, new, step

import dynhac
from dynhac import RecoveryWarning, StoreError

UPDATES = 12
DAMAGES = ("missing", "empty", "cut", "flipped")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The folders of stores whose writers were killed, and the states after every update."""
    folder = tmp_path_factory.mktemp("made")
    found = {}
    for age, saves in (("old", (3, 6)), ("young", ())):
        model = new(folder / "store", "kd")
        states = [everything(model)]
        for i in range(1, UPDATES + 1):
            step(model, "kd", 0, i)
            states.append(everything(model))
            if i in saves:
                model.snapshot()
        shutil.copytree(folder / "store", folder / age)
        model._writer.release()
        shutil.rmtree(folder / "store")
        found[age] = folder / age, states
    return found


def harm(file, damage):
    size = file.stat().st_size
    if damage == "missing":
        file.unlink()
    elif damage == "empty":
        os.truncate(file, 0)
    elif damage == "cut":
        os.truncate(file, size // 2)
    elif size:
        data = bytearray(file.read_bytes())
        data[size // 2] ^= 1
        file.write_bytes(data)


def attempt(source, states, path, damages, mode):
    """Open a copy of a store with some damage; return "whole", "warned" or "refused"."""
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(source, path)
    for name, damage in damages.items():
        harm(path / name, damage)
    before = sorted(os.listdir(path))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model = dynhac.open(path, mode=mode)
        except StoreError:
            assert {name for name in before if "snapshot" in name} <= {*os.listdir(path)}
            return "refused"
    told = any(warning.category is RecoveryWarning for warning in caught)
    with model:
        number = model.update_number
        assert told or number == UPDATES, f"{damages}: {number} updates, and nothing was said"
        assert everything(model) == states[number], damages
    return "warned" if told else "whole"


def run(made, tmp_path, age, cases):
    source, states = made[age]
    outcomes = {"whole": 0, "warned": 0, "refused": 0}
    for damages, mode in cases:
        outcomes[attempt(source, states, tmp_path / "store", damages, mode)] += 1
    assert all(outcomes.values()), outcomes


@pytest.mark.parametrize("age", ["old", "young"])
def test_missing_files(made, tmp_path, age):
    names = sorted(os.listdir(made[age][0]))
    assert {"head", "lock", "log.sqlite", "log.sqlite-wal"} <= {*names}
    subsets = itertools.chain.from_iterable(
        itertools.combinations(names, count) for count in range(len(names))
    )
    run(made, tmp_path, age, [(dict.fromkeys(gone, "missing"), "w") for gone in subsets])


@pytest.mark.parametrize("age", ["old", "young"])
def test_two_damaged_files(made, tmp_path, age):
    names = sorted(os.listdir(made[age][0]))
    cases = [
        ({a: first, b: second}, mode)
        for a, b in itertools.combinations(names, 2)
        for first, second in itertools.product(DAMAGES, DAMAGES)
        for mode in "rw"
    ]
    if SOAK == 1:
        chosen = np.random.default_rng(0).choice(len(cases), 120, replace=False)
        cases = [cases[place] for place in chosen]
    run(made, tmp_path, age, cases)
