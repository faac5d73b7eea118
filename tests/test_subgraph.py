"""`subgraph_round` against a plain oracle, and its guarantees over whole clusterings."""

import random
from fractions import Fraction

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from plain_subgraph import INF, Part, as_table, half_edges, oracle, replay, rows
from soak import SOAK

from dynhac.reference import exact_hac
from dynhac.subgraph import subgraph_round

EPSILONS = (0.0, 0.1, 1.0)


def shape(kind, n, chance):
    """Pairs of vertices 0..n-1."""
    pairs = [(u, v) for u in range(n) for v in range(u + 1, n)]
    return {
        "star": [(0, v) for v in range(1, n)],
        "path": [(v, v + 1) for v in range(n - 1)],
        "clique": pairs,
        "sparse": [pair for pair in pairs if chance.random() < 2 / n],
        "dense": [pair for pair in pairs if chance.random() < 0.5],
        "two components": [(u, v) for u, v in pairs if (u < n // 2) == (v < n // 2)],
        "star and path": [(0, v) for v in range(1, n)] + [(v, v + 1) for v in range(1, n - 1)],
    }[kind]


KINDS = ("star", "path", "clique", "sparse", "dense", "two components", "star and path")
WEIGHTS = {
    "equal": (5, 5),
    "ties": (1, 3),
    "close": (90, 110),
    "any": (1, 10**6),
    "large": (2**42, 2**42 + 3),
}


@st.composite
def graphs(draw, most=12):
    """Edges (u, v, w) between vertices with any names."""
    n = draw(st.integers(2, most))
    names = draw(
        st.one_of(
            st.just(list(range(n))),
            st.lists(st.integers(-(2**63), 2**63 - 1), min_size=n, max_size=n, unique=True),
        )
    )
    chance = random.Random(draw(st.integers(0, 2**32)))
    low, high = WEIGHTS[draw(st.sampled_from(sorted(WEIGHTS)))]
    pairs = shape(draw(st.sampled_from(KINDS)), n, chance)
    return [(names[u], names[v], chance.randint(low, high)) for u, v in pairs]


@st.composite
def inputs(draw):
    """Half edges of some of the parts of a graph, whose vertices may be clusters."""
    edges = draw(graphs())
    chance = random.Random(draw(st.integers(0, 2**32)))
    names = sorted({end for edge in edges for end in edge[:2]})
    count = draw(st.integers(1, 4))
    part = {v: chance.randrange(count) - 1 for v in names}
    size, least = {}, {}
    if draw(st.booleans()):
        size = {v: chance.choice((1, 1, 2, 3, 40)) for v in names}
        least = {v: INF if size[v] == 1 else chance.uniform(1, 200) for v in names}
    halves = [h for h in half_edges(edges, part, size, least) if h.part != 2]
    chance.shuffle(halves)
    return halves


HEAVY = st.sampled_from((0.0, 2.0, 50.0))


@settings(max_examples=300 * SOAK)
@given(inputs(), st.sampled_from(EPSILONS), HEAVY)
def test_same_as_the_oracle(halves, epsilon, heavy):
    result = subgraph_round(as_table(halves), epsilon, heavy)
    assert tuple(map(rows, result)) == oracle(halves, epsilon, heavy)


@pytest.mark.parametrize("weights", sorted(WEIGHTS))
@pytest.mark.parametrize("kind", ["clique", "dense", "star and path"])
def test_larger_parts_are_the_same_as_the_oracle(kind, weights):
    """Many neighbours: outdated and doubled entries of the heaps, heaps that are made anew."""
    chance = random.Random(kind + weights)
    for count, epsilon in ((1, 0.0), (2, 0.1), (3, 1.0)):
        edges = [(u, v, chance.randint(*WEIGHTS[weights])) for u, v in shape(kind, 50, chance)]
        halves = half_edges(edges, {v: chance.randrange(count) for v in range(50)})
        result = subgraph_round(as_table(halves), epsilon, 0)
        assert tuple(map(rows, result)) == oracle(halves, epsilon, 0)


@settings(max_examples=100 * SOAK)
@given(inputs(), st.sampled_from(EPSILONS), HEAVY, st.randoms())
def test_order_of_rows_and_company_of_parts_do_not_matter(halves, epsilon, heavy, chance):
    first = subgraph_round(as_table(halves), epsilon, heavy)
    chance.shuffle(halves)
    assert subgraph_round(as_table(halves), epsilon, heavy) == first
    alone = [
        subgraph_round(as_table([h for h in halves if h.part == number]), epsilon, heavy)
        for number in sorted({h.part for h in halves})
    ]
    for together, tables in zip(first, zip(*alone, strict=True), strict=False):
        assert together.equals(pa.concat_tables(tables))


@settings(max_examples=100 * SOAK)
@given(graphs(), st.sampled_from(EPSILONS), HEAVY, st.integers(1, 3), st.randoms())
def test_no_good_edge_is_left(edges, epsilon, heavy, count, chance):
    """Judged from scratch: the graph inside a part is built from the vertices' images."""
    part = {v: chance.randrange(count) for edge in edges for v in edge[:2]}
    result = subgraph_round(as_table(half_edges(edges, part)), epsilon, heavy)
    image, size, least = {}, {}, {}
    for v, z, s, m, _ in rows(result.vertices):
        image[v], size[z], least[z] = z, s, m
    for number in range(count):
        inside = {v for v in part if part[v] == number}
        after = {}
        for u, v, w in edges:
            for x, y in ((u, v), (v, u)):
                if x in inside:
                    end = image[y] if y in inside else y
                    if end != image[x]:
                        row = after.setdefault(image[x], {})
                        row[end] = row.get(end, 0) + w
        judge = Part([], epsilon, heavy)
        judge.weights, judge.least = after, least
        judge.size = {v: 1 for v in part if part[v] != number} | size
        judge.size |= {y: 1 for row in after.values() for y in row if y not in inside}
        for x, row in after.items():
            for y in row:
                if y in after and judge.linkage(x, y) >= heavy:
                    outside = max(judge.largest(x), judge.largest(y))
                    both = min(least[x], least[y])
                    assert not judge.is_good(outside, both, judge.linkage(x, y))


def cluster(edges, epsilon, heavy, chance, parts=3, most_rounds=200):
    """Cluster a whole graph in rounds, with random parts, as a distributed caller would."""
    merges, size, least = [], {}, {}
    for number in range(most_rounds):
        if not edges:
            break
        last = number >= 10  # random parts need not hold a good edge
        names = sorted({v for edge in edges for v in edge[:2]})
        part = {v: 0 if last else chance.randrange(parts) for v in names}
        result = subgraph_round(as_table(half_edges(edges, part, size, least)), epsilon, heavy)
        image, finished = {}, {}
        for v, z, s, m, done in rows(result.vertices):
            image[v], size[z], least[z], finished[z] = z, s, m, done
        merges += [(number, *merge) for merge in rows(result.merges)]
        sums = {}
        for _, _, u, v, w, *_ in rows(result.edges):
            pair = min(u, image[v]), max(u, image[v])
            if not finished[image[v]]:
                sums[pair] = sums.get(pair, 0) + w
        edges = [(u, v, w) for (u, v), w in sums.items()]
    assert not edges
    return [merge[1:] for merge in sorted(merges, key=lambda m: (m[0], m[-1], m[1]))]


@settings(max_examples=150 * SOAK)
@given(graphs(16), st.sampled_from(EPSILONS), HEAVY, st.randoms())
def test_rounds_make_a_good_dendrogram(edges, epsilon, heavy, chance):
    merges = cluster(edges, epsilon, heavy, chance)
    assert replay(edges, merges, epsilon, heavy) == []


@pytest.mark.parametrize("kind", KINDS)
def test_one_part_without_slack_is_exact(kind):
    """Distinct weights: the dendrogram is that of the brute-force reference."""
    chance = random.Random(kind)
    for n in (2, 3, 9, 20):
        pairs = shape(kind, n, chance)
        weights = chance.sample(range(10**6, 2 * 10**6), len(pairs))
        edges = [(u, v, w) for (u, v), w in zip(pairs, weights, strict=True)]
        table = as_table(half_edges(edges, dict.fromkeys(range(n), 0)))
        got = rows(subgraph_round(table, 0, 0).merges)
        clusters = {v: frozenset([v]) for v in range(n)}
        made = set()
        for a, b, _, _, _, similarity, _, _ in got:
            clusters[a] |= clusters.pop(b)
            made.add((clusters[a], similarity))
        members = [frozenset([v]) for v in range(n)]
        exact = set()
        u, v, w = zip(*edges, strict=True) if edges else ((), (), ())
        for merge in exact_hac(n, (u, v, w), resolution=1):
            members.append(members[merge.left] | members[merge.right])
            exact.add((members[-1], float(merge.linkage)))
        assert made == exact


def star(weights, part=lambda leaf: 0):
    edges = [(0, leaf, w) for leaf, w in enumerate(weights, 1)]
    return half_edges(edges, {v: part(v) for v in range(len(weights) + 1)})


def test_an_edge_to_another_part_decides():
    """1 - 2 at 10 inside; 2 - 3 at 11, 3 elsewhere: good with epsilon 0.1, not without."""
    halves = half_edges([(1, 2, 10), (2, 3, 11)], {1: 0, 2: 0, 3: 1})
    halves = [h for h in halves if h.part == 0]
    assert rows(subgraph_round(as_table(halves), 0, 0).merges) == []
    merges = rows(subgraph_round(as_table(halves), 0.1, 0).merges)
    assert merges == [(1, 2, 1, 1, 10, 10.0, 10.0, 0)]


def test_the_least_merge_of_a_side_decides():
    """The pair has a linkage of 12, but 2 was made at 10 and 1 has another edge at 12."""
    edges = [(1, 2, 24), (1, 3, 12)]
    halves = half_edges(edges, {1: 0, 2: 0, 3: 1}, {2: 2}, {2: 10.0})
    halves = [h for h in halves if h.part == 0]
    assert rows(subgraph_round(as_table(halves), 0.1, 0).merges) != []  # mutually best
    heavier = [h._replace(w=13) if h.v == 3 else h for h in halves]
    assert rows(subgraph_round(as_table(heavier), 0.1, 0).merges) == []
    assert rows(subgraph_round(as_table(heavier), 0.5, 0).merges) != []


def test_names_of_unions():
    """The larger side keeps its name; of two equal ones, the smaller name."""
    halves = half_edges([(7, 3, 8), (7, 5, 4)], {3: 0, 5: 0, 7: 0})
    merges = rows(subgraph_round(as_table(halves), 0, 0).merges)
    assert [m[:5] for m in merges] == [(3, 7, 1, 1, 8), (3, 5, 2, 1, 4)]
    halves = half_edges([(7, 3, 8)], {3: 0, 7: 0}, {7: 2}, {7: 9.0})
    assert rows(subgraph_round(as_table(halves), 0, 0).merges) == [(7, 3, 2, 1, 8, 4.0, 4.0, 0)]


def test_heavy_and_finished():
    """3 has nothing at 5 or above, the union of 1 and 2 has an edge of 12 / 2 elsewhere."""
    edges = [(1, 2, 20), (2, 3, 4), (1, 4, 12)]
    halves = [h for h in half_edges(edges, {1: 0, 2: 0, 3: 0, 4: 1}) if h.part == 0]
    result = subgraph_round(as_table(halves), 0, 5)
    assert [m[:2] for m in rows(result.merges)] == [(1, 2)]
    assert rows(result.vertices) == [
        (1, 1, 2, 20.0, False),
        (2, 1, 2, 20.0, False),
        (3, 3, 1, INF, True),
    ]
    assert rows(result.edges) == [(0, 1, 1, 4, 12, 2, None, 20.0, None)]
    above = subgraph_round(as_table(halves), 0, 6.1)
    assert rows(above.vertices)[0] == (1, 1, 2, 20.0, True)
    assert rows(above.edges) == []


def test_edges_between_parts_come_from_the_smaller_one():
    halves = half_edges([(1, 2, 7)], {1: 4, 2: -3})
    both = subgraph_round(as_table(halves), 0, 0)
    assert rows(both.edges) == [(-3, 4, 2, 1, 7, 1, None, INF, None)]
    assert rows(both.vertices) == [(2, 2, 1, INF, False), (1, 1, 1, INF, False)]


def test_types():
    for empty in (False, True):
        table = as_table([]) if empty else as_table(star([3, 2, 1]))
        result = subgraph_round(table, 0, 0)
        assert [str(t) for t in result.vertices.schema.types] == [*["int64"] * 3, "double", "bool"]
        assert [str(t) for t in result.merges.schema.types] == [
            *["int64"] * 5,
            *["double"] * 2,
            "int64",
        ]
        assert [str(t) for t in result.edges.schema.types] == [*["int64"] * 7, *["double"] * 2]


def test_chunks_slices_and_other_columns():
    table = as_table(star([5, 4, 3, 2, 1]))
    whole = subgraph_round(table, 0.1, 0)
    pieces = pa.concat_tables([table.slice(0, 3), table.slice(3, 0), table.slice(3)])
    assert pieces["u"].num_chunks > 1
    assert subgraph_round(pieces, 0.1, 0) == whole
    around = pa.concat_tables([table.slice(0, 1), table, table.slice(0, 1)]).combine_chunks()
    assert subgraph_round(around.slice(1, table.num_rows), 0.1, 0) == whole
    mixed = table.select(table.column_names[::-1]).append_column("bucket", [["x"] * len(table)])
    assert subgraph_round(mixed, 0.1, 0) == whole


def test_weights_up_to_the_largest_are_exact():
    edges = [(1, 2, 2**53), (2, 3, 2**53 - 1)]
    merges = rows(subgraph_round(as_table(half_edges(edges, {1: 0, 2: 0, 3: 0})), 0, 0).merges)
    assert [(m[0], m[1], m[4]) for m in merges] == [(1, 2, 2**53), (1, 3, 2**53 - 1)]
    assert merges[1][5] == float(Fraction(2**53 - 1, 2))


@example(20_000, 0.0, "equal", 1)
@example(20_000, 0.1, "any", 2)
@settings(max_examples=4)
@given(
    st.just(5_000), st.sampled_from(EPSILONS), st.sampled_from(sorted(WEIGHTS)), st.integers(1, 3)
)
def test_hubs_are_not_quadratic(n, epsilon, weights, parts):
    """A star; a quadratic algorithm would need minutes."""
    chance = random.Random(n)
    halves = star([chance.randint(*WEIGHTS[weights]) for _ in range(n)], lambda v: v % parts)
    result = subgraph_round(as_table(halves), epsilon, 0)
    if parts == 1:
        assert result.merges.num_rows == n
        assert result.edges.num_rows == 0
