"""Writers that are killed: whatever was acknowledged is there, once, and nothing else.

After every kill a copy of the store is opened and compared with a model without a store that has
made the same number of updates; the next writer goes on with the store as the last one left it.
"""

import contextlib
import json
import os
import shutil

import numpy as np
import pytest
from soak import SOAK
from stores import SORTS, everything, plain, start_writers, step

import dynhac

KILLS = 5 if SOAK == 1 else 13 * SOAK
GROUP = 5

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@pytest.fixture(scope="module")
def writers():
    """A function that runs a writer, kills it, and returns its lines."""
    with start_writers() as run:
        yield run


@pytest.mark.parametrize("sort", SORTS)
def test_killed(tmp_path, writers, sort):
    rng = np.random.default_rng(len(sort) if SOAK == 1 else None)
    seed = int(rng.integers(2**32))
    path, copy = tmp_path / "store", tmp_path / "copy"
    twin, made, acknowledged, patience = plain(sort), 0, 0, 1
    for kill in range(KILLS):
        lines = writers(
            path=str(path),
            sort=sort,
            seed=seed,
            chance=kill,
            durability="full" if kill % 4 == 0 else "normal",
            group=GROUP,
            delay=float(rng.uniform(0.005, 0.3)) * patience,
        )
        # On a busy machine a writer may need longer until its first update.
        patience = 1 if any(line.isdigit() for line in lines) else 3 * patience
        failed = [line for line in lines if line.startswith("failed")]
        assert not failed, json.loads(failed[0].removeprefix("failed "))
        for line in lines:
            number = line.removeprefix("opened ")
            if number.isdigit():
                assert int(number) >= acknowledged
                acknowledged = int(number)
        if not path.exists():
            continue
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(path, copy)
        with contextlib.closing(dynhac.open(copy, SORTS[sort][0], **SORTS[sort][1])) as model:
            number = model.update_number
            # One update, or the batch it was in, may be on the disk and not acknowledged.
            assert acknowledged <= number <= acknowledged + GROUP
            assert number >= made
            for i in range(made + 1, number + 1):
                step(twin, sort, seed, i)
            made = number
            assert everything(model) == everything(twin), f"seed {seed}, after {number} updates"
            assert model.verify().ok
        with dynhac.open(copy, mode="r") as reader:
            assert reader.update_number == number
            assert everything(reader) == everything(twin)
    assert made > 0
