"""Indexes of the user's own in ``DynHAC``: what they may do, and what happens when they fail."""

import gc
import weakref
from functools import partial

import numpy as np
import pytest
from failing_index import Failing
from interrupts import interrupt_at_line
from points_oracle import BATCHES, GRID, built, snapshot, without_answers

from dynhac import DynHAC, InvalidTypeError, _core
from dynhac.neighbors import ExactIndex, KDBlocksIndex


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("method", ["add", "remove", "query"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_an_index_that_fails(batch, method, when):
    index = Failing()
    model, twin = built(neighbors=index), built()
    before = snapshot(model)
    index.errors[method, when] = error = OSError("the disk is full")
    try:
        model.update(**BATCHES[batch])
    except OSError as raised:
        assert raised is error  # noqa: PT017
        assert snapshot(model) == before
        model.update(**BATCHES[batch])
    index.errors = {}
    twin.update(**BATCHES[batch])
    assert snapshot(model) == snapshot(twin)
    assert model.verify().ok


# The methods of an index in an update of "both": remove, add, query. An undo goes backwards.
FAILED_UNDO = [
    (("add", "before"), "add"),
    (("add", "after"), "remove"),
    (("add", "after"), "add"),
    (("query", "before"), "remove"),
    (("query", "after"), "add"),
    (("remove", "after"), "add"),
]


@pytest.mark.parametrize("error", [OSError, MemoryError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(("failed", "undo"), FAILED_UNDO)
def test_an_undo_that_fails(failed, undo, when, error):
    """The update is not made and its error is raised, but the index is not used any more."""
    index = Failing()
    model = built(neighbors=index)
    before = without_answers(model)

    class Errors(dict):
        """Errors of which the first, when it is raised, makes the undo fail."""

        def pop(self, key, default=None):
            found = super().pop(key, default)
            if key == failed and found is first:
                self[undo, when] = error("second")
            return found

    first = ArithmeticError("first")
    index.errors = Errors({failed: first})
    with pytest.raises(ArithmeticError, match="first"):
        model.update(**BATCHES["both"])
    assert not index.errors  # both were raised
    assert without_answers(model) == before
    for update in BATCHES.values():
        with pytest.raises(RuntimeError, match="make a new model"):
            model.update(**update)
    assert without_answers(model) == before
    again = DynHAC(n_neighbors=4)
    again.insert(model.vectors(), model.ids)
    assert again.verify().ok


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
    """An index that changes its answers as told."""

    def __init__(self):
        super().__init__("euclidean")
        self.change = lambda slots, distances: (slots, distances)

    def query(self, vectors, k):
        return self.change(*super().query(vectors, k))


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


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("method", ["add", "remove", "query"])
def test_an_interrupt_in_a_method_of_an_own_index(method, when, interrupt):
    """A query changes nothing, so that the index can be put back; of a change it is not known."""
    index = Failing()
    model, twin = built(neighbors=index), built()
    before = without_answers(model)
    index.errors[method, when] = interrupt()
    with pytest.raises(interrupt):
        model.update(**BATCHES["both"])
    assert without_answers(model) == before
    if method == "query":
        for each in (model, twin):
            each.update(**BATCHES["both"])
        assert snapshot(model) == snapshot(twin)
        return
    with pytest.raises(RuntimeError, match="failed in the middle of a change"):
        model.update(**BATCHES["both"])
    assert without_answers(model) == before


@pytest.mark.parametrize("batch", ["one", "both"])
def test_an_interrupt_at_any_line(batch):
    """The update is made or not, and the index is right or not used any more."""
    before, twin = snapshot(built(neighbors=Failing())), built(neighbors=Failing())
    twin.update(**BATCHES[batch])
    after = snapshot(twin)
    line, reached, outcomes = 0, True, set()
    while reached:
        line += 1
        model = built(neighbors=Failing())
        reached = interrupt_at_line(line, partial(model.update, **BATCHES[batch]))
        made, lost = model.version == twin.version, model._points.index_lost
        outcomes.add((made, lost))
        if lost:
            assert without_answers(model) == {k: v for k, v in before.items() if k != "answers"}
            with pytest.raises(RuntimeError, match="make a new model"):
                model.update(**BATCHES[batch])
        else:
            assert snapshot(model) == (after if made else before), line
            if not made:
                model.update(**BATCHES[batch])
            assert snapshot(model) == after, line
        assert model.verify().ok
    assert outcomes == {(False, False), (False, True), (True, False)}


@pytest.mark.parametrize("method", ["add", "remove"])
@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
@pytest.mark.parametrize("calls", range(4))
def test_an_index_whose_length_fails(method, error, calls):
    """The length tells whether a failed change was made; without it the index is not trusted."""

    class Index(Failing):
        __slots__ = ("left",)

        def __len__(self):
            if self.left is not None and not self.errors:  # the change has failed
                self.left -= 1
                if self.left < 0:
                    self.left = None
                    raise error("length")
            return super().__len__()

    index = Index()
    index.left = None
    model, twin = built(neighbors=index), built()
    before = without_answers(model)
    index.left = calls  # that succeed before the one that fails
    index.errors[method, "after"] = OSError("disk")
    with pytest.raises((OSError, KeyboardInterrupt), match=r"disk|length"):
        model.update(**BATCHES["both"])
    index.left = None
    assert without_answers(model) == before
    try:
        model.update(**BATCHES["both"])
    except RuntimeError as refused:
        assert "make a new model" in str(refused)  # noqa: PT017
        assert without_answers(model) == before
    else:
        twin.update(**BATCHES["both"])
        assert snapshot(model) == snapshot(twin)


def test_an_undo_that_does_nothing():
    """An index that does not hold the points of the model any more is not used."""

    class Index(Failing):
        __slots__ = ()

        def remove(self, slots):
            pass

    index = Index()
    model = built(neighbors=index)
    before = without_answers(model)
    index.errors["add", "after"] = OSError("disk")
    with pytest.raises(OSError, match="disk"):
        model.insert(GRID[30:33])
    assert model._points.index_lost
    assert without_answers(model) == before
    with pytest.raises(RuntimeError, match="make a new model"):
        model.insert(GRID[30:33])


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


def test_updates_leave_no_references_to_an_index():
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
        gone = weakref.ref(index)
        del model, index
        assert gone() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("filled", [False, True])
@pytest.mark.parametrize("owner", ["index", "similarity"])
def test_what_refers_to_its_model_is_collected_with_it(owner, filled):
    class Own(ExactIndex):
        __slots__ = ("__weakref__", "model")

    class Function:
        def __call__(self, distances):
            return 1 / (1 + distances)

    def made():
        index, function = Own(), Function()
        model = DynHAC(neighbors=index, similarity=function)
        (index if owner == "index" else function).model = model
        if filled:
            model.insert(GRID[:10])
            model.delete(3)
        return [weakref.ref(each) for each in (index, function, model)]

    references = made()
    gc.collect()
    assert [reference() for reference in references] == [None] * 3
