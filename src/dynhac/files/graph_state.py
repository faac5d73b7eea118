"""A graph in a file, a pickle or a copy: one moment of it, from which another one goes on.

The state is a header of plain values and named arrays. The header holds what never changes, so it
goes with the arrays of any moment. The arrays are the columns of `KeyedEngine.columns`: the
engine's, the names if ids are str, and the watches. Both may come from a file that somebody else
has made: nothing in them is believed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from dynhac.input.columns import real_number, resolution_of_weights, whole_number
from dynhac.input.errors import FileError, show
from dynhac.models.keyed import KeyedEngine

if TYPE_CHECKING:
    from typing_extensions import Self

    from dynhac._core import Engine
    from dynhac.dendrogram.dendrogram import Dendrogram

MOST_THREADS = 1024
STATE_VERSION = 1


class Persistent:
    """The parts of a `GraphHAC`, and what it knows about files, pickles and copies."""

    __slots__ = ("_cache", "_engine", "_epsilon", "_keyed", "_threads", "_threshold")

    _epsilon: float
    _threshold: float
    _threads: int
    _keyed: KeyedEngine
    _engine: Engine
    _cache: Dendrogram | None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file, from which `load` makes one that goes on in the same way.

        The file is complete or, if an error is raised, not touched. Updates wait meanwhile.

        Parameters
        ----------
        path : str or path
            An old file is replaced.

        Examples
        --------
        >>> import tempfile, os
        >>> from dynhac import GraphHAC
        >>> g = GraphHAC()
        >>> _ = g.add([1, 2, 3], edges=([1, 2], [2, 3], [0.9, 0.2]))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     g.save(os.path.join(folder, "graph.dynhac"))
        ...     again = GraphHAC.load(os.path.join(folder, "graph.dynhac"))
        >>> again.labels(0.5).tolist()
        [0, 0, 1]
        """
        from dynhac.files.format import write_file

        with self._still() as columns:
            write_file(path, "GraphHAC", self._header(), columns)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, threads: int | None = None) -> Self:
        """Return the model in a file that `save` has written.

        Everything in the file is checked before it is used, so files from others are safe to load.
        Whether its merges are good is another matter, which `verify` answers.

        Parameters
        ----------
        path : str or path
            The file.
        threads : int, optional
            Threads that a large update may use; by default as in the model that was saved.

        Raises
        ------
        FileError
            The file holds something else, or is damaged.
        """
        from dynhac.files.format import about, read_file

        if threads is not None:
            threads = whole_number(threads, "threads", 1, MOST_THREADS)
        header, arrays = read_file(path, "GraphHAC")
        with about(path):
            return cls._from_state(header, arrays, threads)

    def _header(self) -> dict[str, Any]:
        return {
            "state": STATE_VERSION,
            "epsilon": self._epsilon,
            "threshold": self._threshold,
            "resolution": self._keyed.resolution,
            "threads": self._threads,
        }

    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Everything, as a header of plain values and named arrays: one moment of the model."""
        with self._still() as columns:
            return self._header(), dict(columns)

    @contextmanager
    def _still(self) -> Iterator[Iterator[tuple[str, NDArray[Any]]]]:
        """A time without updates, and the arrays of the model as they are then."""
        keyed = self._keyed
        with keyed.lock, keyed.guard, closing(keyed.columns()) as columns:
            yield columns

    @classmethod
    def _from_state(
        cls,
        header: Mapping[str, Any],
        arrays: Mapping[str, NDArray[Any]],
        threads: int | None = None,
    ) -> Self:
        """Return the model that `_state` was taken from. FileError: it is not one's state."""
        model = cls.__new__(cls)
        keyed, model._epsilon, model._threshold, model._threads = _restore(header, arrays, threads)
        model._keyed, model._engine, model._cache = keyed, keyed.engine, None
        return model

    def __reduce__(self) -> tuple[Any, ...]:
        return self._from_state, self._state()

    def __copy__(self) -> Self:
        return self._from_state(*self._state())

    def __deepcopy__(self, memo: object) -> Self:
        return self._from_state(*self._state())


def _restore(
    header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], threads: int | None
) -> tuple[KeyedEngine, float, float, int]:
    """Return the engine, epsilon, threshold and threads; FileError: something is not right.

    ``threads`` is a valid number, or None for the number in the header.
    """
    version = header.get("state")
    if version != STATE_VERSION:
        raise FileError(
            f"the graph has state version {show(version)}, and this version of dynhac reads "
            f"version {STATE_VERSION}"
        )
    try:
        epsilon = real_number(header["epsilon"], "epsilon")
        threshold = real_number(header["threshold"], "threshold")
        resolution = resolution_of_weights(header["resolution"])
        saved = whole_number(header["threads"], "threads", 1, MOST_THREADS)
        chosen = saved if threads is None else threads
        keyed = KeyedEngine.load(epsilon, threshold, resolution, chosen, arrays)
    except KeyError as error:
        raise FileError(f"the graph is damaged: {error.args[0]} is missing") from error
    except (TypeError, ValueError) as error:
        raise FileError(f"the graph is damaged: {error}") from error
    return keyed, epsilon, threshold, chosen
