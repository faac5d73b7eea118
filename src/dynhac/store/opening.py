"""dynhac.open: a model that lives in a directory."""

from __future__ import annotations

import os
import secrets
import warnings
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any, Literal, overload

from dynhac._core import Meter
from dynhac.input.columns import real_number, whole_number
from dynhac.input.errors import InvalidTypeError, show
from dynhac.models.parameters import GIVEN_AGAIN, Given, PointParameters
from dynhac.progress import ProgressOption, metered
from dynhac.store import snapshots
from dynhac.store.errors import RecoveryWarning, StoreError
from dynhac.store.files import HEAD, LOCK, LOG, Head, WriterLock, had_writer, read_head
from dynhac.store.follower import Follower
from dynhac.store.log import DATABASE_ERRORS, SHARED, WAL, Log, reading
from dynhac.store.models import DurableDynHAC, DurableGraphHAC
from dynhac.store.parameters import KINDS, PARAMETERS, same_parameters
from dynhac.store.payloads import Payloads
from dynhac.store.recovery import Recovered, Source, recover, warning_of
from dynhac.store.writer import Writer

OWN_NAMES = (LOG, WAL, SHARED, LOG + "-journal", LOCK, HEAD)


@overload
def open(
    path: str | os.PathLike[str],
    kind: Literal["points"],
    *,
    mode: Literal["w", "r"] = ...,
    durability: Literal["full", "normal"] = ...,
    snapshot_bytes: int | None = ...,
    snapshot_seconds: float = ...,
    progress: ProgressOption = ...,
    **parameters: Any,
) -> DurableDynHAC: ...


@overload
def open(
    path: str | os.PathLike[str],
    kind: Literal["graph"],
    *,
    mode: Literal["w", "r"] = ...,
    durability: Literal["full", "normal"] = ...,
    snapshot_bytes: int | None = ...,
    snapshot_seconds: float = ...,
    progress: ProgressOption = ...,
    **parameters: Any,
) -> DurableGraphHAC: ...


@overload
def open(
    path: str | os.PathLike[str],
    kind: str | None = ...,
    *,
    mode: str = ...,
    durability: str = ...,
    snapshot_bytes: int | None = ...,
    snapshot_seconds: float = ...,
    progress: ProgressOption = ...,
    **parameters: Any,
) -> DurableDynHAC | DurableGraphHAC: ...


def open(
    path: str | os.PathLike[str],
    kind: str | None = None,
    *,
    mode: str = "w",
    durability: str = "full",
    snapshot_bytes: int | None = None,
    snapshot_seconds: float = 300.0,
    progress: ProgressOption = None,
    **parameters: Any,
) -> DurableDynHAC | DurableGraphHAC:
    """Open a model that lives in a directory; make one if there is none.

    Every update is in a log on the disk before it returns, and every now and then the whole model
    is written to a snapshot in the background. After a crash, opening the store gives the model
    with all updates that were acknowledged.

    Parameters
    ----------
    path : str or path
        The directory.
    kind : {"points", "graph"}, optional
        Whether the model is a `DynHAC` or a `GraphHAC`; for a new store "points" by default.
    mode : {"w", "r"}, default "w"
        With "r" the model is only read, and `refresh` follows the writer. A store has one writer
        at a time and any number of readers.
    durability : {"full", "normal"}, default "full"
        With "full" an update has reached the disk when it returns. With "normal" it has reached the
        operating system: it survives the death of the process, but the last ones may be lost when
        the machine loses power.
    snapshot_bytes : int, optional
        How far the log grows before a snapshot is due (default: 16 MiB, or half of the size of the
        last snapshot if that is more).
    snapshot_seconds : float, default 300
        After what time one is due if there is anything new.
    progress : bool or callable, optional
        Whether to show how far the snapshot is loaded and the log is replayed, or a function to
        tell; see `Progress`.
    **parameters
        Those of `DynHAC` or `GraphHAC`. For a store that exists they may be left out, and must be
        what it was made with if they are given, but for ``threads``. A ``similarity`` that is a
        function, or an index of your own, must be given every time.

    Returns
    -------
    DurableDynHAC or DurableGraphHAC
        A model with all methods of `DynHAC` or `GraphHAC`, and `close`, `batch`, `snapshot`,
        `refresh`, `changes`, `stats`, `payloads`, `set_payload`, `find`, `update_number`, `path`.

    Raises
    ------
    StoreError
        The store is damaged, or of a version not known here, or the directory holds other things;
        a `StoreLockedError` if another writer has it open.
    ValueError
        A parameter that is wrong, or not that of the store.

    Warns
    -----
    RecoveryWarning
        Something was damaged, and what could be done was done; the message says what is lost.

    Notes
    -----
    Making and closing a watch are updates: they are in the log, and count in `update_number`. After
    opening, `watches` lists the watches, and ``watch`` with the same parameters returns the one
    that there is. A reader has the watches of the writer, and may make others for itself.

    Examples
    --------
    >>> import tempfile, dynhac
    >>> folder = tempfile.TemporaryDirectory()
    >>> with dynhac.open(folder.name, n_neighbors=3) as model:
    ...     _ = model.insert([[0.0, 0.0], [0.1, 0.0], [5.0, 5.0]])
    >>> with dynhac.open(folder.name) as model:
    ...     _ = model.insert([5.0, 5.1])
    ...     model.labels(0.5).tolist(), model.update_number
    ([0, 0, 1, 1], 2)
    >>> folder.cleanup()
    """
    for name, value, allowed in (
        ("kind", kind, (None, *KINDS)),
        ("mode", mode, ("w", "r")),
        ("durability", durability, ("full", "normal")),
    ):
        if value not in allowed:
            wanted = " or ".join(repr(word) for word in allowed if word is not None)
            raise ValueError(f"{name} is {show(value)}; it must be {wanted}")
    if snapshot_bytes is not None:
        snapshot_bytes = whole_number(snapshot_bytes, "snapshot_bytes", 1)
    limits = snapshot_bytes, real_number(snapshot_seconds, "snapshot_seconds", above=True)
    directory = os.path.abspath(os.fspath(path))
    if not isinstance(directory, str):
        raise InvalidTypeError(f"path is {show(path)}; it must be a str or a path of str")
    if os.path.exists(directory) and not os.path.isdir(directory):
        raise StoreError(f"{directory} is a file; a store is a directory")
    try:
        if mode == "r":
            with metered(progress) as meter:
                return _open_to_read(directory, kind, durability, meter, parameters)
        with metered(progress) as meter:
            return _open_to_write(directory, kind, durability, limits, meter, parameters)
    except DATABASE_ERRORS as error:
        raise StoreError(f"{os.path.join(directory, LOG)}: {error}") from error


def _open_to_read(
    directory: str,
    kind: str | None,
    durability: str,
    meter: Meter,
    parameters: Mapping[str, Any],
) -> DurableDynHAC | DurableGraphHAC:
    if not os.path.exists(os.path.join(directory, LOG)):
        raise StoreError(f"{directory} holds no store; there is nothing to read")
    with reading(directory) as log:
        about = log.about()
    if about is None:
        raise StoreError(f"{directory} holds no store; there is nothing to read")
    follower = Follower(_source(directory, about, kind, parameters), durability)
    return follower.start(meter)


def _open_to_write(
    directory: str,
    kind: str | None,
    durability: str,
    limits: tuple[int | None, float],
    meter: Meter,
    parameters: Mapping[str, Any],
) -> DurableDynHAC | DurableGraphHAC:
    path = os.path.join(directory, LOG)
    if not os.path.exists(path):
        _require_room(directory)
        _read_parameters(kind or "points", parameters)  # before there is a directory
        os.makedirs(directory, exist_ok=True)
    with ExitStack() as opened:
        lock_file = WriterLock(directory)
        opened.callback(lock_file.close)
        if not _size(directory, LOG):
            _require_nothing_lost(directory)  # before SQLite drops a -wal file without its database
        log = Log(directory, durability)
        opened.callback(log.close)
        about = log.about()
        if about is None:
            _require_room(directory)
            _require_nothing_lost(directory)
            Head(directory, 0).close()  # a log without a head has lost it
            about = _create(log, kind or "points", parameters)
        lock_file.name_owner()
        log.check()
        source = _source(directory, about, kind, parameters)
        recovered = recover(source, log, meter)
        if recovered.messages:
            warnings.warn(warning_of(recovered, directory), RecoveryWarning, stacklevel=4)
        head = _put_in_order(directory, log, recovered)
        opened.callback(head.close)
        lost = Payloads(log).check(recovered.position.number, recovered.model._engine.holds)
        if lost:
            warnings.warn(f"{directory}: {'; '.join(lost)}", RecoveryWarning, stacklevel=4)
        writer = Writer(source, durability, limits, (lock_file, log, head))
        writer.position = recovered.position
        writer.snapshots.loaded(recovered.snapshot, recovered.replayed)
        writer.start(recovered.model)
        opened.pop_all()
    return recovered.model


def _require_room(directory: str) -> None:
    """Raise if a directory without a log is no place for a new store."""
    if not os.path.isdir(directory):
        return
    found = snapshots.numbers(directory)
    if found:
        raise StoreError(
            f"{directory} has snapshots but no {LOG}; {snapshots.path_of(directory, found[0])} "
            "can be read with load"
        )
    others = sorted(set(os.listdir(directory)).difference(OWN_NAMES))
    if others:
        raise StoreError(
            f"{directory} is not a store, and not empty: it holds {show(others[0])}; give a new or "
            "empty directory"
        )


def _require_nothing_lost(directory: str) -> None:
    """Raise if a directory without a log, or with an empty one, had a store; under its lock."""
    if read_head(directory):
        had = f"had updates up to {read_head(directory)}"
    elif had_writer(directory):
        had = "had a store"
    elif not _size(directory, LOG) and (_size(directory, WAL) or _size(directory, SHARED)):
        had = f"has a file {WAL if _size(directory, WAL) else SHARED}"
    else:
        return
    raise StoreError(
        f"{directory} {had}, but its {LOG} is gone or empty; restore it from a backup, or delete "
        "the directory to begin anew"
    )


def _size(directory: str, name: str) -> int:
    """Return the size of a file, 0 if there is none."""
    path = os.path.join(directory, name)
    return os.path.getsize(path) if os.path.exists(path) else 0


def _read_parameters(kind: str, parameters: Mapping[str, Any]) -> Any:
    """Return the parameters of a new store, or raise."""
    checked = PARAMETERS[kind].read(**parameters)
    if isinstance(checked, PointParameters):
        checked.require_empty_index()
    return checked


def _create(log: Log, kind: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    about = {
        "id": secrets.token_hex(16),
        "kind": kind,
        "parameters": _read_parameters(kind, parameters).plain(),
    }
    log.create(about)
    return about


def _source(
    directory: str, about: Mapping[str, Any], kind: str | None, parameters: Mapping[str, Any]
) -> Source:
    """Return how to make the models of a store; ValueError: the parameters are not its own."""
    kept_kind, kept = about["kind"], about["parameters"]
    if kind is not None and kind != kept_kind:
        raise ValueError(f"kind is {kind!r}, but the store holds a model of kind {kept_kind!r}")
    made = KINDS[kept_kind]
    checked = same_parameters(kept_kind, kept, parameters)
    again = {name: parameters[name] for name in GIVEN_AGAIN if name in kept and kept[name] is None}
    given = Given(parameters.get("threads"), **again)
    return Source(
        directory,
        about["id"],
        made._file_kind,
        lambda: made._new(checked),
        lambda header, arrays, meter: made._from_state(header, arrays, given, meter),
    )


def _put_in_order(directory: str, log: Log, recovered: Recovered) -> Head:
    """Make the files say what the model that was recovered says."""
    number = recovered.position.number
    for damaged in recovered.damaged:
        path = snapshots.path_of(directory, damaged)
        os.replace(path, path + ".damaged")
    snapshots.drop_partial(directory)
    log.retract(number)
    last = log.extent().last
    if last < number:  # a snapshot has more than the log, of which the end is lost
        log.prune(last)
    return Head(directory, number)
