"""Wrong input of every kind and at any position: the error names it, and nothing changes."""

import math
import re

import numpy as np
import pytest
from models import random_edges, state

from dynhac import GraphHAC, InvalidTypeError

N, M = 300, 900
KINDS = {"int": int, "str": lambda i: f"v{i}"}
POSITIONS = {"first": 0, "middle": 500, "last": 999}


def built(name):
    g = GraphHAC()
    u, v, w = random_edges(N, M)
    g.add(
        [name(i) for i in range(N)],
        ([name(i) for i in u.tolist()], [name(i) for i in v.tolist()], w),
    )
    return g


@pytest.fixture(scope="module", params=KINDS)
def kind(request):
    name = KINDS[request.param]
    return name, built(name)


def large_batch(name):
    """A valid batch: 1000 new vertices on a path, 100 to remove, and edges to remove."""
    new = [name(1000 + i) for i in range(1001)]
    pairs = zip(*(column.tolist() for column in random_edges(N, M)[:2]), strict=True)
    cut = [(name(a), name(b)) for a, b in pairs if a >= 100 and b >= 100][:200]
    return {
        "add": new,
        "u": new[:1000],
        "v": new[1:],
        "w": [0.5] * 1000,
        "remove": [name(i) for i in range(100)],
        "cut_u": [a for a, _ in cut],
        "cut_v": [b for _, b in cut],
    }


def apply(g, batch):
    return g.update(
        add=batch["add"],
        edges=(batch["u"], batch["v"], batch["w"]),
        remove=batch["remove"],
        remove_edges=(batch["cut_u"], batch["cut_v"]),
    )


def spoil(batch, column, position, value):
    position = min(position, len(batch[column]) - 1)
    batch[column][position] = value
    return position


# Column, wrong value, error and message: {id} is the wrong id, {u} and {v} the ends of the edge.
CASES = {
    "nan": ("w", math.nan, ValueError, "weight of edge ({u}, {v}) is nan; weights must be finite"),
    "inf": ("w", math.inf, ValueError, "weight of edge ({u}, {v}) is inf; weights must be finite"),
    "-inf": ("w", -math.inf, ValueError, "weight of edge ({u}, {v}) is -inf"),
    "zero": ("w", 0.0, ValueError, "weight of edge ({u}, {v}) is 0.0; weights must be finite and"),
    "negative": ("w", -0.5, ValueError, "weight of edge ({u}, {v}) is -0.5"),
    "underflow": ("w", 1e-12, ValueError, "is 1e-12, which rounds to 0 at resolution 2.32831e-10"),
    "overflow": ("w", 1e30, ValueError, "weight of edge ({u}, {v}) is 1e+30, which is too large"),
    "largest": ("w", 1.7e308, ValueError, "is 1.7e+308, which is too large at resolution"),
    "unknown u": ("u", 77777, KeyError, "edge ({id}, {v}): id {id} is not in the graph"),
    "unknown v": ("v", 77777, KeyError, "edge ({u}, {id}): id {id} is not in the graph"),
    "removed u": ("u", 5, KeyError, "edge ({id}, {v}): id {id} is not in the graph"),
    "present": ("add", 150, ValueError, "id {id} in add is already in the graph"),
    "duplicate add": ("add", 1700, ValueError, "id {id} is in add twice, at positions "),
    "unknown remove": ("remove", 77777, KeyError, "id {id} in remove is not in the graph"),
    "duplicate remove": ("remove", 60, ValueError, "id {id} is in remove twice, at positions "),
    "unknown cut": ("cut_u", 77777, KeyError, "in remove_edges: id {id} is not in the graph"),
}


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("case", CASES)
def test_errors_name_wrong_values_and_change_nothing(kind, case, position):
    name, g = kind
    column, value, error, message = CASES[case]
    batch = large_batch(name)
    bad = value if column == "w" else name(value)
    at = spoil(batch, column, POSITIONS[position], bad)
    if column == "add":  # keep only edges without the wrong id
        batch["u"], batch["v"] = batch["u"][600:601], batch["v"][600:601]
        batch["w"] = [0.5]
    before = state(g)
    with pytest.raises(error) as caught:
        apply(g, batch)
    edge = min(at, len(batch["u"]) - 1)
    expected = message.format(id=repr(bad), u=repr(batch["u"][edge]), v=repr(batch["v"][edge]))
    assert expected in str(caught.value.args[0])
    assert state(g) == before


@pytest.mark.parametrize("position", POSITIONS)
def test_self_loops(kind, position):
    name, g = kind
    batch = large_batch(name)
    at = POSITIONS[position]
    batch["v"][at] = batch["u"][at]
    before = state(g)
    with pytest.raises(ValueError, match="is a self loop") as caught:
        apply(g, batch)
    assert repr(batch["u"][at]) in str(caught.value)
    assert state(g) == before


@pytest.mark.parametrize("position", POSITIONS)
def test_two_weights_for_one_pair(kind, position):
    name, g = kind
    batch = large_batch(name)
    at = POSITIONS[position]
    batch["u"].append(batch["v"][at])
    batch["v"].append(batch["u"][at])
    batch["w"].append(0.25)
    before = state(g)
    with pytest.raises(ValueError, match="two weights in one batch") as caught:
        apply(g, batch)
    assert f"0.5 at position {at} and 0.25 at position 1000" in str(caught.value)
    assert state(g) == before


def test_removing_an_unknown_edge(kind):
    name, g = kind
    before = state(g)
    u, v, _ = random_edges(N, M)
    there = {tuple(pair) for pair in zip(u.tolist(), v.tolist(), strict=True)}
    a, b = next((a, b) for a in range(N) for b in range(a + 1, N) if (a, b) not in there)
    with pytest.raises(KeyError, match="in remove_edges is not in the graph") as caught:
        g.remove_edges([name(u[0]), name(b)], [name(v[0]), name(a)])
    assert f"edge ({name(b)!r}, {name(a)!r})" in caught.value.args[0]
    assert state(g) == before


def test_the_sum_of_weights_may_not_overflow():
    g = GraphHAC()
    n = 64
    top = 2.0**28
    before = state(g)
    u, v = np.triu_indices(n, 1)
    with pytest.raises(ValueError, match="too large at resolution"):
        g.add(range(n), (u, v, np.full(len(u), top)))
    assert state(g) == before


def test_a_valid_batch_is_accepted(kind):
    name, _ = kind
    g = built(name)
    apply(g, large_batch(name))
    assert len(g) == N - 100 + 1001
    assert g.verify()


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        ({"edges": ([1, 2], [2], [0.5, 0.5])}, "edges u has 2, edges v has 1, edges w has 2"),
        ({"edges": ([1], [2], [])}, "edges u has 1, edges v has 1, edges w has 0"),
        ({"remove_edges": ([1, 2], [2])}, "remove_edges u has 2, remove_edges v has 1"),
    ],
)
def test_lengths_must_match(kind, batch, message):
    _, g = kind
    before = state(g)
    with pytest.raises(ValueError, match=message):
        g.update(**batch)
    assert state(g) == before


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"epsilon": -0.1}, "epsilon is -0.1; it must be a finite number >= 0"),
        ({"epsilon": math.nan}, "epsilon is nan"),
        ({"epsilon": math.inf}, "epsilon is inf"),
        ({"epsilon": "0.1"}, "epsilon is '0.1'"),
        ({"epsilon": None}, "epsilon is None"),
        ({"epsilon": True}, "epsilon is True"),
        ({"epsilon": 10**400}, "epsilon is 1000"),
        ({"threshold": -1e-9}, "threshold is -1e-09"),
        ({"threshold": math.nan}, "threshold is nan"),
        ({"threshold": math.inf}, "threshold is inf"),
        ({"resolution": 0}, "resolution is 0; it must be a finite number > 0"),
        ({"resolution": -1.0}, "resolution is -1.0"),
        ({"resolution": math.inf}, "resolution is inf"),
        (
            {"resolution": 5e-324},
            "resolution is 5e-324; it must lie between 1.03e-289 and 9.75e+288",
        ),
        ({"resolution": 1e300}, "resolution is 1e+300; it must lie between"),
        ({"threads": 0}, "threads is 0; it must be an integer >= 1"),
        ({"threads": 1025}, "threads is 1025; it must be an integer >= 1 and <= 1024"),
        ({"threads": 2**70}, "threads is 1180591620717411303424"),
        ({"threads": 1.5}, "threads is 1.5"),
        ({"threads": True}, "threads is True"),
    ],
)
def test_parameters(parameters, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        GraphHAC(**parameters)


def test_values_of_a_wrong_type_are_type_errors_too():
    with pytest.raises(TypeError):
        GraphHAC(epsilon="0.1")
    assert issubclass(InvalidTypeError, ValueError)


@pytest.mark.parametrize("theta", [0.5e-4, -1, 0, math.nan, -math.inf])
def test_theta_below_the_threshold(theta):
    g = GraphHAC.from_graph((["a"], ["b"], [0.5]), threshold=1e-4)
    with pytest.raises(ValueError, match=r"it must be a similarity >= 0\.0001"):
        g.labels(theta)
    with pytest.raises(ValueError, match=r"theta is .*; it must be a similarity >= 0\.0001"):
        g.cut([0.5, theta, 0.3])


@pytest.mark.parametrize(
    "call",
    [
        lambda g: g.labels(min_size=1),
        lambda g: g.labels(0.5, n_clusters=3),
        lambda g: g.labels("0.5"),
        lambda g: g.labels([0.5]),
        lambda g: g.labels(True),
        lambda g: g.labels(0.5j),
        lambda g: g.labels(n_clusters=2.0),
        lambda g: g.labels(0.5, min_size=0),
        lambda g: g.labels(0.5, min_size=1.5),
        lambda g: g.cut(0.5),
        lambda g: g.cut([[0.5]]),
        lambda g: g.cut([[0.5], [0.5, 0.4]]),
        lambda g: g.cut(np.full((2, 2), 0.5)),
        lambda g: g.cut(None),
        lambda g: g.labels(False),
        lambda g: g.cut(["0.5"]),
        lambda g: g.cut([0.5], min_size=-1),
    ],
)
def test_wrong_arguments_of_reads(kind, call):
    _, g = kind
    with pytest.raises(ValueError, match=r"theta|min_size|n_clusters"):
        call(g)


@pytest.mark.parametrize("k", [0, 1, 8, 11, 10**9])
def test_number_of_clusters_out_of_range(k):
    g = GraphHAC()
    g.add(range(10), (0, 1, 0.5))
    with pytest.raises(ValueError, match=rf"n_clusters is {k}; .* must be between 9 and 10"):
        g.labels(n_clusters=k)


def test_a_rejected_first_batch_does_not_fix_the_id_type():
    g = GraphHAC()
    with pytest.raises(ValueError, match="nan"):
        g.add(["a", "b"], (["a"], ["b"], [math.nan]))
    assert g.ids.dtype == np.int64
    g.add([1, 2], (1, 2, 0.5))
    with pytest.raises(ValueError, match="'a' in add is a str, but the ids of this graph are int"):
        g.add("a")
    h = GraphHAC()
    with pytest.raises(ValueError, match="nan"):
        h.add([1, 2], (1, 2, math.nan))
    h.add(["a", "b"], ("a", "b", 0.5))
    with pytest.raises(ValueError, match="1 in add is an int, but the ids of this graph are str"):
        h.add(1)
    assert h.ids.tolist() == ["a", "b"]
