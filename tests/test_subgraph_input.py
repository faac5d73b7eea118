"""Bad input of `subgraph_round` is an error that names the row and the value."""

import re

import pyarrow as pa
import pytest
from plain_subgraph import INF, Half, as_table, half_edges

from dynhac import _core
from dynhac.subgraph import subgraph_round

NAN = float("nan")

# The path 1 - 2 - 3 - 4 with 4 in part 9, of which only part 0 is here.
EDGES = [(1, 2, 10), (2, 3, 8), (3, 4, 6)]
PATH = [h for h in half_edges(EDGES, {1: 0, 2: 0, 3: 0, 4: 9}) if h.part == 0]


LEAST = "row 0: least_u is {}; it must be > 0, and inf for a single point"


def rejected(message):
    return pytest.raises(ValueError, match=f"^{re.escape(message)}$")


def run(halves, epsilon=0.1, heavy=0.0):
    return subgraph_round(as_table(halves), epsilon, heavy)


def changed(row, **values):
    return [h._replace(**values) if i == row else h for i, h in enumerate(PATH)]


def test_the_path_is_fine():
    assert [(h.u, h.v) for h in PATH] == [(1, 2), (2, 1), (2, 3), (3, 2), (3, 4)]
    assert run(PATH).merges.num_rows == 1


@pytest.mark.parametrize(
    ("row", "values", "message"),
    [
        (4, {"w": 0}, "row 4: w is 0; it must be in 1..2^53"),
        (4, {"w": -5}, "row 4: w is -5; it must be in 1..2^53"),
        (4, {"w": 2**53 + 1}, "row 4: w is 9007199254740993; it must be in 1..2^53"),
        (0, {"size_u": 0}, "row 0: size_u is 0; it must be in 1..2^53"),
        (0, {"size_u": 2**63 - 1}, "row 0: size_u is 9223372036854775807; it must be in 1..2^53"),
        (4, {"size_v": -(2**63)}, "row 4: size_v is -9223372036854775808; it must be in 1..2^53"),
        (0, {"least_u": NAN}, LEAST.format("nan")),
        (0, {"least_u": 0.0}, LEAST.format(0)),
        (
            0,
            {"least_u": -INF},
            LEAST.format("-inf"),
        ),
        (4, {"v": 3}, "row 4: u and v are both 3; an edge has two different ends"),
        (4, {"part": 1}, "row 4: part of 3 is 1; it is 0 in row 3"),
        (4, {"size_u": 2}, "row 4: size_u of 3 is 2; it is 1 in row 3"),
        (4, {"least_u": 0.5}, "row 4: least_u of 3 is 0.5; it is inf in row 3"),
        (3, {"size_v": 2}, "row 3: size_v of 2 is 2; row 1 says 1"),
        (3, {"other_part": 7}, "row 3: other_part of 2 is 7; row 1 says 0"),
        (3, {"w": 7}, "row 2: w of the edge (2, 3) is 8; it is 7 in the row of its other half"),
        (
            4,
            {"other_part": 0},
            "row 4: the edge (3, 4) inside part 0 has no row (4, 3); an edge inside a part has "
            "two, one from each end",
        ),
        (
            4,
            {"v": 1, "other_part": 0},
            "row 4: the edge (3, 1) inside part 0 has no row (1, 3); an edge inside a part has "
            "two, one from each end",
        ),
        (
            4,
            {"v": 2, "other_part": 0},
            "row 4: the half edge (3, 2) is given twice; add up the weights of a pair",
        ),
    ],
)
def test_a_wrong_row(row, values, message):
    with rejected(message):
        run(changed(row, **values))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"other_part": 8}, "row 4: other_part of 4 is 9; row 5 says 8"),
        ({"size_v": 3}, "row 4: size_v of 4 is 1; row 5 says 3"),
    ],
)
def test_an_outside_vertex_in_two_ways(values, message):
    with rejected(message):
        run([*PATH, Half(0, 9, 2, 4, 1, 1, 1, INF)._replace(**values)])


def test_an_edge_to_a_part_of_the_table():
    """Vertex 4 comes with its own row, which says another part and size."""
    own = Half(9, 0, 4, 3, 6, 1, 1, INF)
    assert run([*PATH, own]).vertices.num_rows == 4
    with rejected("row 4: other_part of 4 is 9; row 5 says 5"):
        run([*PATH, own._replace(part=5)])
    with rejected("row 4: size_v of 4 is 1; row 5 says 2"):
        run([*PATH, own._replace(size_u=2)])


@pytest.mark.parametrize("value", [-0.1, NAN, INF, -INF, "x", None, True])
def test_numbers(value):
    with pytest.raises(ValueError, match=r"^epsilon is \S+; it must be a finite number >= 0$"):
        run(PATH, epsilon=value)
    with pytest.raises(ValueError, match=r"^heavy is \S+; it must be a finite number >= 0$"):
        run(PATH, heavy=value)


@pytest.mark.parametrize("value", [-0.1, NAN, INF])
def test_numbers_of_the_engine(value):
    columns = [as_table(PATH)[name].to_numpy() for name in Half._fields]
    with pytest.raises(ValueError, match=r"^epsilon is \S+; it must be finite and >= 0$"):
        _core.subgraph_round(*columns, value, 0.0)
    with pytest.raises(ValueError, match=r"^heavy is \S+; it must be finite and >= 0$"):
        _core.subgraph_round(*columns, 0.0, value)


def test_sums_that_are_too_large():
    """2 and 3 merge; both have an edge to 1, and the sum of the two weights is above 2^53."""
    large = 2**53 - 1
    edges = [(1, 2, large), (1, 3, large), (2, 3, 2**53)]
    message = (
        f"the weight between the clusters 2 and 1 is {2 * large}; sums must be at most 2^53: "
        "use a coarser resolution"
    )
    with rejected(message):
        run(half_edges(edges, {1: 0, 2: 0, 3: 0}))
    with rejected(message):
        run([h for h in half_edges(edges, {1: 1, 2: 0, 3: 0}) if h.part == 0])
    with rejected(f"the sizes of 1 and 2 are {2**53} and 1; their sum must be at most 2^53"):
        run(half_edges([(1, 2, 5)], {1: 0, 2: 0}, {1: 2**53}, {1: 1.0}))


def test_the_table():
    table = as_table(PATH)
    with pytest.raises(TypeError, match=r"^table is a dict; it must be a pyarrow.Table$"):
        subgraph_round(table.to_pydict(), 0, 0)
    with pytest.raises(ValueError, match=r"^the table has 0 columns 'least_u'; it must have one"):
        subgraph_round(table.drop_columns(["least_u"]), 0, 0)
    with pytest.raises(ValueError, match=r"^the table has 2 columns 'w'; it must have one"):
        subgraph_round(table.append_column("w", table["w"]), 0, 0)
    for name in Half._fields:
        at = table.column_names.index(name)
        kind = "double" if name == "least_u" else "int64"
        narrow = table.set_column(at, name, pa.array([1] * len(table), pa.int32()))
        with pytest.raises(
            ValueError, match=f"^the column '{name}' is of type int32; it must be {kind}$"
        ):
            subgraph_round(narrow, 0, 0)
        values = table[name].to_pylist()
        values[3] = None
        holes = table.set_column(at, name, pa.array(values, table[name].type))
        with pytest.raises(ValueError, match=f"^row 3: {name} is null; every value must be given$"):
            subgraph_round(holes, 0, 0)


def test_a_buffer_that_is_not_aligned():
    table = as_table(PATH)
    data = pa.py_buffer(b"\0" + table["w"].to_numpy().tobytes())[1:]
    shifted = pa.Array.from_buffers(pa.int64(), len(table), [None, data])
    again = table.set_column(table.column_names.index("w"), "w", shifted)
    assert subgraph_round(again, 0.1, 0) == subgraph_round(table, 0.1, 0)


def test_columns_of_different_lengths():
    columns = [as_table(PATH)[name].to_numpy() for name in Half._fields]
    for i, name in enumerate(Half._fields):
        if name != "u":
            short = [*columns[:i], columns[i][:-1], *columns[i + 1 :]]
            with pytest.raises(ValueError, match=f"^the column {name} has 4 rows; u has 5$"):
                _core.subgraph_round(*short, 0.0, 0.0)


def test_memory_that_runs_out():
    """Wherever that is, MemoryError is all that happens."""
    table = as_table(
        half_edges([(u, v, u + v) for u in range(9) for v in range(u)], dict.fromkeys(range(9), 0))
    )
    expected = subgraph_round(table, 0.1, 0)
    failed = 0
    while True:
        _core.fail_allocation(failed)
        try:
            result = subgraph_round(table, 0.1, 0)
        except MemoryError:
            failed += 1
            continue
        finally:
            _core.fail_allocation(-1)
        break
    assert failed > 30
    assert result == expected
