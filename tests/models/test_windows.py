"""Windows of ``DynHAC``: what expires, in which order, and what timestamps may be."""

import datetime
import json

import numpy as np
import pytest
from points_oracle import edges_of, snapshot

from dynhac import DynHAC, InvalidTypeError
from dynhac.models.parameters import PointParameters


def rows(n, first=0):
    return np.arange(first, first + n, dtype=float).reshape(-1, 1)


def test_the_oldest_leave_when_there_is_no_room():
    model = DynHAC(max_points=3)
    model.insert(rows(3))
    assert model.insert([9.0]) == 3
    assert model.ids.tolist() == [1, 2, 3]
    assert model.last_change.expired.tolist() == [0]
    assert model.verify().ok


def test_timestamps_go_before_arrival():
    model = DynHAC(max_points=3)
    model.insert(rows(3), timestamps=[30, 10, 20])
    model.insert([9.0], timestamps=25)
    assert model.last_change.expired.tolist() == [1]
    model.insert([9.0], timestamps=20)  # as old as id 2, which came first
    assert model.last_change.expired.tolist() == [2]
    assert model.ids.tolist() == [0, 3, 4]


def test_a_new_point_without_room_is_dropped_at_once():
    model = DynHAC(max_points=2)
    model.insert(rows(2), timestamps=[10, 11])
    assert model.insert([5.0], timestamps=3) == 2
    change = model.last_change
    assert change.inserted.tolist() == change.expired.tolist() == [2]
    assert model.ids.tolist() == [0, 1]
    assert model.insert([5.0], timestamps=12) == 3  # an id is never used again


def test_more_points_in_one_batch_than_there_is_room_for():
    model = DynHAC(max_points=3)
    assert model.insert(rows(10)).tolist() == list(range(10))
    assert model.ids.tolist() == [7, 8, 9]
    assert model.last_change.expired.tolist() == list(range(7))
    assert len(model.last_change.inserted) == 10


def test_age():
    model = DynHAC(max_age=10)
    model.insert(rows(3), timestamps=[0, 5, 10])
    assert len(model) == 3  # exactly max_age is not too old
    model.insert([7.0], timestamps=11)
    assert model.last_change.expired.tolist() == [0]
    model.insert([8.0], timestamps=0.5)
    assert model.last_change.expired.tolist() == [4]
    assert model.ids.tolist() == [1, 2, 3]
    assert model.expire(15.5).expired.tolist() == [1]
    assert model.expire(3).expired.tolist() == []  # time does not go back
    assert model.expire(1000).expired.tolist() == [2, 3]
    assert len(model) == 0
    model.insert([8.0], timestamps=995)
    assert len(model) == 1


def test_expiring_before_there_are_points():
    model = DynHAC(max_age=10)
    model.expire(100)
    model.insert(rows(2), timestamps=[80, 95])
    assert model.ids.tolist() == [1]


def test_explicit_deletions_come_first():
    model = DynHAC(max_points=3)
    model.insert(rows(3))
    change = model.update(insert=[[7.0]], delete=[0])
    assert change.expired.tolist() == []
    assert change.deleted.tolist() == [0]
    change = model.update(insert=[[7.0], [8.0]], ids=[2, 9], delete=[2])
    assert change.expired.tolist() == [1]
    assert model.ids.tolist() == [3, 2, 9]


def test_dates():
    model = DynHAC(max_age=np.timedelta64(2, "D"))
    days = np.array(["2024-01-01", "2024-01-02", "2024-01-03"], "datetime64[D]")
    model.insert(rows(3), timestamps=days)
    assert len(model) == 3
    model.insert([1.0], timestamps=np.datetime64("2024-01-03T00:00:00.000000001"))
    assert model.ids.tolist() == [1, 2, 3]
    model.insert([1.0], timestamps=datetime.datetime(2024, 1, 4, 12))
    assert model.ids.tolist() == [2, 3, 4]
    zone = datetime.timezone(datetime.timedelta(hours=5))
    model.insert([1.0], timestamps=datetime.datetime(2024, 1, 4, 17, tzinfo=zone))
    assert model.last_change.expired.tolist() == []
    model.expire(np.datetime64("2024-01-06T13"))
    assert len(model) == 0
    assert len(DynHAC(max_age=datetime.timedelta(hours=1))) == 0


def test_pandas_dates():
    pandas = pytest.importorskip("pandas")
    model = DynHAC(max_age=pandas.Timedelta("1h"))
    times = pandas.Series(pandas.date_range("2024-01-01", periods=3, freq="h"))
    model.insert(rows(3), timestamps=times)
    assert model.ids.tolist() == [1, 2]
    model.insert([0.0], timestamps=pandas.Timestamp("2024-01-01 03:30"))
    assert model.ids.tolist() == [3]


def test_nanoseconds_as_ints_keep_their_last_digit():
    now = 1_800_000_000_000_000_000
    model = DynHAC(max_age=1)
    model.insert(rows(3), timestamps=[now, now + 1, now + 2])
    assert model.ids.tolist() == [1, 2]
    with pytest.raises(ValueError, match="floats cannot tell apart"):
        model.insert([0.0], timestamps=1.8e18)
    assert model.ids.tolist() == [1, 2]


def test_ints_and_floats_mix_while_that_is_exact():
    model = DynHAC(max_points=2)
    model.insert([0.0], timestamps=1)
    model.insert([1.0], timestamps=0.5)
    model.insert([2.0], timestamps=2)
    assert model.ids.tolist() == [0, 2]
    with pytest.raises(ValueError, match="not exact as a float"):
        model.insert([0.0], timestamps=2**53 + 1)


def test_cutoffs_beyond_all_times():
    last = 2**63 - 1
    model = DynHAC(max_age=0)
    model.insert(np.zeros(1), timestamps=last)
    assert model.expire(now=1e30).expired.tolist() == [0]
    assert model.insert(np.zeros(1), timestamps=last) == 1  # too late already
    assert model.last_change.expired.tolist() == [1]
    model = DynHAC(max_age=1.7e308)
    for x in (np.zeros(1), np.ones(1)):
        model.insert(x, timestamps=-1.7e308)
    assert len(model) == 2


def test_cutoffs_are_exact_between_ints_and_floats():
    model = DynHAC(max_age=1)
    model.insert([0.0], timestamps=2**60 - 1)
    assert model.expire(now=2.0**60).expired.tolist() == []
    assert model.expire(now=2.0**60 + 256).expired.tolist() == [0]
    model = DynHAC(max_age=2.5)
    model.insert([0.0], timestamps=2**60 - 2)
    assert model.expire(now=2.0**60).expired.tolist() == []
    model = DynHAC(max_age=0.25)
    model.insert([[0.0], [1.0]], timestamps=[3, 4])
    assert model.ids.tolist() == [1]
    assert model.expire(now=4.25).expired.tolist() == []
    assert model.expire(now=4.5).expired.tolist() == [1]


def test_the_clock_stays_exact_when_ints_become_floats():
    """Also if it is the time of a deleted point, and equal to no float."""
    latest = 2**60 + 1
    model = DynHAC(max_age=10, metric="inner_product")
    model.insert([0.0], timestamps=0)
    model.insert([1.0], timestamps=latest)
    model.insert([2.0], timestamps=latest)
    model.delete([1, 2])
    points = model._points
    assert points.clock == latest
    with pytest.raises(ValueError, match="too large at resolution"):
        model.insert([[3e38], [3e38]], timestamps=float(2**60))
    assert points.clock == latest
    assert model.insert(np.ones(1), timestamps=latest - 5) == 3
    with pytest.raises(ValueError, match="floats cannot tell apart"):
        model.insert([1.0], timestamps=float(2**60))
    model.delete(3)
    assert model.insert([1.0], timestamps=float(2**60)) == 4
    assert points.clock == latest
    assert model.ids.tolist() == [4]
    assert model.expire(float(2**60 + 256)).expired.tolist() == [4]


@pytest.mark.parametrize("timed", [False, True])
def test_deleted_points_do_not_fill_the_heap_of_ages(timed):
    model = DynHAC(max_points=5)
    for i in range(500):
        gone = [i - 1] if i else None
        model.update(insert=[[float(i % 7)]], delete=gone, timestamps=i if timed else None)
    assert model._points.nbytes < 10_000


@pytest.mark.parametrize(
    ("parameters", "arguments", "error", "message"),
    [
        ({"max_age": 5}, {}, ValueError, "points need timestamps, since the model has a max_age"),
        ({}, {"timestamps": [1, 2]}, ValueError, "2 entries for 3 points"),
        ({}, {"timestamps": [1, float("nan"), 2]}, ValueError, "position 1 of timestamps is nan"),
        ({}, {"timestamps": np.array(["2024", "NaT", "2025"], "M8[s]")}, ValueError, "is NaT"),
        ({}, {"timestamps": ["a", "b", "c"]}, InvalidTypeError, "must be numbers or datetime64"),
        (
            {},
            {"timestamps": [True, False, True]},
            InvalidTypeError,
            "timestamps is True",
        ),
        ({}, {"timestamps": np.array([[1, 2, 3]])}, InvalidTypeError, "one-dimensional"),
        ({}, {"timestamps": [1, None, 3]}, InvalidTypeError, "position 1 of timestamps is None"),
        ({}, {"timestamps": np.datetime64("9999-01-01")}, ValueError, "1678 and 2262"),
        ({}, {"timestamps": np.array([2**63, 1, 1], "u8")}, ValueError, "does not fit"),
        (
            {"max_age": 5},
            {"timestamps": np.datetime64("2024-01-01")},
            TypeError,
            "max_age is a num",
        ),
        (
            {"max_age": np.timedelta64(5, "s")},
            {"timestamps": 5},
            TypeError,
            "timestamps are numbers, but max_age is a timedelta64",
        ),
    ],
)
def test_timestamps_that_are_wrong(parameters, arguments, error, message):
    model = DynHAC(**parameters)
    before = snapshot(model)
    with pytest.raises(error, match=message):
        model.insert(rows(3), **arguments)
    assert snapshot(model) == before


def test_the_first_points_decide_on_timestamps():
    model = DynHAC()
    model.insert(rows(2))
    with pytest.raises(ValueError, match="first points of this model had none"):
        model.insert(rows(1), timestamps=3)
    model = DynHAC()
    model.insert(rows(2), timestamps=[1, 2])
    with pytest.raises(ValueError, match="first points of this model had some"):
        model.insert(rows(1))
    with pytest.raises(InvalidTypeError, match="dates, but those of this model are numbers"):
        model.insert(rows(1), timestamps=np.datetime64("2024-01-01"))
    with pytest.raises(ValueError, match="timestamps are given, but no points"):
        model.update(timestamps=[1])


@pytest.mark.parametrize(
    ("parameters", "error"),
    [
        ({"max_points": 0}, ValueError),
        ({"max_points": 2.0}, TypeError),
        ({"max_age": -1}, ValueError),
        ({"max_age": float("inf")}, ValueError),
        ({"max_age": "1h"}, TypeError),
        ({"max_age": True}, TypeError),
        ({"max_age": np.timedelta64("NaT", "s")}, ValueError),
        ({"max_age": np.timedelta64(-1, "s")}, ValueError),
        ({"max_age": np.timedelta64(1, "Y")}, ValueError),
        ({"max_age": np.timedelta64(400 * 366, "D")}, ValueError),
    ],
)
def test_bounds_that_are_wrong(parameters, error):
    with pytest.raises(error, match="max_"):
        DynHAC(**parameters)


def test_expire_needs_an_age():
    with pytest.raises(ValueError, match="no max_age"):
        DynHAC(max_points=3).expire(1)


@pytest.mark.parametrize("age", [None, 5, 2.5, np.timedelta64(90, "m")])
def test_bounds_as_plain_values(age):
    parameters = PointParameters.read(max_points=7, max_age=age)
    again = PointParameters.read(**json.loads(json.dumps(parameters.plain())))
    assert (again.max_points, again.max_age) == (7, parameters.max_age)
    assert again.ages_are_dates == isinstance(age, np.timedelta64)
    assert again.public_max_age == age


def test_dates_given_as_objects_keep_their_range_and_their_nanoseconds():
    pandas = pytest.importorskip("pandas")
    model = DynHAC(max_age=datetime.timedelta(days=3))
    late = [datetime.datetime(2025, 1, 1), datetime.datetime(3000, 1, 1)]
    with pytest.raises(ValueError, match=r"position 1 of timestamps is 3000-01-01.*1678 and 2262"):
        model.insert([[0.0], [1.0]], timestamps=late)
    missing = [pandas.Timestamp("2025-01-01"), pandas.NaT]
    with pytest.raises(ValueError, match="position 1 of timestamps is NaT"):
        model.insert([[0.0], [1.0]], timestamps=missing)
    start = pandas.Timestamp("2025-01-01")
    for age in (np.timedelta64(1, "ns"), pandas.Timedelta(1, "ns")):
        fine = DynHAC(max_age=age)
        fine.insert([[0.0], [1.0]], timestamps=[start, start + pandas.Timedelta(5, "ns")])
        assert fine.ids.tolist() == [1]


def test_numbers_in_one_list_are_not_rounded():
    model = DynHAC(max_age=1)
    with pytest.raises(ValueError, match=f"timestamp {2**60 + 1} at position 1.*not exact"):
        model.insert(np.zeros((3, 1)), timestamps=[0, 2**60 + 1, 0.5])
    with pytest.raises(ValueError, match="does not fit in 64 bits"):
        model.insert(np.zeros((2, 1)), timestamps=[2**63, 1])
    with pytest.raises(TypeError, match="masked"):
        model.insert(np.zeros((2, 1)), timestamps=np.ma.masked_array([1, 2], [True, False]))


def test_a_model_of_texts_that_were_all_dropped_takes_empty_updates():
    model = DynHAC(max_age=1)
    model.expire(10)
    model.insert([[0.0]], ids=["a"], timestamps=[5])  # dropped at once
    for change in (model.update(), model.delete([]), model.expire(11)):
        assert len(change.inserted) == len(change.deleted) == len(change.expired) == 0
    model.insert([[0.0]], ids=["b"], timestamps=[11])
    model.delete("b")
    assert model.expire(12).expired.dtype == object


@pytest.mark.parametrize(("dimension", "neighbors"), [(3, "kd"), (3, "exact"), (12, "usearch")])
def test_a_window_of_equal_vectors_costs_the_same_at_any_size(dimension, neighbors):
    most = []
    for n in (500, 4000):
        model = DynHAC(n_neighbors=10, max_points=n, neighbors=neighbors)
        model.insert(np.ones((n, dimension)))
        changed = []
        for _ in range(30):
            model.insert(np.ones(dimension))
            change = model.last_change
            assert len(change.expired) == 1
            assert len(change.repaired) == 0
            changed.append(change.edges_changed)
        assert model.verify().ok
        assert np.bincount(model.graph.degrees(model.ids)).argmax() == 20
        most.append(max(changed))
    assert most[1] < 2 * most[0]
    assert most[1] < 300


def test_a_point_with_many_equals_is_joined_to_those_that_arrived_before_it():
    model = DynHAC(n_neighbors=2)
    model.insert([[0.0], [0.0], [0.0], [9.0], [0.0], [0.0]])
    assert set(edges_of(model.graph)) >= {(5, 4), (5, 2), (4, 2), (4, 1), (2, 1), (2, 0), (1, 0)}
    model.delete([4])
    model.insert([[-0.0]])
    assert {b for a, b in edges_of(model.graph) if a == 6} == {5, 2}
