"""A neighbour index of the user's own that fails as told."""

from dynhac.neighbors import ExactIndex


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
