"""Points that are inserted and deleted one at a time: they follow the documented rules, and give
what batches of one point give.
"""

import copy
import sys

import numpy as np
import pytest
from failing_index import exact_in_python
from points_oracle import GRID, Simulation, compare, edges_of, judge_change, snapshot

from dynhac import DynHAC
from dynhac.neighbors import ExactIndex

NAMES = [f"p{i}" for i in range(40)]


def filled(first=12, text=False, **parameters):
    model = DynHAC(n_neighbors=4, **parameters)
    model.insert(GRID[:first], NAMES[:first] if text else None)
    return model


def twins(**parameters):
    return filled(**parameters), filled(**parameters)


def contents(change):
    """What a change says, without its times."""
    nodes = [sorted(change.created), sorted(change.removed)]
    columns = (change.inserted, change.deleted, change.expired, change.repaired)
    listed = [(column.dtype, column.tolist()) for column in columns]
    return listed, nodes, change.edges_changed, change.levels


def refuses(model, update, error, message):
    """Assert that an update raises, and that nothing has changed then."""
    before = snapshot(model)
    with pytest.raises(error, match=message):
        update()
    assert snapshot(model) == before


def own_inverse(distances):
    return 1 / (1 + distances)


PARAMETERS = {
    "kd": ({}, {}),
    "exact": ({"neighbors": "exact"}, {}),
    "own index": ({"neighbors": ExactIndex}, {}),
    "function": ({"similarity": own_inverse}, {}),
    "cosine": (
        {"metric": "cosine", "similarity": "cosine"},
        {"metric": "cosine", "similarity": lambda d: max(1 - d, 0.0)},
    ),
    "dot": (
        {"metric": "inner_product"},
        {"metric": "inner_product", "similarity": lambda d: max(-d, 0.0)},
    ),
    "gaussian": (
        {"similarity": ("gaussian", 2.0)},
        {"similarity": lambda d: float(np.exp(-d * d / 8))},
    ),
    "no repair": ({"repair": False}, {"repair": False}),
    "exact linkage": ({"epsilon": 0.0, "threshold": 0.0}, {}),
    "window": ({"max_points": 14}, {"max_points": 14}),
    "window, no repair": (
        {"max_points": 12, "repair": False},
        {"max_points": 12, "repair": False},
    ),
}


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("name", PARAMETERS)
@pytest.mark.parametrize("seed", range(2))
def test_single_points_follow_the_rules(name, text, seed):
    rng = np.random.default_rng(seed)
    parameters, rules = (dict(each) for each in PARAMETERS[name])
    if name == "own index":
        parameters["neighbors"] = ExactIndex()
    model = filled(text=text, **parameters)
    simulation = Simulation(4, **rules)
    simulation.update(list(map(tuple, GRID[:12])), NAMES[:12] if text else None)
    for i in range(80):
        if len(model) and rng.random() < 0.48:
            id = model.ids[rng.integers(len(model))]
            id = id if text else int(id)
            judge_change(model.delete(id), simulation.update(delete=[id]))
        else:
            x = GRID[rng.integers(len(GRID))]
            x = [x, x.astype(np.float32), x[::-1], np.repeat(x, 2)[::2]][rng.integers(4)]
            id = f"q{i}" if text else [None, int(rng.integers(-500, 500)), 3 * i][rng.integers(3)]
            if id in model:
                continue
            expected = simulation.update([tuple(x.tolist())], None if id is None else [id])
            assert model.insert(x, id) == expected[0][0]
            judge_change(model.last_change, expected)
        compare(model, simulation)
    assert model.verify().ok


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("name", [*PARAMETERS, "usearch"])
def test_a_single_point_is_a_batch_of_one(name, text):
    rng = np.random.default_rng(3)
    models = []
    for _ in range(2):
        parameters = {"neighbors": "usearch"} if name == "usearch" else dict(PARAMETERS[name][0])
        if name == "own index":
            parameters["neighbors"] = ExactIndex()
        models.append(filled(text=text, **parameters))
    model, twin = models
    for i in range(60):
        if len(model) and rng.random() < 0.48:
            id = model.ids[rng.integers(len(model))]
            change = model.delete(id)
            assert contents(change) == contents(twin.update(delete=[id]))
        else:
            x, id = GRID[rng.integers(len(GRID))], f"q{i}" if text else None
            found = model.insert(x, id)
            change = twin.update(insert=x[None], ids=id and [id])
            assert change.inserted.tolist() == [found]
            assert contents(model.last_change) == contents(change)
        assert snapshot(model) == snapshot(twin)
    assert model.verify().ok


def test_points_one_by_one_and_all_at_once():
    """With an edge between any two points, the graph does not depend on the order."""
    one_by_one, at_once = DynHAC(n_neighbors=40), DynHAC(n_neighbors=40)
    for row in GRID:
        one_by_one.insert(row)
    at_once.insert(GRID)
    assert edges_of(one_by_one.graph) == edges_of(at_once.graph)
    for id in range(0, 30, 2):
        one_by_one.delete(id)
    at_once.delete(range(0, 30, 2))
    assert edges_of(one_by_one.graph) == edges_of(at_once.graph)
    assert one_by_one.ids.tolist() == at_once.ids.tolist()


def test_the_last_point_and_the_first():
    model, simulation = filled(first=1), Simulation(4)
    simulation.update([tuple(GRID[0])])
    for step in (0, None, None, 1, 2, None):
        if step is None:
            model.insert(GRID[5])
            simulation.update([tuple(GRID[5])])
        else:
            model.delete(step)
            simulation.update(delete=[step])
        compare(model, simulation)


def test_the_change_of_one_point():
    model = filled()
    assert model.insert(GRID[20]) == 12
    change = model.last_change
    assert change is model.last_change
    assert change.inserted.tolist() == [12]
    assert change.deleted.tolist() == change.expired.tolist() == []
    assert change.seconds_search > 0
    assert change.seconds_engine > 0
    assert change.seconds_graph >= 0
    assert repr(change).startswith("<PointChange: 1 point inserted, 0 deleted;")
    gone = model.delete(12)
    assert gone is model.last_change
    assert gone.deleted.tolist() == [12]
    assert change.inserted.tolist() == [12]  # still


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.array([1.0, np.nan, 0.0]), "row 0, column 1 of X is nan"),
        (np.array([1.0, np.inf, 0.0], np.float32), "row 0, column 1 of X is inf"),
        (np.array([1.0, 1e39, 0.0]), "does not fit in float32"),
        (np.array([1.0, 2.0]), "the vector has 2 dimensions, but the vectors of this model have 3"),
        (np.array([[1.0, 2.0, 3.0, 4.0]]), "X has 4 dimensions"),
        (np.array(["a", "b", "c"]), "X has dtype <U1"),
        (np.array([1, 2, None]), "column 2 of X is None"),
        (np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0]), "masked array"),
        (np.float64(3.0), "X is 3.0"),
        ("abc", "X is 'abc'"),
        (None, "X is None"),
    ],
)
def test_vectors_that_are_wrong(value, message):
    model = filled()
    refuses(model, lambda: model.insert(value), ValueError, message)


@pytest.mark.parametrize(
    "value",
    [
        np.array([1, 2, 3]),
        np.array([1, 2, 3], np.float16),
        np.array([1.0, 2.0, 3.0], ">f8"),
        np.array([1.0, 2.0, 3.0], object),
        np.array([[1.0, 2.0, 3.0]]),
        [1.0, 2.0, 3.0],
        (1, 2, 3),
    ],
)
def test_vectors_of_any_type_and_layout(value):
    model, twin = twins()
    found = model.insert(value)
    assert np.ravel(found).tolist() == [12]
    assert isinstance(found, int) == (np.ndim(value) == 1)
    twin.insert(np.array([1.0, 2.0, 3.0]))
    assert snapshot(model) == snapshot(twin)


@pytest.mark.parametrize(
    ("id", "error", "message"),
    [
        (99, KeyError, "id 99 in delete is not in the model"),
        (-1, KeyError, "id -1 in delete is not in the model"),
        (2**63, ValueError, "does not fit in 64 bits"),
        (-(2**80), ValueError, "does not fit in 64 bits"),
        (True, TypeError, "True"),
        (1.0, TypeError, "float"),
        ("a", TypeError, "'a' in delete is a str, but the ids of this model are int"),
        (None, TypeError, "None"),
    ],
)
def test_ids_that_are_wrong(id, error, message):
    model = filled()
    refuses(model, lambda: model.delete(id), error, message)


PRESENT = "is already in the model; to replace it, list it in delete too"


@pytest.mark.parametrize(
    ("text", "ids", "expected"),
    [
        (False, -1, -1),
        (False, [50], 50),
        (False, np.int64(50), 50),
        (False, 3, f"id 3 in ids {PRESENT}"),
        (False, "q", "'q' in ids is a str, but the ids of this model are int"),
        (False, ["q"], "'q' in ids is a str, but the ids of this model are int"),
        (False, True, "ids must be all int or all str"),
        (False, 2**63, "does not fit in 64 bits"),
        (False, 1.5, "ids in ids are of type float"),
        (False, b"q", "ids in ids are of type bytes"),
        (False, ["q", "r"], "ids has 2 entries for 1 point"),
        (True, "q", "q"),
        (True, ["q"], "q"),
        (True, "p3", f"id 'p3' in ids {PRESENT}"),
        (True, 3, "3 in ids is an int, but the ids of this model are str"),
        (True, [50], "50 in ids is an int, but the ids of this model are str"),
        (True, True, "ids must be all int or all str"),
        (True, 2**63, "does not fit in 64 bits"),
        (True, ["q", "r"], "ids has 2 entries for 1 point"),
    ],
)
def test_ids_of_new_points(text, ids, expected):
    model, twin = twins(text=text)
    if isinstance(expected, str) and len(expected) > 1:
        refuses(model, lambda: model.insert(GRID[20], ids), ValueError, expected)
        return
    found = model.insert(GRID[20], ids)
    assert found == expected
    assert type(found) is type(expected)
    twin.update(insert=GRID[20:21], ids=[expected])
    assert snapshot(model) == snapshot(twin)


def test_a_vector_that_is_wrong_uses_no_key():
    model, twin = twins(text=True)
    with pytest.raises(ValueError, match="nan"):
        model.insert(np.array([1.0, np.nan, 0.0]), "q")
    for each in (model, twin):
        each.insert(GRID[20], "r")
    columns = [dict(each._columns()) for each in (model, twin)]
    assert columns[0].keys() == columns[1].keys()
    assert all(np.array_equal(columns[0][name], columns[1][name]) for name in columns[0])


def test_points_without_the_id_or_the_timestamp_that_they_need():
    text = DynHAC(n_neighbors=4, max_points=3)
    text.insert(GRID[:2], ids=["a", "b"])
    refuses(text, lambda: text.insert(GRID[5]), ValueError, "new points need ids")
    timed = DynHAC(n_neighbors=4)
    timed.insert(GRID[:5], timestamps=range(5))
    aged = DynHAC(n_neighbors=4, max_age=5)
    aged.insert(GRID[:2], timestamps=[1, 2])
    date = np.datetime64("2024")
    for model in (timed, aged):
        refuses(model, lambda m=model: m.insert(GRID[5]), ValueError, "points need timestamps")
        refuses(
            model,
            lambda m=model: m.insert(GRID[5], timestamps=date),
            ValueError,
            "timestamps are dates",
        )
    plain = DynHAC(n_neighbors=4)
    plain.insert(GRID[:5])
    refuses(
        plain,
        lambda: plain.insert(GRID[5], timestamps=5),
        ValueError,
        "cannot have timestamps",
    )
    text.delete("b")
    timed.delete(3)
    aged.delete(0)
    assert (len(text), len(timed), len(aged)) == (1, 4, 1)


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        (5, "int"),
        (2.5, "float"),
        ([5], "int"),
        (np.int64(5), "int"),
        (np.float64(5), "float"),
        (True, "timestamps must be numbers or datetime64"),
        ("5", "timestamps must be numbers or datetime64"),
        (2**63, "does not fit in 64 bits"),
        (None, "points need timestamps"),
    ],
)
def test_timestamps_of_any_type(time, expected):
    model, simulation = DynHAC(n_neighbors=4, max_age=5), Simulation(4, max_age=5)
    model.insert(GRID[:5], timestamps=range(5))
    simulation.update(list(map(tuple, GRID[:5])), times=list(range(5)))
    if expected not in ("int", "float"):
        refuses(model, lambda: model.insert(GRID[7], timestamps=time), ValueError, expected)
        return
    assert model.insert(GRID[7], timestamps=time) == 5
    simulation.update([tuple(GRID[7])], times=np.ravel(time).tolist())
    compare(model, simulation)
    assert model._points.time_kind == expected


DAY = np.datetime64("2024-01-01T00:00")
TIMES = {  # the timestamp that the model gets; the simulation gets the number
    "ints": lambda t: t,
    "floats": float,
    "ints, then floats": lambda t: t,
    "dates": lambda t: DAY + np.timedelta64(int(60 * t), "s"),
    "python dates": lambda t: (DAY + np.timedelta64(int(60 * t), "s")).astype(object),
}
BOUNDS = [{}, {"max_points": 14}, {"max_age": 6}, {"max_points": 9, "max_age": 12.5}]


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
@pytest.mark.parametrize("kind", TIMES)
def test_points_with_timestamps(kind, bounds, text):
    """Points come late, too late and at equal times; some are deleted, and the clock moves on."""
    rng = np.random.default_rng(len(kind))
    simulation = Simulation(4, **bounds)
    if "dates" in kind and "max_age" in bounds:
        bounds = bounds | {"max_age": np.timedelta64(int(60 * bounds["max_age"]), "s")}
    model = DynHAC(n_neighbors=4, **bounds)
    for i in range(150):
        ids, chosen = model.ids, rng.random()
        if len(ids) > 1 and chosen < 0.3:
            gone = ids[rng.integers(len(ids))]
            judge_change(model.delete(gone), simulation.update(delete=[gone]))
        elif "max_age" in bounds and chosen < 0.35:
            now = i // 2 + 2
            judge_change(model.expire(TIMES[kind](now)), simulation.expire(now))
        else:
            late = int(rng.integers(4)) if rng.random() < 0.9 else 12
            time = i // 2 - late
            if kind == "floats" or (kind == "ints, then floats" and i >= 60 and time % 2):
                time += 0.25
            row, id = GRID[rng.integers(len(GRID))], f"p{i}" if text else None
            expected = simulation.update([tuple(row)], id and [id], times=[time])
            assert model.insert(row, id, TIMES[kind](time)) == expected[0][0]
            judge_change(model.last_change, expected)
        compare(model, simulation)
    assert model.verify().ok


def test_no_int_ids_are_left():
    model = filled()
    model.insert(GRID[20], ids=2**63 - 1)
    refuses(model, lambda: model.insert(GRID[21]), ValueError, "no int id above")
    model.delete(2**63 - 1)


def test_a_graph_that_rejects_the_point():
    model, twin = twins(metric="inner_product")
    refuses(
        model, lambda: model.insert(np.full(3, 3e38)), ValueError, "edge.*too large at resolution"
    )
    model.insert(GRID[20])
    twin.insert(GRID[20])
    assert snapshot(model) == snapshot(twin)


def test_a_model_that_outgrows_its_index(monkeypatch):
    monkeypatch.setattr("dynhac.models.index_choice.MOST_NUMBERS_SCANNED", 90)
    monkeypatch.setattr(
        "dynhac.models.index_choice.choose_backend",
        lambda _, d, n: "exact" if d * n <= 90 else "kd",
    )
    model = filled(first=10)
    simulation = Simulation(4)
    simulation.update(list(map(tuple, GRID[:10])))
    for i, row in enumerate(GRID[10:33]):
        model.insert(row)
        simulation.update([tuple(row)])
        assert model.backend == ("exact" if i < 20 else "kd")
        compare(model, simulation)


@pytest.mark.parametrize(
    ("neighbors", "metric", "d"),
    [("kd", "euclidean", 3), ("exact", "cosine", 20), ("cells", "inner_product", 20)],
)
def test_a_native_search_runs_no_python(neighbors, metric, d):
    X = np.random.default_rng(0).normal(size=(900, d))
    model = DynHAC(n_neighbors=8, neighbors=neighbors, metric=metric)
    model.insert(X[:-10])
    called = []

    def note(frame, event, arg):
        if event == "call":
            called.append(frame.f_code.co_filename)

    for x in X[-10:]:
        sys.setprofile(note)
        try:
            model.insert(x)
        finally:
            sys.setprofile(None)
        model.delete(next(iter(model.ids)))
    assert called
    assert not [file for file in called if "dynhac/neighbors" in file.replace("\\", "/")]


@pytest.mark.parametrize("text", [False, True])
def test_watches_see_single_points(text):
    model, twin = twins(text=text)
    watches = [each.watch(0.4, min_size=2) for each in (model, twin)]
    ids = NAMES if text else range(40)
    for i in range(12, 30):
        model.insert(GRID[i], ids[i])
        twin.update(insert=GRID[i : i + 1], ids=[ids[i]])
        assert [str(e) for e in watches[0].events] == [str(e) for e in watches[1].events]
    for i in (3, 15, 4, 20):
        model.delete(ids[i])
        twin.update(delete=[ids[i]])
        assert [str(e) for e in watches[0].events] == [str(e) for e in watches[1].events]
    assert watches[0].labels().tolist() == watches[1].labels().tolist()


def test_a_copy_goes_on():
    model, twin = twins()
    for each in (model, twin):
        each.insert(GRID[20])
    again = copy.copy(model)
    for each in (model, twin, again):
        each.insert(GRID[21])
        each.delete(2)
        each.insert(GRID[22])
    assert snapshot(model) == snapshot(twin) == snapshot(again)


def test_a_rejected_point_goes_through_the_index_once(monkeypatch):
    exact_in_python(monkeypatch)
    model = filled(metric="inner_product", neighbors="exact")
    model.insert(GRID[20])
    added = []
    real = ExactIndex.add

    def add(self, slots, vectors):
        added.append(slots.tolist())
        real(self, slots, vectors)

    monkeypatch.setattr(ExactIndex, "add", add)
    with pytest.raises(ValueError, match=r"edge \(13, .*too large at resolution"):
        model.insert(np.full(3, 3e38))
    assert added == [[13]]
