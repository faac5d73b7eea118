"""Indexes of a user's own in ``DynHAC``: what they may do, and what happens when they fail."""

import gc
import weakref

import numpy as np
import pytest
from dynhac.models.attempt import Attempt
from points_oracle import BATCHES, GRID, built, snapshot

from dynhac import DynHAC, InvalidTypeError, _core
from dynhac.neighbors import ExactIndex, KDBlocksIndex


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
