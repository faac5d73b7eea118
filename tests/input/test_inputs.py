"""Which types are accepted as ids, weights and tables of edges, and which are rejected."""

import subprocess
import sys
from array import array
from decimal import Decimal
from enum import IntEnum

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from models import edge_set, state

import dynhac
from dynhac import GraphHAC


class Colour(IntEnum):
    RED = 1
    BLUE = 2
    GREEN = 3


INT_IDS = {
    "list": [1, 2, 3],
    "tuple": (1, 2, 3),
    "range": range(1, 4),
    "int64": np.array([1, 2, 3]),
    "int8": np.array([1, 2, 3], dtype=np.int8),
    "uint16": np.array([1, 2, 3], dtype=np.uint16),
    "uint64": np.array([1, 2, 3], dtype=np.uint64),
    "big endian": np.array([1, 2, 3], dtype=">i8"),
    "longlong": np.array([1, 2, 3], dtype=np.longlong),
    "strided": np.array([1, 0, 2, 0, 3])[::2],
    "reversed": np.array([3, 2, 1])[::-1],
    "object": np.array([1, 2, 3], dtype=object),
    "numpy scalars": [np.int32(1), np.uint8(2), 3],
    "IntEnum": [Colour.RED, Colour.BLUE, Colour.GREEN],
    "Series": pd.Series([1, 2, 3], index=[7, 8, 9]),
    "nullable Series": pd.Series([1, 2, 3], dtype="Int64"),
    "Index": pd.Index([1, 2, 3]),
    "array": array("q", [1, 2, 3]),
    "arrow": pa.array([1, 2, 3]),
    "arrow chunks": pa.chunked_array([[1], [2, 3]]),
    "arrow int32": pa.array([1, 2, 3], type=pa.int32()),
}
STR_IDS = {
    "list": ["a", "b", "ç"],
    "tuple": ("a", "b", "ç"),
    "numpy": np.array(["a", "b", "ç"]),
    "object": np.array(["a", "b", "ç"], dtype=object),
    "numpy scalars": [np.str_("a"), "b", "ç"],
    "StringDType": np.array(["a", "b", "ç"], dtype=np.dtypes.StringDType()),
    "Series": pd.Series(["a", "b", "ç"]),
    "category": pd.Series(["a", "b", "ç"], dtype="category"),
    "Index": pd.Index(["a", "b", "ç"]),
    "arrow": pa.array(["a", "b", "ç"]),
    "arrow dictionary": pa.array(["a", "b", "ç"]).dictionary_encode(),
    "arrow large": pa.array(["a", "b", "ç"], type=pa.large_string()),
}


@pytest.mark.parametrize("kind", INT_IDS)
def test_int_ids(kind):
    g = GraphHAC()
    g.add(INT_IDS[kind])
    assert g.ids.tolist() == [1, 2, 3]
    assert g.ids.dtype == np.int64
    g.remove(INT_IDS[kind])
    assert len(g) == 0


@pytest.mark.parametrize("kind", STR_IDS)
def test_str_ids(kind):
    g = GraphHAC()
    g.add(STR_IDS[kind])
    assert g.ids.tolist() == ["a", "b", "ç"]
    assert {type(id) for id in g.ids.tolist()} == {str}
    g.remove(STR_IDS[kind])
    assert len(g) == 0


@pytest.mark.parametrize("ids", [INT_IDS, STR_IDS], ids=["int", "str"])
def test_equal_ids_of_different_types_are_the_same(ids):
    kinds = list(ids.values())
    for u, v in zip(kinds, kinds[1:] + kinds[:1], strict=True):
        g = GraphHAC()
        g.add(u)
        g.set_edges(v[:2], u[1:], [0.5, 0.25])
        assert len(edge_set(g)) == 2


SINGLES = [7, np.int16(7), np.array(7), "seven", np.str_("seven"), np.array("seven"), Colour.RED]


@pytest.mark.parametrize("one", SINGLES)
def test_a_single_id(one):
    g = GraphHAC()
    g.add(one)
    assert one in g
    g.remove(one)
    assert one not in g


@pytest.mark.parametrize("id", ["", " ", "a\0", "a" * 5000, "\x1b", "\U0010ffff", "7"])
def test_strings_are_not_changed(id):
    g = GraphHAC()
    g.add([id, "b"], (id, "b", 0.5))
    assert g.ids.tolist() == [id, "b"]
    assert id in g
    assert g.dendrogram().ids.tolist() == [id, "b"]


def test_ids_must_be_unicode():
    wrong = r"id 'x\\ud800' at position 1 of {} has a lone surrogate; ids must be valid Unicode"
    g = GraphHAC()
    for column in (
        ["a", "x\ud800"],
        np.array(["a", "x\ud800"]),
        np.array(["a", "x\ud800"], object),
    ):
        with pytest.raises(ValueError, match=wrong.format("add")):
            g.add(column)
        model = dynhac.DynHAC()
        with pytest.raises(ValueError, match=wrong.format("ids")):
            model.insert([[1.0], [2.0]], ids=column)
        assert len(model) == len(g) == 0
    with pytest.raises(
        ValueError, match="lone surrogate"
    ):  # two halves in two ids are no character
        g.add(["\ud83d", "\ude00"])
    with pytest.raises(ValueError, match="lone surrogate"):
        GraphHAC.from_graph((["\ud800"], ["b"], [0.5]))
    g.add(["a", "😀"])
    assert "\ud800" not in g
    with pytest.raises(KeyError, match="not in the graph"):
        g.update(edges=("a", "\ud800", 0.5))
    with pytest.raises(KeyError, match="not in the graph"):
        g.remove("\ud800")
    assert g.ids.tolist() == ["a", "😀"]


def test_extreme_ints():
    ids = [-(2**63), -1, 0, 2**63 - 1]
    g = GraphHAC()
    g.add(ids, (ids[:3], ids[1:], [0.5, 0.4, 0.3]))
    assert g.ids.tolist() == ids
    assert -(2**63) in g
    assert len(edge_set(g)) == 3


BAD_IDS = {
    "bool": ([True, False], "position 0 of add is True"),
    "one bool": (True, "position 0 of add is True"),
    "int and bool": ([1, True], "position 1 of add is True"),
    "bool array": (np.array([True]), "dtype bool"),
    "float": (1.0, "float"),
    "float list": ([1, 2.0], "position 1 of add is 2.0"),
    "float array": (np.array([1.0, 2.0]), "a float cannot be one"),
    "complex": (np.array([1j]), "dtype complex128"),
    "mix": ([1, "a"], "a mix: 1 at position 0, 'a' at position 1"),
    "late mix": (["a"] * 1000 + [1], "'a' at position 0, 1 at position 1000"),
    "object mix": (np.array(["a", 1], dtype=object), "a mix"),
    "None": ([1, None], "position 1 of add is None"),
    "nan": (["a", float("nan")], "position 1 of add is nan"),
    "bytes": ([b"a"], "position 0 of add is b'a'"),
    "bytes array": (np.array([b"a"]), "dtype |S1"),
    "datetimes": (np.array(["2020-01-01"], dtype="M8[D]"), "dtype datetime64"),
    "2-d": (np.array([[1, 2]]), "shape (1, 2)"),
    "0-d": (np.array(7.0), "a float cannot be one"),
    "nested": ([[1, 2]], "position 0 of add is [1, 2]"),
    "too large": (
        [1, 2**63],
        "id 9223372036854775808 at position 1 of add does not fit in 64 bits",
    ),
    "too small": ([-(2**63) - 1], "-9223372036854775809 at position 0"),
    "large uint64": (
        np.array([1, 2**64 - 1], dtype=np.uint64),
        "18446744073709551615 at position 1",
    ),
    "large scalar": (np.uint64(2**63), "id 9223372036854775808"),
    "large range": (range(2**63 - 1, 2**63 + 1), "id 9223372036854775808 at position 1"),
    "timedelta": ([np.timedelta64(1, "D")], "ids must be all int or all str"),
    "set": ({1, 2}, "are of type set; give a list"),
    "dict": ({1: 2}, "are of type dict"),
    "generator": ((i for i in range(3)), "are of type generator"),
    "masked": (np.ma.array([1, 2], mask=[0, 1]), "masked array"),
    "nulls": (pa.array([1, None]), "have missing values, the first at position 1"),
    "nulls in chunks": (pa.chunked_array([[1], [2, None]]), "the first at position 2"),
    "str nulls": (pa.array(["a", None]), "the first at position 1"),
    "missing": (pd.Series([1, None], dtype="Int64"), "the first at position 1"),
    "missing in array": (pd.array([1, None], dtype="Int64"), "the first at position 1"),
    "missing arrow": (pd.Series([1, None], dtype="int64[pyarrow]"), "the first at position 1"),
    "missing int": (pd.Series([1, None], index=[5, 5]), "the first at position 1"),
    "missing str": (pd.Series(["a", None]), "the first at position 1"),
    "missing string": (pd.Series(["a", None], dtype="string"), "the first at position 1"),
    "StringDType": (
        np.array(["a", np.nan], dtype=np.dtypes.StringDType(na_object=np.nan)),
        "position 1 of add is nan",
    ),
    "frame": (pd.DataFrame({"u": [1], "v": [2]}), "shape (1, 2)"),
}


@pytest.mark.parametrize("kind", BAD_IDS)
def test_bad_ids(kind):
    ids, message = BAD_IDS[kind]
    g = GraphHAC()
    with pytest.raises(ValueError, match="add") as caught:
        g.add(ids)
    assert any(part in str(caught.value) for part in message.split("|"))
    assert len(g) == 0


@pytest.mark.parametrize(
    "batch",
    [
        {"add": [1], "edges": (["a"], ["b"], [0.5])},
        {"add": [1, 2], "edges": ([1], ["b"], [0.5])},
        {"remove": "a", "add": 1},
        {"remove_edges": (1, "a")},
    ],
)
def test_a_mix_across_columns(batch):
    with pytest.raises(ValueError, match=r"a mix: .* in .*; ids must be all int or all str"):
        GraphHAC().update(**batch)


WEIGHTS = {
    "list": [0.5, 0.25],
    "tuple": (0.5, 0.25),
    "float32": np.array([0.5, 0.25], dtype=np.float32),
    "big endian": np.array([0.5, 0.25], dtype=">f8"),
    "strided": np.array([0.5, 9, 0.25])[::2],
    "object": np.array([0.5, 0.25], dtype=object),
    "numpy scalars": [np.float32(0.5), 0.25],
    "Series": pd.Series([0.5, 0.25], index=[3, 4]),
    "arrow": pa.array([0.5, 0.25]),
}


@pytest.mark.parametrize("kind", WEIGHTS)
def test_weights(kind):
    g = GraphHAC()
    g.add([1, 2, 3], ([1, 2], [2, 3], WEIGHTS[kind]))
    assert edge_set(g) == {(1, 2): 0.5, (2, 3): 0.25}


def test_int_weights():
    g = GraphHAC()
    g.add([1, 2, 3], ([1, 2], [2, 3], np.array([3, 2], dtype=np.uint8)))
    g.set_edges(1, 3, 1)
    assert edge_set(g) == {(1, 2): 3.0, (2, 3): 2.0, (1, 3): 1.0}


BAD_WEIGHTS = {
    "timedelta": ([np.timedelta64(1, "D")], "weights must be int or float"),
    "str": (["0.5"], "weight at position 0 of edges w is '0.5'"),
    "None": ([None], "weight at position 0 of edges w is None"),
    "bool": ([True], "weight at position 0 of edges w is True"),
    "bool array": (np.array([True]), "dtype bool"),
    "str array": (np.array(["1"]), "dtype <U1"),
    "complex": (np.array([1j]), "dtype complex128"),
    "Decimal": ([Decimal("0.5")], "(Decimal); weights must be int or float"),
    "2-d": (np.array([[0.5]]), "shape (1, 1)"),
    "huge int": ([10**400], "weight at position 0 of edges w is 1000"),
    "set": ({0.5}, "are of type set"),
    "nulls": (pa.array([0.5, None])[1:], "missing values, the first at position 0"),
    "missing": (pd.Series([None], dtype="Float64"), "is nan|is <NA>"),
}


@pytest.mark.parametrize("span", [np.timedelta64(1, "D"), np.timedelta64("NaT")])
def test_spans_of_time_are_no_numbers(span):
    for parameter in ("epsilon", "threshold", "resolution", "threads"):
        with pytest.raises(TypeError, match=f"{parameter} is .*; it must be"):
            GraphHAC(**{parameter: span})
    assert span not in GraphHAC.from_graph(([1], [2], [0.5]))


@pytest.mark.parametrize("kind", BAD_WEIGHTS)
def test_bad_weights(kind):
    weights, message = BAD_WEIGHTS[kind]
    g = GraphHAC()
    g.add([1, 2])
    before = state(g)
    with pytest.raises(ValueError, match="weight") as caught:
        g.set_edges([1], [2], weights)
    assert any(part in str(caught.value) for part in message.split("|"))
    assert state(g) == before


TABLES = {
    "dict": dict,
    "pandas": pd.DataFrame,
    "arrow": pa.table,
    "record batch": lambda columns: pa.RecordBatch.from_pydict(columns),
    "extra columns": lambda columns: pd.DataFrame({"when": [1, 2], **columns}),
    "structured": lambda columns: np.rec.fromarrays(list(columns.values()), names=list(columns)),
    "like polars": lambda columns: FrameLikePolars(columns),
}


class ColumnLikePolars:
    """A column like those of polars: null_count is a method."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=dtype)

    def null_count(self):
        return sum(value is None for value in self.values)

    def is_null(self):
        return ColumnLikePolars([value is None for value in self.values])


class FrameLikePolars:
    def __init__(self, columns):
        self.data = columns
        self.columns = list(columns)

    def __getitem__(self, name):
        return ColumnLikePolars(self.data[name])


@pytest.mark.parametrize("names", [("u", "v", "w"), ("source", "target", "weight")])
@pytest.mark.parametrize("kind", TABLES)
def test_tables(kind, names):
    g = GraphHAC()
    columns = dict(zip(names, (["a", "b"], ["b", "c"], [0.5, 0.25]), strict=True))
    g.update(add=["a", "b", "c"], edges=TABLES[kind](columns))
    assert edge_set(g) == {("a", "b"): 0.5, ("b", "c"): 0.25}
    assert len(GraphHAC.from_graph(TABLES[kind](columns))) == 3


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([(1, 2, 0.5)], "is of type list; it must be a tuple"),
        (FrameLikePolars({"u": [1], "v": [None], "w": [0.5]}), "edges v have missing values"),
        ((1, 2), "a tuple of length 2; it must be"),
        (np.zeros((3, 3)), r"a matrix of shape \(3, 3\); .* must be of shape \(2, 2\)"),
        (np.zeros(3), "is of type ndarray; it must be a tuple"),
        (5, "is of type int"),
        ({"u": [1], "v": [2]}, "u, v and w, or source, target and weight; it has 'u', 'v' "),
        (pd.DataFrame({"a": [1]}), r"it has 'a' \(for a matrix"),
        (pd.DataFrame(np.ones((2, 20))), "10, 11 and 8 more"),
        ({"source": [1], "target": [2], "w": [0.5]}, "it has 'source', 'target', 'w' "),
        ({}, "it has none"),
        ("abc", "is of type str"),
    ],
)
def test_bad_edges(edges, message):
    g = GraphHAC()
    with pytest.raises(ValueError, match=message):
        g.add([1, 2], edges)
    assert len(g) == 0


@pytest.mark.parametrize("pairs", [[(1, 2)], [1, 2], (1, 2, 3), ([1, 2],), 5, {"u": 1}])
def test_bad_pairs(pairs):
    g = GraphHAC()
    g.add([1, 2], (1, 2, 0.5))
    with pytest.raises(ValueError, match="remove_edges must be a tuple"):
        g.update(remove_edges=pairs)
    assert len(edge_set(g)) == 1


def test_input_of_one_library_does_not_import_the_others():
    code = """
import sys
import networkx, dynhac
before = set(sys.modules)
graph = networkx.Graph()
graph.add_edge(1, 2, weight=0.5)
g = dynhac.GraphHAC.from_graph(graph)
g.add(3, {"u": [3], "v": [1], "w": [0.5]})
g.labels(0.5), g.cut([0.5]), g.dendrogram().linkage(), g.verify()
new = {m.partition(".")[0] for m in set(sys.modules) - before}
print(*(new & {"scipy", "pandas", "pyarrow", "matplotlib"}))
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []
