"""``DynHAC`` from outside: input, ids, errors, searches; and that a failure changes nothing."""

import re
import threading
from enum import Enum

import numpy as np
import pytest
from points_oracle import GRID, Simulation, built, compare, edges_of, snapshot

import dynhac
from dynhac import DynHAC, InvalidTypeError, PointChange


def simulated(rows, k, **rules):
    simulation = Simulation(k, **rules)
    simulation.update([tuple(row) for row in rows.tolist()])
    return simulation


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "i8", "u2", ">f8"])
def test_kinds_of_numbers(dtype):
    model = DynHAC(n_neighbors=3)
    ids = model.insert(GRID.astype(dtype) if dtype != "u2" else np.abs(GRID).astype(dtype))
    assert ids.dtype == np.int64
    assert model.vectors().dtype == np.float32
    assert model.vectors().tolist() == (np.abs(GRID) if dtype == "u2" else GRID).tolist()


def test_lists_tables_and_views():
    pandas = pytest.importorskip("pandas")
    expected = edges_of(built(40).graph)
    for rows in (
        GRID.tolist(),
        tuple(map(tuple, GRID.tolist())),
        pandas.DataFrame(GRID),
        np.asfortranarray(GRID),
        np.repeat(GRID, 2, axis=1)[:, ::2],
        GRID.astype(object),
    ):
        model = DynHAC(n_neighbors=4)
        model.insert(rows)
        assert edges_of(model.graph) == expected


def test_input_is_not_kept():
    rows = GRID.astype(np.float32)
    model = DynHAC()
    model.insert(rows)
    vector = rows[0].copy()
    model.insert(vector)
    rows[:] = 7
    vector[:] = 7
    assert model.vectors().tolist() == [*GRID.tolist(), GRID[0].tolist()]
    model.vectors()[:] = 9
    assert model.vectors(3).tolist() == [GRID[3].tolist()]


def test_one_vector_or_a_table():
    model = DynHAC()
    assert model.insert([1.0, 2.0]) == 0
    assert model.insert([[1.0, 2.0]]).tolist() == [1]
    assert model.insert(np.ones(2), ids=[7]) == 7
    assert model.insert(np.ones(2, np.float32), ids=8) == 8
    assert model.dimension == 2


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        ([[1.0, np.nan]], ValueError, "row 0, column 1 of X is nan; vectors must be finite"),
        ([[1, 1], [1, -np.inf]], ValueError, "row 1, column 1 of X is -inf"),
        (np.array([1.0, np.inf]), ValueError, "row 0, column 1 of X is inf"),
        (np.array([1.0, 1e39]), ValueError, "row 0, column 1 of X is 1e[+]39, which does not fit"),
        ([[1, 2], [10**400, 1]], ValueError, "row 1, column 0 of X is 1000.*does not fit"),
        ([[1, 2, 3]], ValueError, "X has 3 dimensions, but the vectors of this model have 2"),
        ([1, 2, 3], ValueError, "the vector has 3 dimensions"),
        (np.ones((0, 3)), ValueError, "3 dimensions"),
        (np.ones((1, 2, 2)), InvalidTypeError, r"shape \(1, 2, 2\)"),
        (np.ones((1, 0)), ValueError, "0 dimensions"),
        (3.5, InvalidTypeError, "X is 3.5"),
        (None, InvalidTypeError, "X is None"),
        ("ab", InvalidTypeError, "X is 'ab'"),
        ([["a", "b"]], InvalidTypeError, "dtype <U1"),
        ([[True, False]], InvalidTypeError, "dtype bool"),
        (np.ones((1, 2), complex), InvalidTypeError, "dtype complex128"),
        ([[1, 2], [3, None]], InvalidTypeError, "row 1, column 1 of X is None"),
        ([[1, 2], [3]], InvalidTypeError, "row 1 of X has length 1, row 0 has length 2"),
        (np.ma.ones((1, 2)), InvalidTypeError, "masked"),
    ],
)
@pytest.mark.parametrize("text", [False, True])
def test_vectors_that_are_wrong(rows, error, message, text):
    model = DynHAC(n_neighbors=2)
    model.insert(GRID[:5, :2], [f"p{i}" for i in range(5)] if text else None)
    before = snapshot(model)
    with pytest.raises(error, match=message):
        model.insert(rows, ids=["a"] if text else None)
    assert snapshot(model) == before


def test_sparse_matrices_are_named():
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(InvalidTypeError, match="toarray"):
        DynHAC().insert(sparse.eye(3, format="csr"))


def test_many_numbers_for_a_model_of_one_dimension():
    model = DynHAC()
    model.insert([[1.0], [2.0]])
    with pytest.raises(ValueError, match=r"give shape \(3, 1\)"):
        model.insert([1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    ("batch", "error", "message"),
    [
        ({"ids": [1]}, ValueError, "ids has 1 entry for 2 points"),
        ({"ids": [50, 50]}, ValueError, "id 50 is in ids twice, at positions 0 and 1"),
        ({"ids": [50, 3]}, ValueError, "id 3 in ids is already in the model; to replace it"),
        ({"ids": ["a", "b"]}, InvalidTypeError, "'a' in ids is a str, but the ids of this model"),
        ({"ids": [1, "b"]}, InvalidTypeError, "mix"),
        ({"ids": [1.0, 2.0]}, InvalidTypeError, "1.0"),
        ({"ids": [50, 2**63]}, ValueError, "64 bits"),
        ({"delete": [99]}, KeyError, "id 99 in delete is not in the model"),
        ({"delete": [1, 2, 1]}, ValueError, "id 1 is in delete twice, at positions 0 and 2"),
        ({"delete": "a"}, InvalidTypeError, "'a' in delete is a str"),
        ({"delete": [1], "ids": [1, 2]}, ValueError, "id 2 in ids is already in the model"),
    ],
)
def test_ids_that_are_wrong(batch, error, message):
    model = built()
    before = snapshot(model)
    with pytest.raises(error, match=message):
        model.update(insert=GRID[:2], **batch)
    assert snapshot(model) == before
    assert model.insert(GRID[0]) == 30


def test_assigned_ids_are_never_used_again():
    model = DynHAC()
    assert model.insert(GRID[:3]).tolist() == [0, 1, 2]
    model.delete([1, 2])
    assert model.insert(GRID[0]) == 3
    model.insert(GRID[:2], ids=[100, -5])
    model.delete(100)
    assert model.insert(GRID[0]) == 101
    model.insert(GRID[0], ids=2**63 - 1)
    with pytest.raises(ValueError, match="no int id above"):
        model.insert(GRID[0])


def test_str_ids_have_to_be_given():
    model = DynHAC()
    assert model.insert(GRID[0], ids="a") == "a"
    assert model.insert(GRID[:2], ids=["b", "c"]).tolist() == ["b", "c"]
    with pytest.raises(ValueError, match="ids of this model are str, so that new points need ids"):
        model.insert(GRID[0])
    with pytest.raises(InvalidTypeError, match="7 in ids is an int"):
        model.insert(GRID[0], ids=7)
    assert "a" in model
    assert 7 not in model


def test_a_rejected_first_batch_binds_nobody():
    model = DynHAC()
    with pytest.raises(ValueError, match="nan"):
        model.insert([[1.0, np.nan]], ids=["a"])
    with pytest.raises(KeyError, match="which is empty"):
        model.delete(3)
    assert model.dimension is None
    model.insert([[1.0]], ids=[4])
    assert model.ids.tolist() == [4]


def test_empty_batches():
    model = DynHAC()
    for rows in ([], np.empty((0, 3)), np.empty((0, 0))):
        assert model.insert(rows).tolist() == []
    assert model.insert([], ids=[]).tolist() == []
    assert len(model.delete([]).deleted) == 0
    assert isinstance(model.update(), PointChange)
    assert model.vectors().shape == (0, 0)
    assert model.labels(0.5).tolist() == []
    assert len(model) == model.version == 0
    model.insert(GRID)
    version = model.version
    assert model.insert([]).tolist() == []
    assert model.update(delete=[]).inserted.tolist() == []
    assert model.version == version


def test_replacing():
    model = built(5)
    change = model.update(insert=[[9, 9, 9]], ids=[2], delete=[2])
    assert change.inserted.tolist() == change.deleted.tolist() == [2]
    assert model.ids.tolist() == [0, 1, 3, 4, 2]
    assert model.vectors(2).tolist() == [[9, 9, 9]]
    assert model.vectors([2, 0, 2]).tolist() == [[9, 9, 9], GRID[0].tolist(), [9, 9, 9]]
    with pytest.raises(KeyError, match="id 77 in ids is not in the model"):
        model.vectors(77)


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "inner_product"])
def test_the_graph_of_a_build(metric):
    model = DynHAC(n_neighbors=5, metric=metric, neighbors="exact")
    model.insert(GRID)
    rule = (lambda d: max(-d, 0.0)) if metric == "inner_product" else (lambda d: 1 / (1 + d))
    compare(model, simulated(GRID, 5, metric=metric, similarity=rule))
    assert model.verify().ok


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "inner_product"])
def test_zero_vectors_and_duplicates(metric):
    rows = np.zeros((60, 2))
    rows[30:] = [1.0, 2.0]
    model = DynHAC(n_neighbors=5, metric=metric)
    model.insert(rows)
    model.insert(rows[0])
    model.insert(rows[40])
    assert model.verify().ok
    degrees = model.graph.degrees(model.ids)
    assert degrees[30:60].min() >= 5
    if metric != "inner_product":
        assert degrees.min() >= 5
    for id in range(0, 60, 2):
        model.delete(id)
    assert model.verify().ok


def test_similarity_zero_is_no_edge():
    model = DynHAC(n_neighbors=3, similarity=lambda d: np.where(d < 1.5, 1.0, 0.0))
    model.insert([[0.0], [1.0], [5.0], [6.0]])
    assert edges_of(model.graph).keys() == {(0, 1), (1, 0), (2, 3), (3, 2)}
    model.insert([9.0])
    assert model.graph.degrees([4]).tolist() == [0]


def test_a_weight_that_is_too_large_is_an_error_of_the_graph():
    model = DynHAC(similarity=lambda d: np.full_like(d, 1e300))
    with pytest.raises(ValueError, match="too large at resolution"):
        model.insert(GRID[:3])
    assert len(model) == 0
    assert model.dimension is None


def test_the_same_updates_give_the_same_model():
    def stream():
        model = DynHAC(n_neighbors=4, max_points=25)
        for row in GRID:
            model.insert(row)
        model.delete(model.ids[::3])
        return snapshot(model)

    assert stream() == stream()


def test_readers_beside_writers():
    model = DynHAC(n_neighbors=5)
    model.insert(GRID)
    faults = []
    done = threading.Event()

    def read():
        while not done.is_set():
            try:
                d = model.dendrogram()
                assert len(d.ids) == len(d.labels(0.5))
                model.vectors()
                len(model)
            except Exception as error:
                faults.append(error)
                return

    def write(first):
        for i in range(100):
            model.insert(GRID[i % 40], ids=first + i)
            model.delete(first + i)

    readers = [threading.Thread(target=read) for _ in range(2)]
    writers = [threading.Thread(target=write, args=(1000 * i,)) for i in (1, 2, 3)]
    for thread in readers + writers:
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    for thread in readers:
        thread.join()
    assert not faults
    assert sorted(model.ids.tolist()) == list(range(40))
    assert model.verify().ok


def test_what_it_tells_about_itself():
    model = built()
    assert repr(model).startswith("<DynHAC: 30 points of dimension 3, ")
    assert repr(DynHAC()).startswith("<DynHAC: 0 points, 0 edges, 1 level; epsilon=0.1")
    change = model.update(insert=GRID[30:], delete=[1])
    assert re.match(r"<PointChange: 10 points inserted, 1 deleted; .* in the engine>", repr(change))
    assert change.seconds == change.seconds_engine > 0
    assert change.seconds_search > 0
    assert change.seconds_graph >= 0
    assert model.last_change is change
    assert change.nodes_created == len(change.created)
    graph = model.graph
    assert model.ids.tolist() == graph.ids.tolist()
    assert model.labels(n_clusters=3).tolist() == graph.labels(n_clusters=3).tolist()
    assert model.cut([0.5, 0.2]).tolist() == graph.cut([0.5, 0.2]).tolist()
    assert model.dendrogram() is graph.dendrogram()
    assert model.memory > graph.memory
    for name in ("epsilon", "threshold", "resolution", "threads", "version", "n_levels"):
        assert getattr(model, name) == getattr(graph, name)
    assert model.level_sizes == graph.level_sizes
    assert (model.n_neighbors, model.metric) == (4, "euclidean")
    assert model.explain(0, 2) is not None
    assert model.watch(0.5) in graph.watches


@pytest.mark.parametrize(
    ("parameters", "error"),
    [
        ({"n_neighbors": 0}, ValueError),
        ({"n_neighbors": 2.5}, TypeError),
        ({"metric": "manhattan"}, ValueError),
        ({"similarity": "cosine"}, ValueError),
        ({"epsilon": -1}, ValueError),
        ({"threads": 0}, ValueError),
    ],
)
def test_parameters_that_are_wrong(parameters, error):
    with pytest.raises(error, match=next(iter(parameters))):
        DynHAC(**parameters)


def test_the_package_gives_it_when_asked():
    assert "DynHAC" in dir(dynhac)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = dynhac.Nothing


def test_nobody_else_changes_its_graph():
    model = DynHAC(n_neighbors=2)
    model.insert([[0.0], [1.0], [2.0]])
    for call in (
        lambda: model.graph.remove(1),
        lambda: model.graph.update(add=[9]),
        lambda: model.graph.set_edges(0, 1, 0.5),
    ):
        with pytest.raises(TypeError, match="there to be read; use the model's insert"):
            call()
    assert model.insert([[3.0]]).tolist() == [3]
    assert model.verify().ok


def test_enumerations_of_strings_are_their_values():
    class Colour(str, Enum):
        RED = "red"
        BLUE = "blue"

    model = DynHAC()
    model.insert([[0.0], [1.0]], ids=[Colour.RED, Colour.BLUE])
    assert model.ids.tolist() == ["red", "blue"]
    assert Colour.RED in model
    model.delete(Colour.RED)
    assert model.ids.tolist() == ["blue"]


def test_what_a_model_was_asked_for_can_be_seen():
    model = DynHAC()
    assert (model.similarity, model.index, model.repair) == ("inverse", "auto", True)
    assert (model.max_points, model.max_age) == (None, None)
    assert "max" not in repr(model)
    week = np.timedelta64(7, "D")
    model = DynHAC(similarity=("gaussian", 2), repair=False, max_points=5, max_age=week)
    assert (model.similarity, model.repair) == (("gaussian", 2.0), False)
    assert (model.max_points, model.max_age) == (5, week)
    assert repr(model).endswith("max_points=5, max_age=7 days>")
    assert str(DynHAC(max_age=np.timedelta64(90, "s")).max_age) == "90 seconds"
    assert DynHAC(similarity=np.exp).similarity is np.exp
    assert DynHAC(max_age=2.5).max_age == 2.5


def test_an_unknown_point_has_no_explanation():
    model = DynHAC()
    model.insert([[0.0], [1.0]])
    with pytest.raises(KeyError, match="id 99 is not in the model"):
        model.explain(0, 99)


def test_a_column_of_lists_is_a_table():
    pd, pa = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    rows = [[0.0, 1.0], [2.0, 3.0]]
    for column in (pd.Series(rows), pa.array(rows), pd.Series([np.array(row) for row in rows])):
        model = DynHAC()
        model.insert(column)
        assert model.vectors().tolist() == rows
    with pytest.raises(InvalidTypeError, match="row 1 of X has length 1, row 0 has length 2"):
        DynHAC().insert(pd.Series([[0.0, 1.0], [2.0]]))
