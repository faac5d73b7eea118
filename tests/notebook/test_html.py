"""What notebooks show: complete, escaped, well-formed, and bounded."""

import re
import time
from xml.etree import ElementTree

import numpy as np
import pytest

import dynhac
from dynhac import Dendrogram, DynHAC, GraphHAC
from dynhac.notebook import views

HOSTILE = "<script>alert('1')</script>&\"\n\n<img src=x onerror=y>"


def shown(thing):
    """The HTML of an object, after checks that hold for all of them."""
    html = thing._repr_html_()
    tree = ElementTree.fromstring(html)  # so every tag is closed and every text escaped
    tags = {element.tag.rpartition("}")[2] for element in tree.iter()}
    assert tags <= {"div", "table", "tr", "td", "svg", "path", "rect", "text", "pre"}
    assert not re.search(r"\bon\w+=\"|href|src=\"|url\(|@import|javascript:", html)
    colours = set(re.findall(r"#[0-9a-f]{3,6}\b|rgb|black|white(?!-space)", html))
    assert colours <= {"#5b9bd5"}  # everything else has the colour of the text around it
    assert len(html) < 20_000
    return html


def texts(html):
    return " ".join(" ".join(ElementTree.fromstring(html).itertext()).split())


@pytest.fixture
def model():
    rng = np.random.default_rng(0)
    model = DynHAC(n_neighbors=5, max_points=1000)
    centres = np.repeat([0.0, 50.0, 100.0], 20)
    model.insert(rng.normal(centres[:, None], 1.0, (60, 2)))
    return model


def test_models(model):
    html = shown(model)
    for words in ("DynHAC", "points", "60", "dimension", "euclidean", "max_points", "1000", "kd"):
        assert words in texts(html)
    assert "<svg" in html
    assert "max_age" not in html
    graph = texts(shown(model.graph))
    assert "GraphHAC" in graph
    assert "vertices" in graph
    own = DynHAC(similarity=lambda d: 1 / (1 + d))
    assert "&lt;lambda&gt;" in shown(own)


@pytest.mark.parametrize("kind", ["points", "graph"])
def test_durable_models_say_where_they_are(tmp_path, kind):
    path = tmp_path / "a <b> store"
    name = "DynHAC" if kind == "points" else "GraphHAC"
    with dynhac.open(path, kind) as model:
        model.update(insert=[[0.0]]) if kind == "points" else model.add(1)
        assert f"{name} (durable)" in shown(model)
        assert str(path) in texts(shown(model))
        with dynhac.open(path, mode="r") as reader:
            assert f"{name} (read-only)" in shown(reader)
            assert str(path) in texts(shown(reader))
    assert f"{name} (closed)" in shown(model)


def test_small_and_empty_things():
    g = GraphHAC()
    watch = g.watch(0.5)
    for thing in (g, DynHAC(), g.dendrogram(), watch, g.update(), DynHAC().update()):
        assert "<svg" not in shown(thing)
    g.add(7)
    assert ">7</text>" in shown(g)
    assert "<rect" in shown(watch)
    g.add(8, edges=(7, 8, 0.5))
    assert ">0.5</text>" in shown(g)
    watch.close()
    assert "Watch (closed)" in shown(watch)


def test_dendrograms_show_their_largest_trees(model):
    html = shown(model.dendrogram())
    assert "leaves 60 merges 57 trees 3" in texts(html)
    assert 3 < html.count("<text") <= views.ROWS + 2
    sizes = [int(size) for size in re.findall(r">\((\d+)\)</text>", html)]
    alone = html.count("<text") - 2 - len(sizes)
    assert sum(sizes) + alone == 60
    forest = GraphHAC()
    forest.add(range(100), edges=([0], [1], [0.5]))
    assert "more trees" in texts(shown(forest))


def test_hostile_ids_stay_text():
    g = GraphHAC()
    watch = g.watch(0.5)
    ids = [HOSTILE, "x" * 10_000, "\u202e\x00\ud800"[:2], "]]>"]
    change = g.add(ids, edges=([HOSTILE] * 3, ids[1:], [0.9, 0.8, 0.7]))
    for thing in (g, g.dendrogram(), watch, change, g.explain(*ids[:2]), g.verify()):
        html = thing._repr_html_()
        assert "<script" not in html
        assert "<img" not in html
        assert len(html) < 20_000
    model = DynHAC()
    model.insert([[0.0], [1.0]], ids=ids[:2])
    assert "&lt;script&gt;" in shown(model.last_change)
    assert "x" * 50 not in shown(model.last_change)


def test_watches_show_the_largest_clusters(model):
    watch = model.watch(0.2)
    html = texts(shown(watch))
    clusters = sorted(watch.clusters().values(), reverse=True)
    assert f"clusters {len(clusters)} points in clusters 60" in html
    drawn = re.findall(r'<text x="[\d.]+" y="\d+">(\d+)</text>', shown(watch))
    assert list(map(int, drawn)) == clusters[: views.ROWS]
    if len(clusters) > views.ROWS:
        assert f"and {len(clusters) - views.ROWS} smaller cluster" in html
    assert repr(watch).endswith(f"{len(clusters)} clusters, 60 points, largest {clusters[0]}>")


def test_changes_show_points_and_counters(model):
    change = model.update(insert=np.zeros((7, 2)), delete=[1, 2])
    html = texts(shown(change))
    assert "inserted 7: 60, 61, 62, 63, 64, …" in html
    assert "deleted 2: 1, 2" in html
    assert f"nodes created {change.nodes_created}" in html
    graph_change = GraphHAC().add([1, 2], edges=(1, 2, 0.5))
    assert "Change nodes created 1" in texts(shown(graph_change))


def test_explanations_and_reports(model):
    assert "never in one cluster" in shown(model.explain(0, 30))
    assert "verified" in shown(model.verify())


def test_a_large_model_does_not_compute_its_dendrogram(model, monkeypatch):
    monkeypatch.setattr(views, "DRAWN", 50)
    html = shown(model)
    assert "<svg" not in html
    assert "only if dendrogram() has been called" in html
    assert model._engine.current_view() is None
    model.dendrogram()
    assert "<svg" in shown(model)


@pytest.mark.parametrize("shape", ["chain", "pairs", "alone"])
def test_large_dendrograms_are_drawn_in_bounded_time(shape):
    n = 500_000
    if shape == "chain":
        children = np.column_stack([np.r_[0, np.arange(n, 2 * n - 2)], np.arange(1, n)])
    elif shape == "pairs":
        children = np.arange(n).reshape(-1, 2)
    else:
        children = np.empty((0, 2), np.int64)
    merges = len(children)
    similarity = np.linspace(1.0, 0.1, merges)
    size = np.arange(2, n + 1) if shape == "chain" else np.full(merges, 2)
    ids = np.arange(n)
    large = Dendrogram(ids, children, similarity, similarity, size, np.arange(merges), 0.1, 0.01)
    start = time.process_time()
    assert "leaves 500,000" in texts(shown(large))
    assert time.process_time() - start < 2


def test_suggestions(model):
    found = model.suggest(min_size=5)
    html = texts(shown(found))
    for words in ("3 cuts" if len(found) == 3 else "cut", "60 points", "theta", "automatic"):
        assert words in html
    for cut in found:
        assert f"{cut.theta:g}" in html
        assert f"{cut.persistence:.2f}" in html
    none = texts(shown(model.suggest(min_size=61)))
    assert "no cut has a cluster of at least 61 points; try a smaller min_size" in none
