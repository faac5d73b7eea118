"""What goes wrong in and around an update of ``DynHAC``: all of it is there then, or nothing."""

import copy
import gc
import weakref
from contextlib import contextmanager, nullcontext
from functools import partial

import numpy as np
import pytest
from points_oracle import GRID, built, edges_of, snapshot
from test_interrupts import interrupt_at_line

from dynhac import DynHAC, InvalidTypeError, _core
from dynhac.keyed import KeyedEngine
from dynhac.neighbors import ExactIndex, KDBlocksIndex
from dynhac.points.attempt import Attempt


class Failing(ExactIndex):
    """An index that fails when told to, before or after it has done its work."""

    __slots__ = ("after", "when")

    def __init__(self):
        super().__init__()
        self.when, self.after = None, False

    def _maybe(self, what, call):
        if self.when == what and not self.after:
            self.when = None
            raise OSError("the disk is full")
        result = call()
        if self.when == what:
            self.when = None
            raise OSError("the disk is full")
        return result

    def add(self, slots, vectors):
        self._maybe("add", lambda: ExactIndex.add(self, slots, vectors))

    def remove(self, slots):
        self._maybe("remove", lambda: ExactIndex.remove(self, slots))

    def query(self, vectors, k):
        return self._maybe("query", lambda: ExactIndex.query(self, vectors, k))


BATCHES = {
    "one": {"insert": GRID[30]},
    "some": {"insert": GRID[30:35]},
    "delete": {"delete": [3, 4, 5, 6]},
    "both": {"insert": GRID[30:35], "delete": [3, 4, 5, 6]},
}


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("when", ["add", "remove", "query"])
@pytest.mark.parametrize("after", [False, True])
def test_an_index_that_fails(batch, when, after):
    index = Failing()
    model, twin = built(neighbors=index), built()
    before = snapshot(model)
    index.when, index.after = when, after
    try:
        model.update(**BATCHES[batch])
    except OSError:
        assert snapshot(model) == before
        model.update(**BATCHES[batch])
    index.when = None
    twin.update(**BATCHES[batch])
    assert snapshot(model) == snapshot(twin)
    assert model.verify().ok


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda d: 1 / 0, "division"),
        (lambda d: np.full_like(d, np.nan), "nan"),
        (lambda d: -d - 1, "similarities must be finite and >= 0"),
        (lambda d: d[:-1], "shape"),
        (lambda d: None, "similarity function returned"),
        (lambda d: np.ma.array(1 / (1 + d)), "masked array"),
    ],
)
@pytest.mark.parametrize("batch", ["one", "some", "both"])
@pytest.mark.parametrize("neighbors", ["exact", "kd"])
def test_a_similarity_that_fails(wrong, message, batch, neighbors):
    broken = False
    model = built(similarity=lambda d: wrong(d) if broken else 1 / (1 + d), neighbors=neighbors)
    twin = built(neighbors=neighbors)
    before = snapshot(model)
    broken = True
    with pytest.raises((ValueError, ZeroDivisionError), match=message):
        model.update(**BATCHES[batch])
    assert snapshot(model) == before
    broken = False
    model.update(**BATCHES[batch])
    twin.update(**BATCHES[batch])
    assert snapshot(model) == snapshot(twin)


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("window", [None, 30])
def test_a_graph_that_fails(monkeypatch, error, batch, window):
    def fail(*_, **__):
        raise error("no")

    model, twin = built(max_points=window), built(max_points=window)
    before = snapshot(model)
    with monkeypatch.context() as patch:
        patch.setattr(KeyedEngine, "update_points", fail)
        with pytest.raises(error):
            model.update(**BATCHES[batch])
    assert snapshot(model) == before
    model.update(**BATCHES[batch])
    twin.update(**BATCHES[batch])
    assert snapshot(model) == snapshot(twin)


def without_answers(model):
    """What can be seen of a model whose index may be lost, and silent until the next update."""
    return {key: value for key, value in snapshot(model).items() if key != "answers"}


@pytest.mark.parametrize("allocation", [*range(40), 50, 60])
@pytest.mark.parametrize("text", [False, True])
def test_running_out_of_memory(allocation, text):
    ids = {"ids": [f"q{i}" for i in range(5)], "delete": ["p3", "p4"]} if text else {"delete": 3}
    model, twin = built(text=text), built(text=text)
    before = without_answers(model)
    _core.fail_allocation(allocation)
    try:
        model.update(insert=GRID[30:35], **ids)
    except MemoryError:
        _core.fail_allocation(-1)
        assert without_answers(model) == before
        model.update(insert=GRID[30:35], **ids)
    finally:
        _core.fail_allocation(-1)
    twin.update(insert=GRID[30:35], **ids)
    assert snapshot(model) == snapshot(twin)


class Stream:
    """A model of a window, an update of it, and what can be seen before and after."""

    def __init__(self, text, rows):
        self.text, self.rows = text, rows
        twin = self.start()
        self.before = without_answers(twin)
        self.apply(twin)
        self.after, self.whole = without_answers(twin), snapshot(twin)

    def start(self):
        model = DynHAC(n_neighbors=3, neighbors="exact", max_points=12)
        model.insert(GRID[:12], [f"p{i}" for i in range(12)] if self.text else None)
        model.delete("p1" if self.text else 1)
        return model

    def apply(self, model):
        ids = {"ids": [f"q{i}" for i in range(self.rows)]} if self.text else {}
        model.update(insert=GRID[20 : 20 + self.rows], delete="p5" if self.text else 5, **ids)

    def interrupt(self, line, meanwhile=nullcontext):
        """Return whether the line was reached, and whether the update was made."""
        model = self.start()
        with meanwhile():
            reached = interrupt_at_line(line, partial(self.apply, model))
        found = without_answers(model)
        assert found in (self.before, self.after), line
        if found == self.before:
            self.apply(model)
            assert snapshot(model) == self.whole, line
        model.insert(GRID[30], "z" if self.text else None)
        assert model.verify().ok
        return reached, found == self.after


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("rows", [1, 3])
def test_an_interrupt_at_any_line_leaves_all_or_nothing(text, rows):
    stream = Stream(text, rows)
    line, reached, outcomes = 0, True, set()
    while reached:
        line += 1 if line < 400 else 5
        reached, made = stream.interrupt(line)
        outcomes.add(made)
    assert outcomes == {False, True}


@pytest.mark.parametrize("rows", [1, 3])
def test_an_interrupt_while_another_is_dealt_with(monkeypatch, rows):
    stream = Stream(False, rows)
    real, outcomes = Attempt.finish, set()
    for again in (*range(1, 25), *range(25, 500, 7)):
        came = False

        def finish(attempt, points, error, again=again):
            nonlocal came
            if interrupt_at_line(again, partial(real, attempt, points, error)):
                came = True
                raise KeyboardInterrupt

        @contextmanager
        def interrupted_too(finish=finish):
            with monkeypatch.context() as patch:
                patch.setattr(Attempt, "finish", finish)
                yield

        line, reached = again % 19, True
        while reached:
            line += 19
            reached, made = stream.interrupt(line, interrupted_too)
            outcomes.add(made)
        if not came:  # dealing with an interrupt never takes as many lines
            break
    assert outcomes == {False, True}
    assert 30 < again < 499


def test_an_index_that_cannot_be_put_back():
    class Broken(ExactIndex):
        def add(self, slots, vectors):
            if len(self) >= 30:
                super().add(slots[:1], vectors[:1])
                raise OSError("half")
            super().add(slots, vectors)

    model = built(neighbors=Broken())
    ids = model.ids.tolist()
    with pytest.raises(OSError, match="half"):
        model.insert(GRID[30:35])
    assert model.ids.tolist() == ids
    with pytest.raises(RuntimeError, match="make a new model"):
        model.insert(GRID[0])
    assert model.labels(0.5).shape == (30,)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda s, d: (s[:, :1], d), "shape"),
        (lambda s, d: (s + 1000, d), "not in use"),
        (lambda s, d: (s * 1.0, d), "array of int"),
        (lambda s, d: (s, d * np.nan), "nan"),
        (lambda s, d: (s, d - 1e3), "negative"),
        (lambda s, d: (s, np.ma.array(d)), "array of float"),
        (lambda s, d: (s.tolist(), d), "array of int"),
    ],
)
def test_an_index_that_answers_wrongly(answer, message):
    class Wrong(ExactIndex):
        def query(self, vectors, k):
            found = super().query(vectors, k)
            return answer(*found) if wrong else found

    wrong = False
    model = built(neighbors=Wrong())
    before = snapshot(model)
    wrong = True
    with pytest.raises((ValueError, TypeError), match=message):
        model.insert(GRID[30:33])
    wrong = False
    assert snapshot(model) == before


def test_an_index_must_be_empty_and_whole():
    index = ExactIndex()
    index.add(np.array([0]), np.ones((1, 2), np.float32))
    with pytest.raises(ValueError, match="holds 1 vector; it must be empty"):
        DynHAC(neighbors=index)
    with pytest.raises(ValueError, match="an index of metric 'cosine', but the model's is 'eucl"):
        DynHAC(neighbors=ExactIndex("cosine"))
    with pytest.raises(InvalidTypeError, match="neighbors is"):
        DynHAC(neighbors=5)
    with pytest.raises(ValueError, match="neighbors is 'faiss'"):
        DynHAC(neighbors="faiss")


def test_a_model_that_outgrows_its_index(monkeypatch):
    monkeypatch.setattr("dynhac.points.pointgraph.MOST_NUMBERS_SCANNED", 90)
    monkeypatch.setattr(
        "dynhac.points.pointgraph.choose_backend",
        lambda _, d, n: "exact" if d * n <= 90 else "usearch",
    )
    names = []

    def make(backend, metric, dimension, expected_points):
        names.append(backend)
        return ExactIndex(metric)

    monkeypatch.setattr("dynhac.points.pointgraph.make_index", make)
    model = DynHAC(n_neighbors=4, metric="cosine", similarity="cosine")
    model.insert(GRID[:25])
    assert model.backend == "exact"
    before = snapshot(model)
    with pytest.raises(ValueError, match="nan"):
        model.insert([np.nan, 0, 0])
    with monkeypatch.context() as patch:
        patch.setattr(KeyedEngine, "update_points", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            model.insert(GRID[25:])
    assert model.backend == "exact"
    assert snapshot(model) == before
    model.insert(GRID[25:])
    assert model.backend == "usearch"
    model.delete(list(range(30)))
    assert model.backend == "usearch"  # it never goes back
    assert names == ["exact", "usearch", "usearch"]  # one for the batch that failed
    assert model.verify().ok
    whole = DynHAC(n_neighbors=4, metric="cosine", similarity="cosine", neighbors="exact")
    whole.insert(GRID[:25])
    whole.insert(GRID[25:])
    whole.delete(list(range(30)))
    assert edges_of(whole.graph) == edges_of(model.graph)


def test_a_model_that_has_to_go_on_with_a_scan_asks_once(monkeypatch):
    asked = []
    monkeypatch.setattr("dynhac.points.pointgraph.MOST_NUMBERS_SCANNED", 90)
    monkeypatch.setattr(
        "dynhac.points.pointgraph.choose_backend",
        lambda *arguments: asked.append(arguments) or "exact",
    )
    model = DynHAC()
    for row in GRID:
        model.insert(row)
    assert len(asked) == 2
    assert model.backend == "exact"


def test_an_update_inside_an_update_is_refused():
    model = DynHAC(n_neighbors=2, similarity=lambda d: model.insert([0.0]))
    with pytest.raises(RuntimeError, match="being updated"):
        model.insert([[1.0], [2.0]])
    assert len(model) == 0


class Odd(ExactIndex):
    """An index of the user's own that can be told to misbehave."""

    def __init__(self):
        super().__init__("euclidean")
        self.change = lambda slots, distances: (slots, distances)
        self.interrupt = False

    def query(self, vectors, k):
        return self.change(*super().query(vectors, k))

    def remove(self, slots):
        if self.interrupt:
            self.interrupt = False
            raise KeyboardInterrupt
        super().remove(slots)


def test_gaps_and_narrow_floats_in_what_an_own_index_finds():
    index = Odd()
    model = DynHAC(n_neighbors=2, neighbors=index)
    model.insert([[float(x)] for x in range(16)])
    model.delete([3])

    def first_missing(slots, distances):
        slots[:, 0] = -1
        return slots, distances.astype(np.float32)

    index.change = first_missing
    id = model.insert([3.25])
    assert model.graph.edges(of=id)[1].tolist() == [2]
    assert model.verify().ok
    index.change = lambda slots, distances: (np.full_like(slots, 16), distances)
    with pytest.raises(ValueError, match="found slot 16, which is not in use"):
        model.insert([3.5])


@pytest.mark.parametrize(
    "change",
    [
        lambda s, d: (np.asfortranarray(s), np.asfortranarray(d)),
        lambda s, d: (s[:, ::-1], d[:, ::-1]),  # the farthest first
        lambda s, d: (s.astype(np.int16), d),
    ],
)
def test_the_layout_of_what_an_own_index_finds_does_not_matter(change):
    def grown(model):
        model.insert(GRID[:10])
        for row in GRID[10:20]:
            model.insert(row)
        # Edges that are too weak for the graph are left out, wherever they stand in a row.
        model.insert([[1e30, 0.0, 0.0], [-1e30, 0.0, 0.0]])
        model.insert([1e30, 1e30, 0.0])
        model.insert(GRID[20])
        model.delete(range(8))
        return sorted(zip(*(column.tolist() for column in model.graph.edges()), strict=True))

    index = Odd()
    index.change = change
    # More neighbours than points: otherwise the one that is left out would be another one.
    own = DynHAC(n_neighbors=40, neighbors=index)
    assert grown(own) == grown(DynHAC(n_neighbors=40, neighbors="exact"))
    assert own.verify().ok


def test_an_own_index_may_find_a_point_twice():
    index = Odd()
    model = DynHAC(n_neighbors=3, neighbors=index)
    model.insert([[0.0], [1.0], [2.0], [3.0]])

    def nearest_again(slots, distances):
        slots[:, 1], distances[:, 1] = slots[:, 0], distances[:, 0] + 0.5
        return slots, distances

    index.change = nearest_again
    id = model.insert([0.1])
    neighbours, weights = model.graph.edges(of=id)[1:]
    assert dict(zip(neighbours.tolist(), weights.round(6).tolist(), strict=True)) == {
        0: round(1 / 1.1, 6),
        2: round(1 / 2.9, 6),
    }


def test_an_own_tree_that_ran_out_of_memory_is_not_trusted():
    lost = 0
    for allocation in range(60):
        model = DynHAC(n_neighbors=3, neighbors=KDBlocksIndex(3))
        model.insert(GRID[:20])
        before = model.vectors().tolist()
        _core.fail_allocation(allocation)
        try:
            model.update(insert=GRID[20:] + 1, delete=[1, 2])
        except MemoryError:
            _core.fail_allocation(-1)
            assert model.vectors().tolist() == before
            try:
                model.insert(GRID[:2])
            except RuntimeError as error:
                assert "make a new model" in str(error)  # noqa: PT017
                lost += 1
        finally:
            _core.fail_allocation(-1)
        assert model.verify().ok
    assert lost > 0


def test_an_own_index_that_was_interrupted_is_not_trusted():
    index = Odd()
    model = DynHAC(n_neighbors=2, neighbors=index)
    model.insert([[0.0], [1.0], [2.0]])
    index.interrupt = True
    with pytest.raises(KeyboardInterrupt):
        model.delete([1])
    with pytest.raises(RuntimeError, match="failed in the middle of a change"):
        model.delete([1])
    assert model.ids.tolist() == [0, 1, 2]


def test_a_similarity_cannot_save_or_copy_the_model_on_its_way(tmp_path):
    def similarity(distances):
        if len(model):
            with pytest.raises(RuntimeError, match="cannot save or copy"):
                model.save(tmp_path / "m")
            with pytest.raises(RuntimeError, match="cannot save or copy"):
                copy.copy(model)
        return 1 / (1 + distances)

    model = DynHAC(similarity=similarity)
    model.insert([[0.0], [1.0]])
    model.insert([2.0])
    assert not (tmp_path / "m").exists()


class Scribbling(ExactIndex):
    """An index that writes to the arrays it is given."""

    __slots__ = ()

    def add(self, slots, vectors):
        super().add(slots.copy(), vectors.copy())
        slots[:], vectors[:] = 0, 7

    def remove(self, slots):
        super().remove(slots.copy())
        slots[:] = 0

    def query(self, vectors, k):
        answer = super().query(vectors.copy(), k)
        vectors[:] = -7
        return answer


@pytest.mark.parametrize("batch", BATCHES)
def test_an_index_that_writes_to_what_it_is_given(batch):
    model, twin = built(neighbors=Scribbling()), built()
    for each in (model, twin):
        each.update(**BATCHES[batch])
    assert snapshot(model) == snapshot(twin)


@pytest.mark.parametrize("answer", [None, (), (1, 2, 3), "ab", np.zeros((2, 4))])
def test_an_index_that_answers_something_else(answer):
    class Odd(ExactIndex):
        __slots__ = ()

        def query(self, vectors, k):
            return answer

    model = DynHAC(n_neighbors=4, neighbors=Odd())
    with pytest.raises(InvalidTypeError, match=r"the index Odd returned a .*two arrays"):
        model.insert(GRID[:5])
    assert len(model) == 0


def test_updates_through_an_index_of_ones_own_leave_nothing_behind():
    class Own(ExactIndex):
        __slots__ = ("__weakref__",)

    index = Own()
    model = DynHAC(n_neighbors=4, neighbors=index)
    gc.collect()
    gc.disable()
    try:
        for row in GRID[:10]:
            model.insert(row)
        with pytest.raises(ValueError, match="nan"):
            model.insert([np.nan, 0, 0])
        model.delete([1, 2])
        assert not any(isinstance(each, Attempt) for each in gc.get_objects())
        gone = weakref.ref(index)
        del model, index
        assert gone() is None
    finally:
        gc.enable()


class Meddler:
    """Vectors that update the model when they are looked at."""

    def __init__(self, update):
        self.update = update

    def __array__(self, dtype=None, copy=None):
        self.update()
        return GRID[30:31]


def test_vectors_that_update_the_model():
    """The slot of a deleted point may have become that of another by then."""
    model = DynHAC(n_neighbors=2)
    model.insert(GRID[:5])

    def replace():
        model.delete(3)
        model.insert(GRID[20], 9)

    with pytest.raises(RuntimeError, match="updated while an update was read"):
        model.update(insert=Meddler(replace), delete=[3])
    assert model.ids.tolist() == [0, 1, 2, 4, 9]
    assert model.verify().ok
    empty = DynHAC(n_neighbors=2)
    with pytest.raises(RuntimeError, match="updated while an update was read"):
        empty.insert(Meddler(lambda: empty.insert(GRID[:3])))
    assert len(empty) == 3
    assert empty.insert(Meddler(lambda: empty.labels(0.5))).tolist() == [3]
