"""Single points take a short way through the model; what comes of it is what the long way gives."""

import numpy as np
import pytest
from points_oracle import GRID, edges_of, snapshot

from dynhac import DynHAC
from dynhac.neighbors import ExactIndex


class LongWay(DynHAC):
    """A model whose points never take the short way."""

    __slots__ = ()

    def _by_short_way(self, X, id, time, removes):
        return None


@pytest.fixture
def short(monkeypatch):
    """A list that grows with every update that takes the short way."""
    taken = []
    real = DynHAC._by_short_way

    def take(self, X, id, time, removes):
        one = real(self, X, id, time, removes)
        taken.extend(["remove" if removes else "insert"] * (one is not None))
        return one

    monkeypatch.setattr(DynHAC, "_by_short_way", take)
    return taken


def told(change):
    """What a change says, without its times."""
    nodes = [sorted(change.created), sorted(change.removed)]
    columns = (change.inserted, change.deleted, change.expired, change.repaired)
    listed = [(column.dtype, column.tolist()) for column in columns]
    return listed, nodes, change.edges_changed, change.levels


def pair(first=12, text=False, **parameters):
    """Two models of the same points, one of which takes the long way."""
    models = DynHAC(**parameters), LongWay(**parameters)
    for model in models:
        model.insert(GRID[:first], [f"p{i}" for i in range(first)] if text else None)
    return models


def both_refuse(models, error, update):
    """Return what both say; nothing of theirs has changed."""
    messages = set()
    for model in models:
        before = snapshot(model)
        with pytest.raises(error) as caught:
            update(model)
        messages.add(str(caught.value))
        assert snapshot(model) == before
    (message,) = messages
    return message


PARAMETERS = {
    "kd": {},
    "exact": {"neighbors": "exact"},
    "usearch": {"neighbors": "usearch"},
    "cosine": {"metric": "cosine", "similarity": "cosine"},
    "dot": {"metric": "inner_product"},
    "gaussian": {"similarity": ("gaussian", 2.0)},
    "no repair": {"repair": False},
    "exact linkage": {"epsilon": 0.0, "threshold": 0.0},
    "window": {"max_points": 14},
    "window, no repair": {"max_points": 12, "repair": False},
    "str": {"text": True},
    "str, window": {"text": True, "max_points": 14},
}


@pytest.mark.parametrize("name", PARAMETERS)
@pytest.mark.parametrize("seed", range(3))
def test_both_ways_lead_to_the_same(short, name, seed):
    rng = np.random.default_rng(seed)
    parameters = dict(PARAMETERS[name])
    text = parameters.get("text", False)
    model, twin = pair(n_neighbors=4, **parameters)
    for i in range(80):
        if len(model) and rng.random() < 0.48:
            id = model.ids[rng.integers(len(model))]
            id = id if text else int(id)
            assert told(model.delete(id)) == told(twin.delete(id))
        else:
            x = GRID[rng.integers(len(GRID))]
            x = [x, x.astype(np.float32), x[::-1], np.repeat(x, 2)[::2]][rng.integers(4)]
            id = f"q{i}" if text else [None, int(rng.integers(-500, 500)), 3 * i][rng.integers(3)]
            if id in model:
                continue
            assert model.insert(x, id) == twin.insert(x, id)
        assert told(model.last_change) == told(twin.last_change)
        assert snapshot(model) == snapshot(twin)
    assert short.count("insert") > 20
    assert short.count("remove") > 20
    assert model.verify().ok


def test_the_last_point_and_the_first(short):
    model, twin = pair(first=1, n_neighbors=4)
    for step in (0, None, None, 1, 2, None):
        for each in (model, twin):
            each.insert(GRID[5]) if step is None else each.delete(step)
        assert snapshot(model) == snapshot(twin)
    assert len(short) == 6


def test_what_change_says_of_one_point():
    model, _ = pair(n_neighbors=4)
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
    "value",
    [
        np.array([1.0, np.nan, 0.0]),
        np.array([1.0, np.inf, 0.0], np.float32),
        np.array([1.0, 1e39, 0.0]),
        np.array([1.0, 2.0]),
        np.array([[1.0, 2.0, 3.0, 4.0]]),
        np.array(["a", "b", "c"]),
        np.array([1, 2, None]),
        np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0]),
        np.float64(3.0),
        "abc",
        None,
    ],
)
def test_vectors_that_are_wrong(value):
    both_refuse(pair(n_neighbors=4), ValueError, lambda model: model.insert(value))


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
def test_vectors_that_take_the_long_way(short, value):
    model, twin = pair(n_neighbors=4)
    assert np.array_equal(model.insert(value), twin.insert(value))
    assert not short
    assert snapshot(model) == snapshot(twin)


@pytest.mark.parametrize(
    ("id", "error"),
    [
        (99, KeyError),
        (-1, KeyError),
        (2**63, ValueError),
        (-(2**80), ValueError),
        (True, ValueError),
        (1.0, ValueError),
        ("a", ValueError),
        (None, ValueError),
    ],
)
def test_ids_that_are_wrong(id, error):
    both_refuse(pair(n_neighbors=4), error, lambda model: model.delete(id))


@pytest.mark.parametrize(
    "parameters",
    [
        {"neighbors": ExactIndex()},
        {"similarity": lambda d: 1 / (1 + d)},
    ],
)
def test_models_whose_points_take_the_long_way(short, parameters):
    model = DynHAC(n_neighbors=4, **parameters)
    for row in GRID[:20]:
        model.insert(row)
    model.delete(3)
    assert not short
    assert model.verify().ok


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize(
    "ids", [3, -1, "p3", "q", ["q"], [50], np.int64(50), True, 2**63, 1.5, b"q", ["q", "r"]]
)
def test_ids_of_new_points(text, ids):
    """Whatever is given, both ways make the same of it."""
    model, twin = pair(n_neighbors=4, text=text)
    before = snapshot(model)
    results = []
    for each in (model, twin):
        try:
            results.append(each.insert(GRID[20], ids))
        except ValueError as error:
            results.append(repr(error))
            assert snapshot(each) == before
    assert results[0] == results[1]
    assert type(results[0]) is type(results[1])
    assert snapshot(model) == snapshot(twin)


def test_a_vector_that_is_wrong_costs_no_key():
    model, twin = pair(n_neighbors=4, text=True)
    with pytest.raises(ValueError, match="nan"):
        model.insert(np.array([1.0, np.nan, 0.0]), "q")
    for each in (model, twin):
        each.insert(GRID[20], "r")
    columns = [dict(each._columns()) for each in (model, twin)]
    assert columns[0].keys() == columns[1].keys()
    assert all(np.array_equal(columns[0][name], columns[1][name]) for name in columns[0])


def test_insertions_that_need_more_take_the_long_way(short):
    timed = DynHAC(n_neighbors=4)
    timed.insert(GRID[:5], timestamps=range(5))
    text = DynHAC(n_neighbors=4, max_points=3)
    text.insert(GRID[:2], ids=["a", "b"])
    with pytest.raises(ValueError, match="new points need ids"):
        text.insert(GRID[5])
    aged = DynHAC(n_neighbors=4, max_age=5)
    aged.insert(GRID[:2], timestamps=[1, 2])
    for model in (timed, aged):
        with pytest.raises(ValueError, match="points need timestamps"):
            model.insert(GRID[5])
        with pytest.raises(ValueError, match="timestamps are dates"):
            model.insert(GRID[5], timestamps=np.datetime64("2024"))
    plain = DynHAC(n_neighbors=4)
    plain.insert(GRID[:5])
    with pytest.raises(ValueError, match="cannot have timestamps"):
        plain.insert(GRID[5], timestamps=5)
    assert not short
    text.delete("b")
    timed.delete(3)
    aged.delete(0)
    assert short == ["remove"] * 3


def test_names_of_points_that_expire(short):
    model = DynHAC(n_neighbors=4, max_points=3)
    model.insert(GRID[:2], ids=["a", "b"])
    for row, id in zip(GRID[5:10], "cdefa", strict=True):
        model.insert(row, id)
    assert len(short) == 5
    assert model.last_change.expired.tolist() == ["d"]
    assert model.ids.tolist() == ["e", "f", "a"]
    names = model.graph._keyed.names
    assert sorted(names._key_of) == ["a", "e", "f"]
    assert len(names._name_of) == 3
    assert not names._suspects


@pytest.mark.parametrize("time", [2.5, True, "5", [5], np.int64(5), 2**63, np.float64(5), None])
def test_times_that_take_the_long_way(short, time):
    models = DynHAC(n_neighbors=4, max_age=5), LongWay(n_neighbors=4, max_age=5)
    for model in models:
        model.insert(GRID[:5], timestamps=range(5))
        model.insert(GRID[6], timestamps=5)
    assert short == ["insert"]
    results = []
    for model in models:
        try:
            results.append(model.insert(GRID[7], timestamps=time))
        except ValueError as error:
            results.append(str(error))
    assert results[0] == results[1]
    assert short == ["insert"]
    assert snapshot(models[0]) == snapshot(models[1])


DAY = np.datetime64("2024-01-01T00:00")
TIMES = {
    "ints": lambda t, _: t,
    "floats": lambda t, _: t / 4 - 3,
    "ints, then floats": lambda t, i: t if i < 60 or t % 2 else t + 0.5,
    "dates": lambda t, _: DAY + np.timedelta64(t, "m"),
    "python dates": lambda t, _: (DAY + np.timedelta64(t, "m")).astype(object),
}
BOUNDS = [{}, {"max_points": 14}, {"max_age": 6}, {"max_points": 9, "max_age": 12.5}]


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
@pytest.mark.parametrize("kind", TIMES)
def test_points_with_times(short, kind, bounds, text):
    """They come late, too late, and all at once; some are deleted, and the clock moves on."""
    rng = np.random.default_rng(len(kind))
    bounds = dict(bounds)
    if "dates" in kind and "max_age" in bounds:
        bounds["max_age"] = np.timedelta64(int(60 * bounds["max_age"]), "s")
    models = DynHAC(n_neighbors=4, **bounds), LongWay(n_neighbors=4, **bounds)
    for i in range(150):
        ids, chosen = models[0].ids, rng.random()
        if len(ids) > 1 and chosen < 0.3:
            gone = ids[rng.integers(len(ids))]
            changes = [model.delete(gone if text else int(gone)) for model in models]
        elif "max_age" in bounds and chosen < 0.35:
            changes = [model.expire(TIMES[kind](i // 2 + 2, i)) for model in models]
        else:
            late = rng.integers(4) if rng.random() < 0.9 else 12
            row, time = GRID[rng.integers(len(GRID))], TIMES[kind](i // 2 - int(late), i)
            for model in models:
                model.insert(row, f"p{i}" if text else None, time)
            changes = [model.last_change for model in models]
        assert told(changes[0]) == told(changes[1])
        assert snapshot(models[0]) == snapshot(models[1])
    assert short.count("remove") > 15
    assert short.count("insert") > 30
    assert models[0].verify().ok


def test_ids_that_have_run_out():
    model, _ = pair(n_neighbors=4)
    model.insert(GRID[20], ids=2**63 - 1)
    before = snapshot(model)
    with pytest.raises(ValueError, match="no int id above"):
        model.insert(GRID[21])
    assert snapshot(model) == before
    model.delete(2**63 - 1)


def test_a_graph_that_rejects_the_point(short):
    model, twin = pair(metric="inner_product", n_neighbors=4)
    message = both_refuse((model, twin), ValueError, lambda each: each.insert(np.full(3, 3e38)))
    assert "too large at resolution" in message
    model.insert(GRID[20])
    twin.insert(GRID[20])
    assert short == ["insert"]
    assert snapshot(model) == snapshot(twin)


def test_a_model_that_outgrows_its_index(monkeypatch, short):
    monkeypatch.setattr("dynhac.models.pointgraph.MOST_NUMBERS_SCANNED", 90)
    monkeypatch.setattr(
        "dynhac.models.pointgraph.choose_backend",
        lambda _, d, n: "exact" if d * n <= 90 else "kd",
    )
    model = DynHAC(n_neighbors=4)
    model.insert(GRID[:10])
    for row in GRID[10:30]:
        model.insert(row)
    assert (model.backend, len(model), len(short)) == ("exact", 30, 20)
    model.insert(GRID[30])
    assert (model.backend, len(short)) == ("kd", 20)
    model.insert(GRID[31])
    assert len(short) == 21
    whole = LongWay(n_neighbors=4, neighbors="exact")
    whole.insert(GRID[:10])
    for row in GRID[10:32]:
        whole.insert(row)
    assert edges_of(model.graph) == edges_of(whole.graph)


@pytest.mark.parametrize("text", [False, True])
def test_watches_see_what_happens(short, text):
    model, twin = pair(n_neighbors=4, text=text)
    watches = [each.watch(0.4, min_size=2) for each in (model, twin)]
    for i, row in enumerate(GRID[12:30]):
        for each in (model, twin):
            each.insert(row, f"p{i + 12}" if text else None)
    for id in (3, 15, 4, 20):
        for each in (model, twin):
            each.delete(f"p{id}" if text else id)
    assert len(short) == 22
    events = [[str(event) for event in watch.events] for watch in watches]
    assert events[0] == events[1]
    labels = [watch.labels().tolist() for watch in watches]
    assert labels[0] == labels[1]


def test_a_copy_goes_on(short):
    model, twin = pair(n_neighbors=4)
    for each in (model, twin):
        each.insert(GRID[20])
    again = DynHAC._from_state(*model.__reduce__()[1])
    for each in (model, twin, again):
        each.insert(GRID[21])
        each.delete(2)
        each.insert(GRID[22])
    assert len(short) == 6  # the copy's first update takes the long way
    assert snapshot(model) == snapshot(twin) == snapshot(again)


def test_ids_that_are_not_there_leave_no_names_behind():
    model, _ = pair(n_neighbors=4, text=True)
    for i in range(50):
        with pytest.raises(KeyError):
            model.delete(f"nobody {i}")
    assert not model.graph._keyed.names._suspects


def test_rejected_points_leave_no_names_behind():
    model, _ = pair(n_neighbors=4, text=True, metric="inner_product")
    for i in range(20):
        with pytest.raises(ValueError, match="too large at resolution"):
            model.insert(np.full(3, 3e38), f"q{i}")
    names = model.graph._keyed.names
    assert len(names._key_of) == len(names._name_of) == len(model)


def test_a_rejected_point_goes_through_the_index_once(monkeypatch):
    model, _ = pair(metric="inner_product", neighbors="exact", n_neighbors=4)
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
