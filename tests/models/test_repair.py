"""Repair: which points get new edges when others leave, and that nothing else is looked at."""

import numpy as np
import pytest
from points_oracle import edges_of

from dynhac import DynHAC
from dynhac.neighbors import ExactIndex


def line(n):
    return np.arange(n, dtype=float).reshape(-1, 1)


class Counting(ExactIndex):
    """An index that remembers how many vectors it was asked about."""

    __slots__ = ("asked",)

    def query(self, vectors, k):
        self.asked = getattr(self, "asked", 0) + len(vectors)
        return super().query(vectors, k)


def neighbours(model, id):
    return sorted(b for a, b in edges_of(model.graph) if a == id)


def test_a_point_left_alone_is_joined_anew():
    model = DynHAC(n_neighbors=2)
    model.insert(line(6) ** 2)  # 0, 1, 4, 9, 16, 25
    assert neighbours(model, 5) == [3, 4]
    change = model.delete([3, 4])
    assert 5 in change.repaired
    assert neighbours(model, 5) == [1, 2]
    assert model.verify().ok


def test_without_repair_it_stays_alone():
    model = DynHAC(n_neighbors=2, repair=False)
    model.insert(line(6) ** 2)
    assert model.delete([3, 4]).repaired.tolist() == []
    assert neighbours(model, 5) == []


def test_edges_of_new_points_count():
    model = DynHAC(n_neighbors=2)
    model.insert(line(6) ** 2)
    change = model.update(insert=[[26.0], [27.0]], delete=[3, 4])
    assert neighbours(model, 5) == [6, 7]
    assert 5 not in change.repaired


def test_half_is_enough():
    model = DynHAC(n_neighbors=4)
    model.insert(line(5))  # everyone knows everyone
    assert model.delete([0]).repaired.tolist() == []
    assert model.delete([1]).repaired.tolist() == []  # two edges each
    model.insert(100 + line(10))
    assert neighbours(model, 2)[:2] == [3, 4]
    count = len(neighbours(model, 2))
    change = model.delete(3)
    assert (2 in change.repaired) == (count - 1 < 2)


def test_nothing_is_searched_for_where_there_is_nothing_to_find():
    index = Counting()
    model = DynHAC(n_neighbors=50, neighbors=index)
    model.insert(line(10))
    index.asked = 0
    for i in range(10):
        assert model.delete(i).repaired.tolist() == []
    assert index.asked == 0


def test_only_the_neighbourhood_is_looked_at():
    index = Counting()
    model = DynHAC(n_neighbors=3, neighbors=index)
    rng = np.random.default_rng(0)
    model.insert(rng.normal(size=(500, 2)))
    index.asked = 0
    degree = model.graph.degrees([7])[0]
    change = model.delete(7)
    assert index.asked == len(change.repaired) <= degree


def test_many_deletions_leave_no_point_alone():
    rng = np.random.default_rng(1)
    model = DynHAC(n_neighbors=4)
    model.insert(rng.normal(size=(200, 2)))
    for id in rng.permutation(200)[:190].tolist():
        model.delete(id)
    assert model.graph.degrees(model.ids).min() >= 2
    assert model.verify().ok


@pytest.mark.parametrize("text", [False, True])
def test_neighbours_that_leave_together_are_not_repaired(text):
    ids = [f"p{i}" if text else i for i in range(8)]
    model = DynHAC(n_neighbors=2)
    model.insert(line(8), ids)
    change = model.delete(ids[:6])
    assert set(change.repaired.tolist()) <= set(ids[6:])
    assert neighbours(model, ids[6]) == [ids[7]]


def test_repair_must_be_a_bool():
    with pytest.raises(TypeError, match="repair is 'yes'"):
        DynHAC(repair="yes")
