"""``CheckedIndex``: an index of the user's own, its answers checked and its failures followed."""

import numpy as np
import pytest
from failing_index import Failing

from dynhac import InvalidTypeError
from dynhac.neighbors import ExactIndex
from dynhac.neighbors.checked import CheckedIndex

VECTORS = np.arange(10, dtype=np.float32).reshape(-1, 1)
SLOTS = np.arange(10)
STEPS = {"add": (SLOTS[5:8], VECTORS[5:8]), "remove": (SLOTS[1:3],)}
AFTER = {"add": [0, 1, 2, 3, 4, 5, 6, 7], "remove": [0, 3, 4]}


class UserIndex(Failing):
    """An index that also answers as told, and records its calls."""

    def __init__(self):
        super().__init__()
        self.change = lambda slots, distances: (slots, distances)
        self.calls = []

    def _call(self, name, *arguments):
        self.calls.append(name)
        return super()._call(name, *arguments)

    def query(self, vectors, k):
        return self.change(*super().query(vectors, k))


class WritingIndex(ExactIndex):
    """An index that writes to its arguments."""

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


def filled(index=None, signed=False):
    """Return a checked index that holds slots 0 to 4, each at its own number."""
    checked = CheckedIndex(UserIndex() if index is None else index, signed)
    checked.add(SLOTS[:5], VECTORS[:5])
    return checked


def contents(checked):
    """Return everything that the wrapped index holds."""
    return {name: array.tolist() for name, array in checked.index.save().items()}


def found_slots(checked):
    """Return all slots that a query finds."""
    found = checked.query(VECTORS[:1], 10)[0].ravel()
    return sorted(found[found >= 0].tolist())


def test_has_the_methods_of_an_index():
    index = UserIndex()
    checked = filled(index)
    assert checked.index is index
    assert checked.intact
    assert len(checked) == 5
    checked.remove(SLOTS[:2])
    checked.remove(SLOTS[2:3])
    assert len(checked) == 2
    slots, distances = checked.query(VECTORS[3:4], 3)
    assert slots.tolist() == [[3, 4, -1]]
    assert distances.tolist() == [[0.0, 1.0, np.inf]]


def test_empty_steps_and_queries():
    checked = CheckedIndex(UserIndex(), False)
    checked.add(SLOTS[:0], VECTORS[:0])
    checked.remove(SLOTS[:0])
    assert checked.query(VECTORS[:0], 3)[0].shape == (0, 3)
    assert checked.query(VECTORS[:2], 0)[1].shape == (2, 0)
    assert checked.query(VECTORS[:1], 2)[0].tolist() == [[-1, -1]]
    checked.index.errors["add", "before"] = OSError("disk")
    with pytest.raises(OSError, match="disk"):
        checked.add(SLOTS[:0], VECTORS[:0])
    assert checked.intact
    assert checked.index.calls.count("remove") == 1


def test_large_slots():
    checked = CheckedIndex(UserIndex(), False)
    checked.add(np.array([100_000, 3]), VECTORS[:2])
    checked.add(np.array([2_000_000]), VECTORS[2:3])
    assert found_slots(checked) == [3, 100_000, 2_000_000]


def test_arguments_are_copied():
    slots, vectors = SLOTS.copy(), VECTORS.copy()
    checked = CheckedIndex(WritingIndex(), False)
    checked.add(slots[:5], vectors[:5])
    checked.query(vectors, 2)
    checked.remove(slots[:2])
    assert (slots == SLOTS).all()
    assert (vectors == VECTORS).all()
    assert found_slots(checked) == [2, 3, 4]
    assert (vectors == VECTORS).all()


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", ["add", "remove"])
def test_a_failed_step_was_made_or_was_not_made(step, when):
    checked = filled()
    before = contents(checked)
    checked.index.errors[step, when] = error = OSError("disk")
    with pytest.raises(OSError, match="disk") as raised:
        getattr(checked, step)(*STEPS[step])
    assert raised.value is error
    assert checked.intact
    assert checked.index.calls.count(step) == 1 + (step == "add")  # nothing is tried again
    if when == "before":
        assert contents(checked) == before
        getattr(checked, step)(*STEPS[step])
    assert found_slots(checked) == AFTER[step]


@pytest.mark.parametrize(("step", "opposite"), [("add", "remove"), ("remove", "add")])
def test_a_failed_step_that_was_made_can_be_undone(step, opposite):
    """The update that called the index undoes it; the record of the slots in use follows."""
    checked = filled()
    checked.index.errors[step, "after"] = OSError("disk")
    with pytest.raises(OSError, match="disk"):
        getattr(checked, step)(*STEPS[step])
    slots = STEPS[step][0]
    getattr(checked, opposite)(slots, *([VECTORS[slots]] if opposite == "add" else []))
    assert checked.intact
    assert found_slots(checked) == [0, 1, 2, 3, 4]
    checked.index.change = lambda s, d: (np.full_like(s, 5), d)
    with pytest.raises(ValueError, match="found slot 5, which is not in use"):
        checked.query(VECTORS[:2], 3)


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", ["add", "remove"])
def test_an_interrupted_step(step, when, interrupt):
    checked = filled()
    checked.index.errors[step, when] = interrupt()
    with pytest.raises(interrupt):
        getattr(checked, step)(*STEPS[step])
    assert not checked.intact


def test_a_step_that_was_made_in_part():
    class Index(ExactIndex):
        def add(self, slots, vectors):
            super().add(slots[:1], vectors[:1])
            if len(slots) == 3:
                raise OSError("disk")
            super().add(slots[1:], vectors[1:])

    checked = filled(Index())
    with pytest.raises(OSError, match="disk"):
        checked.add(SLOTS[5:8], VECTORS[5:8])
    assert not checked.intact


def test_an_index_that_cannot_tell_its_length():
    class Index(UserIndex):
        def __len__(self):
            raise OSError("length")

    checked = filled(Index())
    checked.index.errors["add", "before"] = OSError("disk")
    with pytest.raises(OSError, match="disk"):
        checked.add(SLOTS[5:8], VECTORS[5:8])
    assert not checked.intact


def test_an_index_never_becomes_intact_again():
    checked = filled()
    checked.index.errors["add", "before"] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        checked.add(SLOTS[5:7], VECTORS[5:7])
    checked.add(SLOTS[5:7], VECTORS[5:7])
    assert not checked.intact
    checked.index.errors["remove", "before"] = OSError("disk")
    with pytest.raises(OSError, match="disk"):
        checked.remove(SLOTS[5:7])
    assert not checked.intact


def test_failures_of_a_query_change_nothing():
    checked = filled()
    for error in (OSError("disk"), KeyboardInterrupt()):
        checked.index.errors["query", "after"] = error
        with pytest.raises(type(error)):
            checked.query(VECTORS[:1], 2)
        assert checked.intact
    assert found_slots(checked) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda s, d: (s[:, :1], d), ValueError, r"slots of shape \(2, 1\); it must be \(2, 3\)"),
        (lambda s, d: (s, d[:1]), ValueError, r"distances of shape \(1, 3\); it must be"),
        (lambda s, d: (s * 1.0, d), InvalidTypeError, "slots that are not an array of int"),
        (lambda s, d: (s.astype(np.uint64), d), InvalidTypeError, "not an array of int"),
        (lambda s, d: (s.tolist(), d), InvalidTypeError, "not an array of int"),
        (lambda s, d: (s, s), InvalidTypeError, "distances that are not an array of float"),
        (lambda s, d: (s, np.ma.array(d)), InvalidTypeError, "not an array of float"),
        (lambda s, d: (s, d * np.nan), ValueError, "a distance that is nan"),
        (lambda s, d: (s, d - 9), ValueError, "a distance that is negative"),
        (lambda s, d: (s + 3, d), ValueError, "found slot 5, which is not in use; it must"),
        (lambda s, d: (s + 1000, d), ValueError, "found slot 1000, which is not in use"),
        (lambda s, d: (s - 2, d), ValueError, "found slot -2, which is not in use"),
    ],
)
def test_wrong_answers(change, error, message):
    checked = filled()
    checked.index.change = change
    with pytest.raises(error, match=f"the index UserIndex .*{message}"):
        checked.query(VECTORS[:2], 3)


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        (None, "a NoneType"),
        ((), "a tuple of 0"),
        ([1, 2, 3], "a list of 3"),
        ("ab", "a str"),
        (np.zeros((2, 3)), "a ndarray"),
    ],
)
def test_answers_that_are_not_two_arrays(answer, what):
    checked = filled()
    checked.index.change = lambda *_: answer
    with pytest.raises(InvalidTypeError, match=rf"UserIndex returned {what}; .* two arrays"):
        checked.query(VECTORS[:2], 3)


def test_slots_that_were_removed_are_wrong():
    checked = filled()
    checked.remove(SLOTS[:1])
    checked.index.change = lambda s, d: (np.zeros_like(s), d)
    with pytest.raises(ValueError, match="found slot 0, which is not in use"):
        checked.query(VECTORS[:2], 3)


def test_slots_of_an_addition_that_was_not_made_are_wrong():
    checked = filled()
    checked.index.errors["add", "before"] = OSError("disk")
    with pytest.raises(OSError, match="disk"):
        checked.add(SLOTS[5:8], VECTORS[5:8])
    checked.index.change = lambda s, d: (np.full_like(s, 5), d)
    with pytest.raises(ValueError, match="found slot 5, which is not in use"):
        checked.query(VECTORS[:2], 3)


def test_slots_of_a_removal_that_was_made_are_wrong():
    checked = filled()
    checked.index.errors["remove", "after"] = OSError("disk")
    with pytest.raises(OSError, match="disk"):
        checked.remove(SLOTS[1:3])
    checked.index.change = lambda s, d: (np.full_like(s, 2), d)
    with pytest.raises(ValueError, match="found slot 2, which is not in use"):
        checked.query(VECTORS[:2], 3)


def test_negative_distances_of_a_signed_metric():
    checked = filled(signed=True)
    checked.index.change = lambda s, d: (s, d - 9)
    assert checked.query(VECTORS[:1], 2)[1].tolist() == [[-9.0, -8.0]]


def test_only_the_first_of_repeated_slots_is_kept():
    checked = filled()
    checked.index.change = lambda s, d: (np.array([[4, 2, 4, 4, 2], [-1, 3, -1, 3, 1]]), d)
    slots, distances = checked.query(VECTORS[:2], 5)
    assert slots.tolist() == [[4, 2, -1, -1, -1], [-1, 3, -1, -1, 1]]
    assert distances.shape == (2, 5)


@pytest.mark.parametrize(
    "change",
    [
        lambda s, d: (np.asfortranarray(s), np.asfortranarray(d)),
        lambda s, d: [s.astype(np.int16), d.astype(np.float32)],
        lambda s, d: (s[::-1][::-1], d[::-1][::-1]),
        lambda s, d: (s.astype(">i8"), d.astype(">f8")),
    ],
)
def test_answers_of_any_layout_come_back_in_one(change):
    plain, checked = filled().query(VECTORS, 4), filled()
    checked.index.change = change
    for array, wanted in zip(checked.query(VECTORS, 4), plain, strict=True):
        assert array.dtype == wanted.dtype
        assert array.dtype.isnative
        assert array.flags.c_contiguous
        assert array.tolist() == wanted.tolist()


def test_answers_are_copies():
    given = []
    checked = filled()
    checked.index.change = lambda s, d: given.append((s, d)) or (s, d)
    answer = checked.query(VECTORS[:2], 3)
    for array, own in zip(answer, given[0], strict=True):
        assert not np.shares_memory(array, own)


def test_save_and_load():
    saved = filled().save()
    again = CheckedIndex(UserIndex(), False)
    again.load(saved)
    again.hold(saved["slots"])
    assert found_slots(again) == [0, 1, 2, 3, 4]
    again.index.errors["add", "after"] = OSError("disk")
    with pytest.raises(OSError, match="disk"):
        again.add(SLOTS[5:8], VECTORS[5:8])
    assert again.intact
    assert found_slots(again) == AFTER["add"]


def test_hold_replaces_the_record():
    checked = filled()
    checked.hold(SLOTS[1:5])
    with pytest.raises(ValueError, match="found slot 0, which is not in use"):
        found_slots(checked)
