"""Models in files, pickles and copies: the state of a model, from which another continues.

The state of a model is a header of plain values and named arrays. It may come from an
untrusted file: everything in it is checked before it is used.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from numpy.typing import NDArray

from dynhac._core import LazyColumn
from dynhac.input.errors import FileError, show
from dynhac.models.parameters import NOTHING_GIVEN, Given, cores
from dynhac.progress import ProgressOption, metered

if TYPE_CHECKING:
    from typing_extensions import Self

    from dynhac._core import Meter
    from dynhac.models.engine import IdEngine
    from dynhac.watch.parameters import WatchParameters

Source: TypeAlias = NDArray[Any] | LazyColumn
STATE_VERSION = 3
DAMAGED = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""What reading a state raises that is not right."""


def made(sources: Iterable[tuple[str, Source]]) -> Iterator[tuple[str, NDArray[Any]]]:
    """Give the arrays of columns, each when it is asked for."""
    for name, source in sources:
        yield name, source.make() if isinstance(source, LazyColumn) else source


class SavedModel:
    """A model that can be saved, loaded, pickled and copied."""

    __slots__ = ()

    _file_kind: ClassVar[str]
    _copied_as: ClassVar[type[SavedModel] | None] = None  # the class of copies; None: the same

    _engine: IdEngine

    def save(self, path: str | os.PathLike[str], *, progress: ProgressOption = None) -> None:
        """Write the model to a file. `load` returns a model that continues in the same way.

        The file is complete or, if an error is raised, not touched. Updates wait meanwhile. The
        file has no copy of a ``similarity`` that is a function, nor of an index of your own
        (``neighbors``): give them to `load` again.

        Parameters
        ----------
        path : str or path
            The file; an old one is replaced.
        progress : bool or callable, optional
            Whether to show how far the call is, or a function to tell; see `Progress`.

        Examples
        --------
        >>> import os, tempfile
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

        with metered(progress) as meter, self._still():
            threads = self._engine.parameters.thread_count
            write_file(path, self._file_kind, self._full_header(), self._columns(), meter, threads)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        threads: int | None = None,
        progress: ProgressOption = None,
    ) -> Self:
        """Return the model in a file that `save` has written.

        Everything in the file is checked before it is used, and the model is verified, see
        `verify`. So files from others are safe to load.

        Parameters
        ----------
        path : str or path
            The file.
        threads : int, optional
            Threads that a large update may use; by default as in the model that was saved.
        progress : bool or callable, optional
            Whether to show how far the call is, or a function to tell; see `Progress`.

        Raises
        ------
        FileError
            The file holds something else, or is damaged.
        """
        return cls._load_file(path, Given(threads), progress)

    @classmethod
    def _load_file(
        cls, path: str | os.PathLike[str], given: Given, progress: ProgressOption
    ) -> Self:
        from dynhac.files.format import about, read_file

        given.check()
        with metered(progress) as meter:
            header, arrays = read_file(path, cls._file_kind, meter, cores())
            with about(path):
                model = cls._from_state(header, arrays, given, meter)
                del arrays  # and the buffer of the whole file
                model._require_verified(meter)
        return model

    def _require_verified(self, progress: Meter) -> None:
        """Raise if the merges are not those of a hierarchy of the graph, or not good."""
        from dynhac.models.verification import verify

        epsilon, threshold, resolution, _ = self._engine.parameters.engine
        report = verify(self._engine, epsilon, threshold, resolution, progress)
        if not report.ok:
            raise FileError(f"the model is damaged: {' '.join(str(report).split())}")

    @contextmanager
    def _still(self) -> Iterator[None]:
        """Hold off updates; RuntimeError if the calling thread is in the middle of one."""
        with self._engine.lock, self._engine.guard:
            yield

    def _full_header(self) -> dict[str, Any]:
        return {"state": STATE_VERSION, **self._header()}

    def _header(self) -> dict[str, Any]:
        """Return the plain values of the state; for callers within `_still`."""
        raise NotImplementedError

    def _sources(self) -> Iterator[tuple[str, Source]]:
        """Give the columns of the state, made or to be made; for callers within `_still`."""
        raise NotImplementedError

    def _columns(self) -> Iterator[tuple[str, NDArray[Any]]]:
        """Give the arrays of the state one at a time; for callers within `_still`."""
        return made(self._sources())

    def _load(
        self,
        header: Mapping[str, Any],
        arrays: Mapping[str, NDArray[Any]],
        given: Given,
        progress: Meter | None,
    ) -> None:
        """Become, right after ``__new__``, the model that a state was taken from."""
        raise NotImplementedError

    def _check_watch(self, parameters: WatchParameters) -> None:
        """Raise if a watch of the model cannot have these parameters."""
        raise NotImplementedError

    @classmethod
    def _from_state(
        cls,
        header: Mapping[str, Any],
        arrays: Mapping[str, NDArray[Any]],
        given: Given = NOTHING_GIVEN,
        progress: Meter | None = None,
    ) -> Self:
        """Return the model that a state was taken from; FileError: it is not right."""
        version = header.get("state")
        if version != STATE_VERSION:
            raise FileError(
                f"the model has state version {show(version)}, and this version of dynhac reads "
                f"version {STATE_VERSION}"
            )
        model = cls.__new__(cls)
        try:
            model._load(header, arrays, given, progress)
            for watch in model._engine.watches:
                model._check_watch(watch._parameters)
        except FileError:
            raise
        except KeyError as error:
            raise FileError(f"the model is damaged: {error.args[0]} is missing") from error
        except DAMAGED as error:
            raise FileError(f"the model is damaged: {error}") from error
        return model

    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the header and the arrays of the model as it is now."""
        with self._still():
            return self._full_header(), dict(self._columns())

    def __reduce__(self) -> tuple[Any, ...]:
        return (self._copied_as or type(self))._from_state, self._state()

    def __copy__(self) -> Self:
        make, state = self.__reduce__()
        return make(*state)  # type: ignore[no-any-return]

    def __deepcopy__(self, memo: object) -> Self:
        return self.__copy__()
