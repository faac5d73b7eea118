"""Neighbour indexes written in Python: one of the user's own that fails as told, and "exact"."""

from dynhac._core import PythonIndex
from dynhac.neighbors import ExactIndex


def exact_in_python(monkeypatch):
    """Let models call an `ExactIndex`, as they call usearch, instead of its compiled part."""
    for module in ("dynhac.models.index_choice", "dynhac.files.point_state"):
        monkeypatch.setattr(
            f"{module}.for_core", lambda index, _: PythonIndex(index, checks_itself=False)
        )


class Failing(ExactIndex):
    """An index that fails as told: every error is raised once."""

    def __init__(self):
        super().__init__()
        self.errors = {}  # by (method, "before" or "after" its work)

    def _call(self, name, *arguments):
        self._fail(name, "before")
        result = getattr(ExactIndex, name)(self, *arguments)
        self._fail(name, "after")
        return result

    def _fail(self, name, when):
        error = self.errors.pop((name, when), None)
        if error is not None:
            raise error

    def add(self, slots, vectors):
        self._call("add", slots, vectors)

    def remove(self, slots):
        self._call("remove", slots)

    def query(self, vectors, k):
        return self._call("query", vectors, k)
