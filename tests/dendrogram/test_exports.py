"""Exports, read back: they must give the dendrogram that was exported."""

import subprocess
import sys
import time

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from models import random_edges
from scipy.cluster import hierarchy as sch

from dynhac import Dendrogram, GraphHAC

AWKWARD = [
    "",
    "a b",
    "it's",
    "''",
    "a,b",
    "(x)",
    "x:1;",
    "[c]",
    "_",
    "naïve ☃",
    'say "hi"',
    "\n",
    "7",
]


def model(n=60, m=90, ids=None):
    """Several trees, one of them a single leaf."""
    u, v, w = random_edges(n, m)
    names = range(n + 1) if ids is None else ids
    labels = np.array(list(names), dtype=object if ids else np.int64)
    return GraphHAC.from_graph((labels[u], labels[v], w), names, threshold=1e-3).dendrogram()


def awkward():
    n = len(AWKWARD)
    return GraphHAC.from_graph((AWKWARD[:-1], AWKWARD[1:], np.linspace(0.9, 0.3, n - 1)), AWKWARD)


def leaves(*ids):
    g = GraphHAC()
    g.add(list(ids))
    return g.dendrogram()


def chain(m):
    n = m + 1
    children = np.stack([np.r_[0, np.arange(n, n + m - 1)], np.arange(1, n)], axis=1)
    similarity = np.geomspace(0.9, 1e-4, m)
    size = np.arange(2, n + 1)
    return Dendrogram(np.arange(n), children, similarity, similarity, size, np.arange(m), 0.1, 0.0)


def tokens(text):
    """The tokens of a Newick text: names (after a '), lengths (after a :) and punctuation."""
    i = 0
    while i < len(text):
        if text[i] in "(),;\n":
            yield text[i]
            i += 1
        elif text[i] == "'":
            name = ""
            i += 1
            while text[i : i + 2] == "''" or text[i] != "'":
                name += text[i]
                i += 2 if text[i] == "'" else 1
            yield "'" + name
            i += 1
        else:
            start = i
            i += 1
            while text[i] not in "(),;:\n'":
                i += 1
            yield text[start:i] if text[start] == ":" else "'" + text[start:i]


def parse(text):
    """Return the trees of a Newick text as nested ``[name, length, children]``."""
    trees, stack = [], [["", None, []]]
    for token in tokens(text):
        node = stack[-1]
        if token == "(":
            stack.append(["", None, []])
            node[2].append(stack[-1])
        elif token == ",":
            stack.pop()
            stack.append(["", None, []])
            stack[-2][2].append(stack[-1])
        elif token == ")":
            stack.pop()
        elif token == ";":
            assert len(stack) == 1, "brackets do not match"
            trees.append(stack.pop())
            stack = [["", None, []]]
        elif token == "\n":
            assert stack == [["", None, []]], "a line break inside a tree"
        elif token[0] == ":":
            node[1] = float(token[1:])
        else:
            node[0] = token[1:]
    assert stack == [["", None, []]], "no semicolon at the end"
    return trees


def clades(tree):
    """``{leaves: (height, name)}`` of all inner nodes; all leaves must have the same height."""
    found = {}

    def visit(node):
        name, _, below = node
        if not below:
            return frozenset([name]), 0.0
        parts = [visit(child) for child in below]
        heights = [h + (child[1] or 0.0) for (_, h), child in zip(parts, below, strict=True)]
        assert heights == pytest.approx([heights[0]] * len(heights))
        names = frozenset().union(*(part[0] for part in parts))
        assert len(names) == sum(len(part[0]) for part in parts)
        found[names] = heights[0], name
        return names, heights[0]

    names, _ = visit(tree)
    return names, found


def expected_clades(d):
    under = [frozenset([str(id)]) for id in d.ids.tolist()]
    for left, right in d.children.tolist():
        under.append(under[left] | under[right])
    return under


@pytest.mark.parametrize("make", [model, lambda: awkward().dendrogram()])
def test_newick_has_every_cluster_at_its_distance(make):
    d = make()
    under = expected_clades(d)
    trees = parse(d.to_newick(node_ids=True))
    assert [clades(tree)[0] for tree in trees] == [under[root] for root in d.roots]
    found = {key: value for tree in trees for key, value in clades(tree)[1].items()}
    assert len(found) == len(d)
    for j, names in enumerate(under[d.n_leaves :]):
        height, name = found[names]
        assert height == pytest.approx(1 / d.min_similarity[j] - 1)
        assert name == str(d.node_ids[j])


def test_newick_agrees_with_scipy():
    g = GraphHAC(threshold=0, epsilon=0)
    u, v = np.triu_indices(30, 1)
    g.add(range(30), (u, v, np.random.default_rng(1).uniform(0.1, 1, len(u))))
    d = g.dendrogram()
    (tree,) = parse(d.to_newick())
    cophenetic = np.zeros((30, 30))
    under_scipy = {}
    for node in sch.to_tree(d.linkage(), rd=True)[1]:
        if not node.is_leaf():
            under_scipy[frozenset(str(i) for i in node.pre_order())] = node.dist
    found = {names: height for names, (height, _) in clades(tree)[1].items()}
    assert found == pytest.approx(under_scipy)
    for names in sorted(found, key=len, reverse=True):
        rows = [int(name) for name in names]
        cophenetic[np.ix_(rows, rows)] = found[names]
    np.fill_diagonal(cophenetic, 0)
    assert cophenetic[u, v] == pytest.approx(sch.cophenet(d.linkage()))


def test_newick_with_a_distance_rule():
    d = GraphHAC.from_graph(([1, 2], [2, 3], [4.0, 1.0])).dendrogram()
    with pytest.raises(ValueError, match="similarity 4 is above 1"):
        d.to_newick()
    assert d.to_newick(lambda s: 1 / s) == "((1:0.25,2:0.25):1.75,3:2.0);"
    with pytest.raises(ValueError, match="finite numbers for Newick"):
        d.to_newick(lambda s: np.full(len(s), np.inf))


def test_newick_of_several_trees():
    d = model()
    assert len(d.roots) > 2
    text = d.to_newick()
    assert len(text.splitlines()) == len(d.roots)
    assert "60;" in text.splitlines(), "the vertex without edges"
    (joined,) = parse(d.to_newick(join=True))
    assert joined[:2] == ["", None]
    assert joined[2] == parse(text)
    assert GraphHAC.from_graph(([1], [2], [0.5])).dendrogram().to_newick(join=True) == (
        "(1:1.0,2:1.0);"
    )


def test_newick_quotes_names_only_where_needed():
    text = awkward().dendrogram().to_newick()
    assert "''''''" in text  # two quotes, doubled, in quotes
    assert "'naïve ☃'" in text
    assert ",7:" in text
    assert leaves("schön", "a.b-c", "a_b").to_newick() == "schön;\na.b-c;\n'a_b';"


@pytest.mark.parametrize("join", [False, True])
def test_newick_of_no_or_one_leaf(join):
    assert GraphHAC().dendrogram().to_newick(join=join) == ""
    assert leaves("a").to_newick(join=join) == "a;"
    assert leaves(5, -7).to_newick(join=join) == ("(5,-7);" if join else "5;\n-7;")


def test_newick_of_a_chain_of_a_million_merges():
    d = chain(1_000_000)
    start = time.process_time()
    text = d.to_newick(node_ids=True)
    assert time.process_time() - start < 30
    assert text.startswith("(" * 1_000_000 + "0:")
    assert text.endswith(")999999;")
    assert text.count(",") == 1_000_000


@pytest.mark.parametrize("ids", [None, [f"v {i}" for i in range(61)]])
def test_networkx(ids):
    d = model(ids=ids)
    tree = d.to_networkx()
    assert nx.is_forest(tree.to_undirected())
    assert [node for node, degree in tree.in_degree if degree == 0] == d.roots.tolist()
    assert [tree.nodes[i]["id"] for i in range(d.n_leaves)] == d.ids.tolist()
    for j, pair in enumerate(d.children.tolist()):
        node = d.n_leaves + j
        assert list(tree.successors(node)) == pair
        assert tree.nodes[node] == {
            "node_id": d.node_ids[j],
            "similarity": d.similarity[j],
            "min_similarity": d.min_similarity[j],
            "size": d.size[j],
        }
        under = [x for x in nx.descendants(tree, node) if x < d.n_leaves]
        assert len(under) == d.size[j]
    assert type(tree.nodes[0]["id"]) is (str if ids else int)
    assert len(GraphHAC().dendrogram().to_networkx()) == 0


COLUMNS = ["node", "node_id", "left", "right", "parent"]
COLUMNS += ["similarity", "min_similarity", "size", "id"]


def check_rows(d, rows):
    n = d.n_leaves
    assert [row["node"] for row in rows] == list(range(n + len(d)))
    assert [row["id"] for row in rows] == d.ids.tolist() + [None] * len(d)
    assert [row["size"] for row in rows] == [1] * n + d.size.tolist()
    for name, array in {
        "node_id": d.node_ids,
        "left": d.children[:, 0],
        "right": d.children[:, 1],
        "similarity": d.similarity,
        "min_similarity": d.min_similarity,
    }.items():
        assert [row[name] for row in rows] == [None] * n + array.tolist(), name
    for row in rows:
        if row["parent"] is None:
            assert row["node"] in d.roots
        else:
            parent = rows[row["parent"]]
            assert row["node"] in (parent["left"], parent["right"])


CASES = {
    "int": model,
    "str": lambda: model(ids=[f"v {i}" for i in range(61)]),
    "awkward": lambda: awkward().dendrogram(),
    "one int": lambda: leaves(5),
    "one str": lambda: leaves(""),
    "empty": lambda: GraphHAC().dendrogram(),
}


@pytest.mark.parametrize("case", CASES)
def test_arrow_and_parquet(case, tmp_path):
    d = CASES[case]()
    table = d.to_arrow()
    assert table.column_names == COLUMNS
    check_rows(d, table.to_pylist())
    d.to_parquet(tmp_path / "d.parquet")
    back = pq.read_table(tmp_path / "d.parquet")
    assert back.equals(table)
    assert float(back.schema.metadata[b"epsilon"]) == d.epsilon
    assert float(back.schema.metadata[b"threshold"]) == d.threshold
    d.to_parquet(str(tmp_path / "e.parquet"))
    assert pq.read_table(tmp_path / "e.parquet").equals(table)


@pytest.mark.parametrize("case", CASES)
def test_pandas(case):
    d = CASES[case]()
    frame = d.to_pandas()
    assert list(frame.columns) == COLUMNS
    rows = [
        {name: None if pd.isna(value) else value for name, value in row.items()}
        for row in frame.to_dict("records")
    ]
    check_rows(d, rows)
    assert frame["parent"].dtype == "Int64"
    assert frame["similarity"].dtype == np.float64


def test_changing_a_table_does_not_change_the_dendrogram():
    d = model()
    before = d.size.copy()
    frame = d.to_pandas()
    frame.loc[:, "size"] = 0
    assert np.array_equal(d.size, before)


@pytest.mark.parametrize(
    ("method", "package", "extra"),
    [
        ("to_networkx()", "networkx", "networkx"),
        ("to_arrow()", "pyarrow", "arrow"),
        ("to_parquet('never written')", "pyarrow", "arrow"),
        ("to_pandas()", "pandas", "pandas"),
        ("plot()", "matplotlib", "plot"),
    ],
)
def test_an_error_names_the_missing_package_and_its_extra(method, package, extra):
    code = (
        f"import sys; sys.modules[{package!r}] = None\n"
        "from dynhac import GraphHAC\n"
        "d = GraphHAC.from_graph(([1], [2], [0.5])).dendrogram()\n"
        f"assert d.to_newick()\ntry:\n    d.{method}\n"
        "except ImportError as error:\n    print(error)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    name = method.partition("(")[0] + "()"
    assert run.stdout.strip() == (
        f"{name} needs {package}; install it with: pip install 'dynhac[{extra}]'"
    )


def test_importing_dynhac_imports_no_optional_package():
    code = (
        "import sys, dynhac\n"
        "d = dynhac.GraphHAC.from_graph(([1], [2], [0.5])).dendrogram()\n"
        "d.to_newick(); d.linkage()\n"
        "names = ('pandas', 'pyarrow', 'networkx', 'matplotlib', 'scipy')\n"
        "print([name for name in names if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
