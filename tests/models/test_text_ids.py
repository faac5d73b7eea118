"""The table of text ids holds those of the points in the model, and no others for long."""

import numpy as np
import pytest
from points_oracle import GRID

from dynhac import DynHAC


def with_text_ids(**parameters):
    model = DynHAC(n_neighbors=4, **parameters)
    model.insert(GRID[:12], [f"p{i}" for i in range(12)])
    return model


def test_text_ids_of_expired_points_are_forgotten():
    model = DynHAC(n_neighbors=4, max_points=3)
    model.insert(GRID[:2], ids=["a", "b"])
    for row, id in zip(GRID[5:10], "cdefa", strict=True):
        model.insert(row, id)
    assert model.last_change.expired.tolist() == ["d"]
    assert model.ids.tolist() == ["e", "f", "a"]
    table = model._engine.ids
    assert (table.keys(list("bcd")) == -1).all()
    assert len(table) == 4  # "d" until the next update
    model.update()
    assert len(table) == 3


def test_text_ids_that_do_not_exist_are_not_stored():
    model = with_text_ids()
    for i in range(50):
        with pytest.raises(KeyError):
            model.delete(f"unknown {i}")
    assert len(model._engine.ids) == len(model)


def test_text_ids_of_rejected_points_are_not_stored():
    model = with_text_ids(metric="inner_product")
    for i in range(20):
        with pytest.raises(ValueError, match="too large at resolution"):
            model.insert(np.full(3, 3e38), f"q{i}")
        assert f"q{i}" not in model
    assert len(model._engine.ids) == len(model)
