"""Data frames as points, UUIDs as ids, and values too small for float32."""

import uuid

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dynhac
from dynhac import DynHAC, GraphHAC

FRAME = pd.DataFrame({"x": [0.0, 0.1, 5.0], "y": [1, 2, 3]})


def with_index(*labels, **options):
    return FRAME.set_index(pd.Index(labels, **options))


@pytest.mark.parametrize(
    ("frame", "ids"),
    [
        (with_index("a", "b", "c"), ["a", "b", "c"]),
        (with_index("a", "b", "c", dtype="string"), ["a", "b", "c"]),
        (with_index("a", "b", "c", dtype="category"), ["a", "b", "c"]),
        (with_index(7, 3, 5), [7, 3, 5]),
        (with_index(7, 3, 5, dtype="Int64"), [7, 3, 5]),
        (FRAME.iloc[1:], [1, 2]),
        (FRAME.iloc[::-1], [2, 1, 0]),
        (FRAME.rename_axis("row"), [0, 1, 2]),
        (pd.Series([[0.0, 1.0], [0.5, 1.0]], ["a", "b"]), ["a", "b"]),
        (pd.Series([[0.0, 1.0]], [9]), [9]),
    ],
)
def test_the_index_of_a_frame_becomes_the_ids(frame, ids):
    model = DynHAC()
    assert model.insert(frame).tolist() == ids
    assert model.update(insert=frame, delete=ids).inserted.tolist() == ids
    other = frame.set_axis([f"other {id}" if isinstance(id, str) else id + 100 for id in ids])
    assert model.insert(frame, ids=other.index).tolist() == other.index.tolist()
    with pytest.raises(ValueError, match=r"in the index of X is already .* give X.to_numpy\(\)"):
        model.insert(frame)
    assert len(model) == 2 * len(ids)


def test_frames_without_an_index_of_their_own_count_up():
    model = DynHAC()
    assert model.insert(FRAME).tolist() == [0, 1, 2]
    assert model.insert(FRAME).tolist() == [3, 4, 5]
    assert model.insert(pl.from_pandas(FRAME)).tolist() == [6, 7, 8]
    assert model.insert(pa.Table.from_pandas(FRAME)).tolist() == [9, 10, 11]
    assert model.insert(FRAME.iloc[0]) == 12  # one vector, whose index names its columns
    assert model.insert(FRAME.iloc[:0]).tolist() == []
    assert model.insert(with_index("a", "b", "c").to_numpy()).tolist() == [13, 14, 15]
    np.testing.assert_array_equal(model.vectors([3, 4, 5]), FRAME.to_numpy(np.float32))


def test_a_durable_model_takes_the_index(tmp_path):
    with dynhac.open(tmp_path / "store") as model:
        model.insert(with_index("a", "b", "c"))
    with dynhac.open(tmp_path / "store", mode="r") as model:
        assert model.ids.tolist() == ["a", "b", "c"]


def test_the_batch_does_not_follow_changes_of_the_index():
    model = DynHAC()
    labels = np.array([5, 6, 7])
    model.insert(FRAME.set_index(labels))
    labels[:] = 0
    assert model.last_change.inserted.tolist() == [5, 6, 7]


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (with_index("a", "b", "a"), "id 'a' is in the index of X twice, at positions 0 and 2"),
        (with_index(1.5, 2.5, 3.5), "the index of X have dtype float64; ids must be all int"),
        (with_index("a", 2, "b"), "ids in the index of X are a mix: 'a' at position 0, 2 at"),
        (with_index(1, None, 3, dtype="Int64"), "the index of X have missing values"),
        (FRAME.set_index(pd.date_range("2024", periods=3)), "the index of X have dtype datetime64"),
        (FRAME.set_index([list("abc"), list("abc")]), "the index of X has 2 levels"),
        (with_index(2**64, 1, 2), "the index of X does not fit in 64 bits"),
    ],
)
def test_an_index_that_cannot_be_ids_is_an_error(frame, message):
    model = DynHAC()
    with pytest.raises(ValueError, match=rf"{message}.*for ids that count up give X.to_numpy\(\)"):
        model.insert(frame)
    assert len(model) == 0
    assert model.insert(frame, ids=["x", "y", "z"]).tolist() == ["x", "y", "z"]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (["Rome", "Oslo", "Bonn"], r"row 0 of column 'c' of X is 'Rome' \(str\); X must hold int"),
        ([1.0, 2.0, "three"], r"row 2 of column 'c' of X is 'three' \(str\)"),
        ([True, False, True], r"row 0 of column 'c' of X is True \(bool\)"),
        ([1, None, "x"], r"row 1 of column 'c' of X is None"),
        (pd.array([1, None, 3], dtype="Int64"), "row 1, column 2 of X is <NA>"),
        (pd.date_range("2024", periods=3), r"row 0 of column 'c' of X is .*2024"),
        ([[1.0], [2.0], [3.0]], r"column 'c' of X is \[1.0\] \(list\); .* give X\['c'\]"),
    ],
)
def test_columns_that_hold_no_numbers_are_named(column, message):
    model = DynHAC()
    with pytest.raises(TypeError, match=message):
        model.insert(FRAME.assign(c=column))
    assert len(model) == 0


@pytest.mark.parametrize("make", [pl.DataFrame, pa.table])
def test_columns_of_other_tables_are_named(make):
    with pytest.raises(TypeError, match=r"row 0 of column 'city' of X is 'Rome' \(str\)"):
        DynHAC().insert(make({"x": [1.0, 2.0], "city": ["Rome", "Oslo"]}))


def test_columns_of_the_same_name():
    frame = pd.concat([FRAME, FRAME.astype({"x": object})], axis=1)
    assert DynHAC().insert(frame).tolist() == [0, 1, 2]


ONE, TWO, THREE = (uuid.UUID(int=number) for number in (1, 2, 3))


def test_a_uuid_stands_for_its_str(tmp_path):
    with dynhac.open(tmp_path / "store") as model:
        watch = model.watch(0.5)
        assert model.insert([[0.0], [0.1]], ids=[ONE, str(TWO)]).tolist() == [str(ONE), str(TWO)]
        assert model.insert([9.0], ids=THREE) == str(THREE)
        assert ONE in model
        assert str(ONE) in model
        assert np.array(ONE) in model
        assert model.vectors([THREE, ONE]).ravel().tolist() == [9.0, 0.0]
        assert model.vectors(THREE).tolist() == [[9.0]]
        assert model.explain(ONE, TWO) == model.explain(str(ONE), str(TWO))
        assert watch.cluster_of(ONE) == watch.cluster_of(TWO)
        assert model.graph.degrees(ONE).tolist() == [2]
        model.update(delete=[ONE], insert=pd.DataFrame({"x": [4.0]}, index=[ONE]))
        assert model.delete(ONE).deleted.tolist() == [str(ONE)]
        assert ONE not in model
        with pytest.raises(KeyError, match="00000000-0000-0000-0000-000000000001"):
            model.delete([TWO, ONE])


def test_uuids_in_graphs():
    g = GraphHAC()
    g.add([ONE, TWO], edges=(ONE, TWO, 0.5))
    assert g.ids.tolist() == [str(ONE), str(TWO)]
    g.update(edges=pd.DataFrame({"source": [ONE], "target": [TWO], "weight": [0.25]}))
    assert g.edges(of=TWO)[2].tolist() == [0.25]
    g.remove_edges(ONE, TWO)
    g.remove(np.array([ONE], object))
    assert len(g) == 1


def test_uuids_and_ints_do_not_mix():
    model = DynHAC()
    with pytest.raises(TypeError, match=r"are a mix: '0{8}-.*' at position 0, 3 at position 1"):
        model.insert([[0.0], [1.0]], ids=[ONE, 3])
    model.insert([0.0])
    with pytest.raises(TypeError, match="in ids is a str, but the ids of this model are int"):
        model.insert([0.0], ids=ONE)
    assert ONE not in model


LOST = "which becomes 0 as a float32; values must be 0, or at least 1.4e-45 in size"


@pytest.mark.parametrize("value", [1e-46, -1e-46, 1e-300, 5e-324])
def test_values_that_would_become_zero_are_rejected(value):
    model = DynHAC()
    for _ in range(2):  # an empty model, and one that reads single vectors the fast way
        with pytest.raises(ValueError, match=rf"row 1, column 2 of X is {value}, {LOST}"):
            model.insert(np.array([[1.0, 2.0, 3.0], [0.0, -0.0, value]]))
        for X in ([1.0, value, 0.0], np.array([1.0, value, 0.0]), np.array([1, 9, value, 9, 0])):
            X = X if len(X) == 3 else X[::2]
            column = list(X).index(value)
            with pytest.raises(ValueError, match=rf"column {column} of X is {value}, {LOST}"):
                model.insert(X)
        assert len(model) <= 1
        model = DynHAC()
        model.insert(np.zeros(3))


def test_small_values_that_float32_has_are_kept():
    model = DynHAC()
    small = np.array([1.5e-45, -1e-40, 0.0, -0.0])
    for X in (small, small, np.array([small]), small.astype(np.float32), small.astype(np.float16)):
        model.insert(X)
    assert model.vectors()[:, 0].tolist()[:4] == [np.float32(1.5e-45)] * 4
    assert model.vectors()[:, 1].tolist()[:4] == [np.float32(-1e-40)] * 4
