"""``neighbors`` and ``predict``: answers about vectors that are not in the model."""

import threading

import numpy as np
import pytest
from placement_oracle import choices, predicted_labels, state_bytes
from points_oracle import GRID, built

import dynhac
from dynhac import DynHAC, InvalidTypeError
from dynhac.dendrogram.cuts import snap
from dynhac.neighbors import ExactIndex

CENTRES = np.random.default_rng(3).normal(scale=4, size=(6, 3))


def blobs(n, seed=0):
    rng = np.random.default_rng(seed)
    return (CENTRES[rng.integers(0, 6, n)] + rng.normal(size=(n, 3))).astype(np.float32)


def fitted(n=300, **parameters):
    model = DynHAC(**{"n_neighbors": 8, **parameters})
    model.insert(blobs(n))
    return model


def sibling_of(model, id):
    """Return the ids below the node that a leaf is first merged with, and the linkage."""
    d = model.dendrogram()
    leaf = d.ids.tolist().index(id)
    merge = int(np.flatnonzero((d.children == leaf).any(1))[0])
    stack, found = [int(d.children[merge].sum()) - leaf], set()
    while stack:
        node = stack.pop()
        if node < d.n_leaves:
            found.add(d.ids[node].item())
        else:
            stack += d.children[node - d.n_leaves].tolist()
    return found, d.similarity[merge]


@pytest.mark.parametrize("k", [2, 8, 40])
def test_the_first_merge_of_an_exact_hierarchy(k):
    """With epsilon 0 and no ties, an inserted point is first merged as predicted."""
    model = fitted(200, epsilon=0.0, threshold=0.0, n_neighbors=k)
    for x in blobs(60, seed=1):
        _, score, neighbors = model.predict(x, 0.5)
        weights = dict(zip(neighbors.ids.tolist(), neighbors.similarities.tolist(), strict=True))
        best = max(choices(model, weights))
        ids = model.ids
        id = model.insert(x)
        siblings, linkage = sibling_of(model, id)
        assert linkage == score
        assert siblings == {ids[leaf].item() for leaf in best[2]}


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0])
def test_against_the_plain_rule(epsilon):
    """More points and levels than the stateful test has."""
    model = fitted(400, epsilon=epsilon)
    model.delete(range(0, 400, 7))
    queries = blobs(25, seed=2)
    for theta in (0.05, 0.3, 0.6):
        labels, scores, neighbors = model.predict(queries, theta)
        cut = model.labels(theta)
        for row, label in enumerate(labels.tolist()):
            weights = dict(
                zip(neighbors.ids[row].tolist(), neighbors.similarities[row].tolist(), strict=True)
            )
            lowest = snap(theta, model.resolution)
            score, possible = predicted_labels(model, weights, cut, lowest)
            assert scores[row] == score
            assert label in possible


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("index", ["exact", "kd", "usearch", "own"])
def test_every_index(index, text):
    class Shuffled(ExactIndex):
        """An index of the user's own, whose answers come in another order."""

        def query(self, vectors, k):
            slots, distances = super().query(vectors, k)
            return slots[:, ::-1], distances[:, ::-1]

    model = DynHAC(n_neighbors=5, neighbors=Shuffled() if index == "own" else index)
    points = blobs(150)
    model.insert(points, [f"p{i}" for i in range(150)] if text else None)
    before = state_bytes(model)
    queries = blobs(20, seed=1)
    ids, distances, similarities = model.neighbors(queries, k=4)
    exact = np.sqrt(((queries[:, None, :].astype(float) - points) ** 2).sum(2))
    expected = np.argsort(exact, axis=1, kind="stable")[:, :4]
    assert ids.tolist() == [[f"p{i}" if text else i for i in row] for row in expected.tolist()]
    assert distances == pytest.approx(np.sort(exact, axis=1)[:, :4], rel=1e-5)
    assert similarities == pytest.approx(1 / (1 + distances))
    assert model.predict(queries, 0.3).neighbors.ids.shape == (20, 5)
    assert state_bytes(model) == before


@pytest.mark.parametrize("parameters", [{}, {"metric": "cosine"}, {"epsilon": 0.0}, {"epsilon": 2}])
def test_points_of_the_model_have_their_own_labels(parameters):
    model = fitted(**parameters)
    for theta in (0.02, 0.3, 0.6, 0.9):
        predicted = model.predict(model.vectors(), theta)
        assert predicted.labels.tolist() == model.labels(theta).tolist()
        assert (predicted.scores > 0.999).all()
    for count in (len(model.dendrogram().roots), 20, 150, 300):
        predicted = model.predict(model.vectors(), n_clusters=count)
        assert predicted.labels.tolist() == model.labels(n_clusters=count).tolist()
    predicted = model.predict(model.vectors(), 0.5, min_size=5).labels
    assert predicted.tolist() == model.labels(0.5, min_size=5).tolist()
    assert -1 in predicted
    watch = model.watch(0.4, min_size=3)
    assert model.predict(model.vectors(), watch=watch).labels.tolist() == watch.labels().tolist()


def test_watch_and_cut_agree():
    model = fitted()
    watch = model.watch(0.4)
    queries = blobs(100, seed=4) * 1.3
    for _ in range(3):
        by_cut, by_watch = model.predict(queries, 0.4), model.predict(queries, watch=watch)
        assert by_cut.scores.tolist() == by_watch.scores.tolist()
        pairs = set(zip(by_cut.labels.tolist(), by_watch.labels.tolist(), strict=True))
        assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})
        assert (-1, -1) in pairs
        model.update(insert=blobs(10, seed=len(model)), delete=model.ids[:20])


def test_far_away_and_between():
    model = DynHAC(n_neighbors=2)
    model.insert([[0.0], [0.1], [10.0], [10.1]])
    labels, scores, _ = model.predict([[0.05], [10.05], [5.0], [1e6]], 0.5)
    assert labels.tolist() == [0, 1, -1, -1]
    assert scores[0] > 0.9 > scores[2] > scores[3] > 0
    assert model.predict([5.0], 0.1).labels in (0, 1)


def test_a_single_vector():
    model = fitted()
    label, score, neighbors = model.predict(blobs(1)[0], 0.3)
    assert (type(label), type(score)) == (int, float)
    assert [column.shape for column in neighbors] == [(8,)] * 3
    rows = model.predict(blobs(1), 0.3)
    assert (rows.labels.tolist(), rows.scores.tolist()) == ([label], [score])
    assert [column.shape for column in model.neighbors(blobs(1)[0], 3)] == [(3,)] * 3


@pytest.mark.parametrize("emptied", [False, True])
def test_an_empty_model(emptied):
    model = DynHAC(n_neighbors=4)
    missing = -1
    if emptied:
        model.insert([[0.0, 1.0]], ids=["a"])
        model.delete("a")
        missing = None
    ids, distances, similarities = model.neighbors([[0.0, 1.0], [2.0, 3.0]], k=2)
    assert ids.tolist() == [[missing] * 2] * 2
    assert np.isinf(distances).all()
    assert not similarities.any()
    assert model.predict([0.0, 1.0], 0.5)[:2] == (-1, 0.0)
    assert model.predict([[0.0, 1.0]], watch=model.watch(0.5)).labels.tolist() == [-1]
    assert model.predict([[0.0, 1.0]], n_clusters=0).labels.tolist() == [-1]


def test_nothing_to_ask():
    for model in (DynHAC(), fitted(5)):
        labels, scores, neighbors = model.predict([], 0.5)
        assert (len(labels), len(scores), neighbors.ids.shape) == (0, 0, (0, model.n_neighbors))
        assert model.neighbors([], k=3).ids.shape == (0, 3)


def test_one_point():
    model = DynHAC()
    model.insert([1.0, 2.0], ids="a")
    ids, distances, similarities = model.neighbors([1.0, 2.0], k=2)
    assert (ids.tolist(), distances.tolist(), similarities.tolist()) == (
        ["a", None],
        [0.0, np.inf],
        [1.0, 0.0],
    )
    assert model.predict([1.0, 3.0], 0.5)[:2] == (0, 0.5)
    assert model.predict([1.0, 3.0], 0.6)[:2] == (-1, 0.5)


def test_a_cut_is_not_used_after_an_update():
    model = fitted(60)
    query = blobs(30, seed=9)
    for step in range(6):
        for cut in ({"theta": 0.4}, {"theta": 0.5}, {"n_clusters": 12}, {"n_clusters": 13}):
            again = model.predict(query, **cut).labels
            assert again.tolist() == model.predict(query, **cut).labels.tolist()
            assert again.max() <= model.labels(**cut).max()
        own = model.predict(model.vectors(), 0.4).labels
        assert own.tolist() == model.labels(0.4).tolist()
        model.update(insert=blobs(5, seed=step), delete=model.ids[:7])


def test_similarities_that_round_to_nothing_are_no_edges():
    model = DynHAC(similarity=lambda d: np.where(d < 2, 1.0, 1e-12), n_neighbors=3)
    model.insert([[0.0], [1.0], [9.0]])
    assert model.predict([5.0], 0.5)[:2] == (-1, 0.0)
    assert model.neighbors([5.0]).similarities.tolist() == [1e-12] * 3
    assert model.predict([0.5], 0.5)[:2] == (0, 1.0)


def test_similarities_that_are_too_large():
    model = DynHAC(metric="inner_product", resolution=1e-6, n_neighbors=3)
    model.insert([[1.0, 0.0], [2.0, 0.0]], ids=["a", "b"])
    with pytest.raises(ValueError, match=r"row 1 of X to id 'b' is 2\.0\d*e\+30, which"):
        model.predict([[1.0, 0.0], [1e30, 0.0]], 0.5)
    assert model.neighbors([1e30, 0.0], k=1).similarities == pytest.approx([2e30])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"min_size": 1}, "min_size is 1; the automatic choice of clusters needs at least 2"),
        ({"conductance": 0}, "conductance is 0; it must be > 0 and <= 1"),
        ({"conductance": 0.5, "n_clusters": 3}, "n_clusters is 3 and conductance is 0.5; give one"),
        ({"noise": "far"}, "noise is 'far'; it must be 'nearest' or None"),
        ({"theta": 0.5, "n_clusters": 3}, "theta is 0.5 and n_clusters is 3; give one of them"),
        ({"theta": 0.5, "watch": 7}, "theta is 0.5 and watch is 7; give one of them"),
        ({"theta": -0.001}, "theta is -0.001; it must be a similarity >= 0, the threshold"),
        ({"theta": "0.5"}, "theta is '0.5'; give one number"),
        ({"theta": [0.5, 0.6]}, "theta is"),
        ({"n_clusters": 31}, "n_clusters is 31; with 30 leaves in"),
        ({"n_clusters": 2.5}, "n_clusters is 2.5"),
        ({"theta": 0.5, "min_size": 0}, "min_size is 0"),
        ({"watch": 7}, "watch is 7; it must be a watch of this model"),
        ({"X": [1.0, 2.0], "theta": 0.5}, "the vector has 2 dimensions, but .* have 3"),
        ({"X": [[0.0, 1.0, np.nan]], "theta": 0.5}, "row 0, column 2 of X is nan"),
        ({"X": None, "theta": 0.5}, "X is None"),
    ],
)
def test_wrong_arguments(arguments, message):
    model = built()
    before = state_bytes(model)
    model.predict(GRID[0], 0.6)
    with pytest.raises(ValueError, match=message):
        model.predict(**{"X": GRID[:2], **arguments})
    assert state_bytes(model) == before


@pytest.mark.parametrize("k", [0, -1, 1.5, "3", True])
def test_wrong_numbers_of_neighbors(k):
    with pytest.raises(ValueError, match="k is"):
        built().neighbors(GRID[0], k)


def test_watches_that_cannot_be_used():
    model, other = built(), built()
    with pytest.raises(ValueError, match="of another model"):
        model.predict(GRID[0], watch=other.watch(0.5))
    watch = model.watch(0.5)
    with pytest.raises(ValueError, match="min_size is 3, but a watch is given, which has its own"):
        model.predict(GRID[0], watch=watch, min_size=3)
    with pytest.raises(ValueError, match="noise is 'nearest', but a watch is given, which has"):
        model.predict(GRID[0], watch=watch, noise="nearest")
    watch.close()
    for x in (GRID[0], GRID[0] + 1e6, []):
        with pytest.raises(ValueError, match="is closed"):
            model.predict(x, watch=watch)
    with pytest.raises(InvalidTypeError):
        model.predict(GRID[0], 0.5, watch=model.watch(0.5))


def test_windows_do_not_move():
    model = DynHAC(max_age=10, max_points=20, n_neighbors=4)
    model.insert(blobs(20), timestamps=range(0, 40, 2))
    before, ids = state_bytes(model), model.ids.tolist()
    model.predict(blobs(50, seed=1), 0.3)
    model.neighbors(blobs(50, seed=1))
    assert (state_bytes(model), model.ids.tolist()) == (before, ids)


def test_an_index_that_updates_the_model_while_it_is_searched():
    class Updating(ExactIndex):
        armed = False

        def query(self, vectors, k):
            if self.armed:
                self.armed = False
                model.insert(GRID[0])
            return super().query(vectors, k)

    index = Updating()
    model = built(neighbors=index)
    before = state_bytes(model)
    index.armed = True
    with pytest.raises(RuntimeError, match="being updated, saved or searched"):
        model.neighbors(GRID[0])
    assert state_bytes(model) == before
    assert model.neighbors(GRID[0], 1).distances.tolist() == [0.0]


def test_an_index_that_was_lost():
    """Names of indexes are searched without it; an index of the user's own is gone."""
    model = built()
    expected = model.neighbors(GRID[:9])
    model._points.lose_index()
    before = state_bytes(model)
    for found, column in zip(model.neighbors(GRID[:9]), expected, strict=True):
        assert found.tolist() == column.tolist()
    assert state_bytes(model) == before
    own = built(neighbors=ExactIndex())
    own._points.lose_index()
    with pytest.raises(RuntimeError, match="make a new model"):
        own.predict(GRID[0], 0.5)


def test_stores_and_their_readers(tmp_path):
    queries = blobs(10, seed=1)
    plain = fitted(80)
    expected = plain.predict(queries, 0.3)
    with dynhac.open(tmp_path / "store", n_neighbors=8) as model:
        model.insert(blobs(80))
        number = model.update_number
        watch = model.watch(0.3)
        with dynhac.open(tmp_path / "store", mode="r") as reader:
            for each in (model, reader):
                labels, scores, neighbors = each.predict(queries, 0.3)
                assert labels.tolist() == expected.labels.tolist()
                assert scores.tolist() == expected.scores.tolist()
                assert neighbors.ids.tolist() == each.neighbors(queries).ids.tolist()
            with pytest.raises(ValueError, match="of another model"):
                reader.predict(queries, watch=watch)
            model.insert(queries[0] + 100)
            reader.refresh()
            assert reader.predict(queries[0] + 100, 0.9)[:2] == (reader.labels(0.9)[-1], 1.0)
        assert model.update_number == number + 2  # the watch, and one insertion


def test_beside_a_writer():
    """Every answer is about one state: the writer replaces all points at once."""
    model = DynHAC(n_neighbors=10)
    points = blobs(10)
    model.insert(points, ids=range(10))
    watch = model.watch(0.02)
    done = threading.Event()
    errors = []

    def write():
        try:
            for step in range(1, 60):
                first = 10 * step
                model.update(points, ids=range(first, first + 10), delete=range(first - 10, first))
        except BaseException as error:  # the test must see it
            errors.append(error)
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    answers = 0
    while not done.is_set() or not answers:
        for cut in ({"theta": 0.02}, {"watch": watch}):
            labels, _, neighbors = model.predict(points[:3], **cut)
            assert len(set((neighbors.ids // 10).ravel().tolist())) == 1
            assert (labels >= 0).all()
            answers += 1
    writer.join()
    assert not errors
