"""The compiled engine, and what points need of compiled code.

Of the package, ``keyed``, ``cuts``, ``verification``, ``similarity``, ``neighbors.kd`` and, for
points, ``model``, ``pointgraph``, ``store`` and ``vectors`` import it; other modules name its types
in annotations only. Ids are int64 *keys* here; the package translates the user's strings.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynhac.models.modelgraph import ModelGraph
from dynhac.neighbors import NeighborIndex

class BatchError(Exception):
    """A batch that was rejected; nothing has changed. ``args == (kind, index, other)``.

    kind                 index into           other
    unknown_remove       remove               -
    duplicate_remove     remove               index of the first occurrence
    present              add                  -
    duplicate_add        add                  index of the first occurrence
    unknown_endpoint     u, v, w              0: u is unknown, 1: v is unknown
    self_loop            u, v, w              -
    weight_invalid       u, v, w              -          (nan, inf, zero or negative)
    weight_underflow     u, v, w              -          (rounds to 0 at the resolution)
    weight_overflow      u, v, w              -          (does not fit at the resolution)
    weight_conflict      u, v, w              index of the earlier edge with another weight
    total_overflow       u, v, w              -          (the sum of all weights does not fit)
    unknown_edge         remove_u, remove_v   -          (both ends exist, the edge does not)
    unknown_edge_end     remove_u, remove_v   0 or 1: which end is unknown
    too_many             add                  -          (more vertices than handles of 32 bits)
    unknown              keys looked up       -
    """

class NodeVersions(NamedTuple):
    """Dendrogram nodes that an update removed or created (arrays of one length)."""

    node_id: NDArray[np.int64]
    similarity: NDArray[np.float64]
    size: NDArray[np.int64]
    passed_on: NDArray[np.bool_]  # the id stands on both sides: a cluster and its successor

class ChangeData:
    levels: int  # levels visited
    groups_rerun: int
    vertices_rerun: int
    edges_rerun: int  # adjacency entries read in the groups that were rerun
    edges_changed: int  # edges inserted, removed or reweighted, on all levels
    nodes_created: int
    nodes_removed: int
    seconds: float
    def created(self) -> NodeVersions: ...
    def removed(self) -> NodeVersions: ...

class Snapshot(NamedTuple):
    """One consistent state. Leaf i is keys[i]; merge j has index n + j; children come first."""

    version: int
    keys: NDArray[np.int64]  # in order of insertion
    children: NDArray[np.int64]  # (m, 2)
    similarity: NDArray[np.float64]  # linkage of each merge
    min_similarity: NDArray[np.float64]  # smallest linkage in the subtree; never increases with j
    size: NDArray[np.int64]  # number of leaves
    node_ids: NDArray[np.int64]  # stable
    level: NDArray[np.int32]  # the level on which the merge was made

class Path(NamedTuple):
    """The merges above a leaf, from the first one up."""

    node_ids: NDArray[np.int64]
    similarity: NDArray[np.float64]
    size: NDArray[np.int64]

class Meeting(NamedTuple):
    """How two leaves come together. Paths end where they meet, or at the roots if they do not."""

    a: Path
    b: Path
    meet: bool
    least: float  # the smallest linkage under the node where they meet

class WatchStep:
    """What one update did to the clusters of a watch; -1 stands for no cluster.

    The arrays are made anew each time.
    """

    version: int
    cluster: NDArray[np.int64]  # clusters that leaves left or joined, by id
    before: NDArray[np.int64]  # their sizes; 0: not there
    now: NDArray[np.int64]
    source: NDArray[np.int64]  # moves of leaves: from cluster
    target: NDArray[np.int64]  # to cluster
    end: NDArray[np.int64]  # of the keys of each move, which begin where those before it end
    keys: NDArray[np.int64]
    def drop_keys(self) -> None: ...

class WatchClusters(NamedTuple):
    ids: NDArray[np.int64]  # ascending
    sizes: NDArray[np.int64]
    roots: NDArray[np.int64]  # handles of nodes, as restore_watch takes them
    next: int  # the id that the next new cluster will get

class KdTree:
    def __init__(self, dimension: int) -> None: ...  # 1 to 8
    def __len__(self) -> int: ...
    # Slots that cannot be added or removed: KeyError. Vectors that are not finite: ValueError.
    def add(self, slots: NDArray[np.int64], vectors: NDArray[np.float32]) -> None: ...
    def remove(self, slots: NDArray[np.int64]) -> None: ...
    def query(
        self, vectors: NDArray[np.float32], k: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]: ...
    def points(self) -> tuple[NDArray[np.int64], NDArray[np.float32]]: ...  # slots ascending

class Engine:
    def __init__(
        self, epsilon: float, threshold: float, resolution: float, threads: int
    ) -> None: ...
    def __len__(self) -> int: ...
    @property
    def version(self) -> int: ...  # grows by one with every update that changed something
    def contains(self, key: int) -> bool: ...
    def update(
        self,
        remove: NDArray[np.int64],
        add: NDArray[np.int64],
        remove_u: NDArray[np.int64],
        remove_v: NDArray[np.int64],
        u: NDArray[np.int64],
        v: NDArray[np.int64],
        w: NDArray[np.float64],
    ) -> ChangeData:
        """Apply one batch, all or nothing: removals, then additions, then weights to set.

        Arrays are contiguous and of the dtypes above. Raises BatchError, MemoryError or
        KeyboardInterrupt, each with the state as before the call.
        """
    def keys(self) -> NDArray[np.int64]: ...  # in order of insertion, as in Snapshot
    def edges(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """Every edge once: the keys of its ends, and its weight."""
    def degrees(self, keys: NDArray[np.int64]) -> NDArray[np.int64]: ...
    def edges_of(
        self, keys: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """The edges at every given key: that key, the key of the other end, the weight."""
    def meeting(self, a: int, b: int) -> Meeting: ...
    def add_watch(self, theta: float, min_size: int) -> int: ...  # a handle
    def restore_watch(
        self,
        theta: float,
        min_size: int,
        ids: NDArray[np.int64],
        roots: NDArray[np.int64],
        next: int,
    ) -> int: ...
    def watch_handles(self) -> list[int]: ...
    def remove_watch(self, handle: int) -> None: ...
    def steps(self, handle: int) -> list[WatchStep]: ...  # not dropped yet, the oldest first
    def drop_steps(self, handle: int, count: int) -> None: ...
    def watch_labels(self, handle: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """All keys in order of insertion, and their clusters."""
    def watch_clusters(self, handle: int) -> WatchClusters: ...
    def cluster_of(self, handle: int, key: int) -> int: ...
    def members(self, handle: int, cluster: int) -> NDArray[np.int64]: ...
    def snapshot(self) -> Snapshot: ...
    def level_sizes(self) -> list[tuple[int, int]]: ...  # (vertices, edges) of each level
    def memory(self) -> int: ...  # bytes held by the engine
    def export(
        self,
    ) -> tuple[Snapshot, NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], list[str]]:
        """One state: the snapshot; every edge once, as leaf indices u, v and fixed-point weight;
        and what an audit of the caches found wrong, one line each.
        """
    def state_columns(self) -> list[str]: ...  # names of the columns that hold the whole state
    def save_column(self, index: int) -> NDArray[Any]:
        """Return one of them, of uint32, int64 or float64. No update may come in between."""
    @staticmethod
    def load(
        epsilon: float,
        threshold: float,
        resolution: float,
        threads: int,
        columns: dict[str, NDArray[Any]],
    ) -> Engine:
        """Return an engine that goes on where the one with these columns was.

        Raises ValueError if they are not the state of an engine with these parameters.
        """

class CheckResult(NamedTuple):
    merges: int
    bad_merges: int
    worst_goodness: float  # largest wmax / min(M, linkage) of a merge; <= 1 + epsilon if all good
    wrong_similarities: int
    heavy_edges_left: int

def check(
    n: int,
    u: NDArray[np.int64],
    v: NDArray[np.int64],
    w: NDArray[np.int64],
    children: NDArray[np.int64],
    similarity: NDArray[np.float64],
    level: NDArray[np.int32],
    epsilon: float,
    threshold: float,
    resolution: float,
) -> CheckResult:
    """Replay the merges level by level on the plain graph and judge every one."""

def cut(
    n: int,
    children: NDArray[np.int64],
    min_similarity: NDArray[np.float64],
    thresholds: NDArray[np.float64],
) -> NDArray[np.int64]:
    """(len(thresholds), n) labels 0..K-1, numbered by the first leaf of each cluster."""

def one_vector(values: object, dimension: int) -> NDArray[np.float32] | None:
    """A copy, as one row, of a plain array of float32 or float64 that is finite; None otherwise."""

class ReentryGuard:
    """A context that cannot be entered twice, for use under a lock that its thread can take again.

    Entering it while it is held is a RuntimeError with the message.
    """

    def __init__(self, message: str) -> None: ...
    @property
    def held(self) -> bool: ...
    def __enter__(self) -> None: ...
    def __exit__(self, type: object, error: object, traceback: object) -> None: ...

class SimilarityRule:
    def __init__(self, name: str, sigma: float) -> None: ...
    def __call__(self, distances: NDArray[np.float64]) -> NDArray[np.float64]: ...

class PointTable:
    """Points by slot: their keys, vectors, times and places in the order of arrival.

    Times, if points have them, are all ints or all floats.

    Not to be used by two threads at a time.
    """

    def __init__(self, dimension: int, timed: bool, floats: bool) -> None: ...
    @staticmethod
    def load(
        keys: NDArray[np.int64],
        arrival: NDArray[np.int64],
        vectors: NDArray[np.float32],
        times: NDArray[np.int64] | NDArray[np.float64] | None,
        next_arrival: int,
        next_id: int,
    ) -> PointTable:
        """Return the table with this state; ValueError: it is not the state of a table."""
    def save(
        self,
    ) -> tuple[
        NDArray[np.int64],
        NDArray[np.int64],
        NDArray[np.float32],
        NDArray[np.int64] | NDArray[np.float64] | None,
    ]:
        """Return keys, arrival (-1: free), vectors and times of the slots below ``top``."""
    def __len__(self) -> int: ...
    @property
    def dimension(self) -> int: ...
    @property
    def top(self) -> int: ...  # slots from here on were never in use
    @property
    def version(self) -> int: ...  # grows with every update that was made
    @property
    def next_arrival(self) -> int: ...
    @property
    def next_id(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    def used(self) -> NDArray[np.int64]: ...  # ascending
    def in_order(self) -> NDArray[np.int64]: ...  # of arrival
    def oldest(
        self, count: int, before: int | float | None, but: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return the slots of the ``count`` oldest points, and of all from before a time.

        The oldest first, by (time, arrival), without those of ``but``.
        """
    @property
    def latest(self) -> int | float | None: ...  # the latest time of a point since `recode`
    def times_of(
        self, slots: NDArray[np.int64]
    ) -> NDArray[np.int64] | NDArray[np.float64] | None: ...  # None: points have no times
    def recode(self, floats: bool) -> None:
        """Let times that are ints be floats, which must be able to stand for them, or back."""
    def arrival(self, slot: int) -> int: ...  # -1: not in use
    def arrivals_of(self, slots: NDArray[np.int64]) -> NDArray[np.int64]: ...
    def keys_of(self, slots: NDArray[np.int64]) -> NDArray[np.int64]: ...
    def vectors_of(self, slots: NDArray[np.int64]) -> NDArray[np.float32]: ...
    def find(self, keys: NDArray[np.int64]) -> NDArray[np.int64]: ...  # -1: not there
    def give_back(self) -> None: ...  # what an update has reserved, if anything

class OnePoint(ChangeData):
    """What an update of a single point did; ``seconds`` are those in the engine."""

    @property
    def id(self) -> int | str: ...
    @property
    def inserted(self) -> bool: ...  # or else removed
    @property
    def expired(self) -> NDArray[np.int64] | list[str]: ...  # ids; an array if there are none
    @property
    def repaired(self) -> NDArray[np.int64] | list[str]: ...
    @property
    def seconds_search(self) -> float: ...
    @property
    def seconds_whole(self) -> float: ...

class PointUpdater:
    """Takes updates of points through a neighbour index to a table and an engine.

    ``similarity`` is a rule or a function; ``check``, if there is one, is called with what the
    index answered, the number of rows and of columns, the steps and the slots that leave, and
    returns the arrays to go on with; then the index gets copies of everything. Edges that weigh
    less than ``least`` are left out.

    The rest is for `insert` and `remove`. Ids are keys or, if there are ``names``, str, of which
    these tell the keys: ``claim`` of a new one, ``doubt`` of one that goes. Of keys, ``let_go``
    tells the ids when they go, and ``ids_of`` otherwise. Beyond ``max_points``, the oldest go.
    ``guard`` is held meanwhile; ``follow`` is called in the end, with a new id or None, if there
    are names or watches.
    """

    def __init__(
        self,
        table: PointTable,
        engine: Engine,
        index: NeighborIndex | None,
        similarity: SimilarityRule | Callable[[NDArray[np.float64]], NDArray[np.float64]],
        check: Callable[..., tuple[Any, Any]] | None,
        names: ModelGraph | None,
        guard: ReentryGuard,
        follow: Callable[[object], None],
        n_neighbors: int,
        least: float,
        repair: bool,
        max_points: int,
    ) -> None: ...
    def search(
        self,
        vectors: NDArray[np.float32] | None,
        times: NDArray[np.int64] | NDArray[np.float64] | None,
        arrivals: NDArray[np.int64],
        next_arrival: int,
        next_id: int,
        leaving: NDArray[np.int64],
    ) -> None:
        """Reserve slots for vectors, change the index and find the edges that there will be.

        ``arrivals`` are the places of the vectors in the order of arrival, the next ones if empty;
        after the update the counters stand as given. None: no points come, and no counter moves.
        """
    def finish(self, keys: NDArray[np.int64]) -> ChangeData:
        """Let table and engine take it, the new points under these keys.

        All or nothing; raises what `Engine.update` does.
        """
    def insert(
        self,
        values: object,
        id: object,
        time: int | float | None,
        before: int | float | None,
    ) -> int | str | None:
        """Do both for one plain vector, with its id, or the next, which is returned.

        Points from before a time are let go. None: it is not so simple, and nothing was done.
        """
    def remove(self, id: object) -> OnePoint | None:
        """Do both for a point to delete. None: this is not the id of a point."""
    @property
    def inserted(self) -> OnePoint: ...  # what the last `insert` did; the same object every time
    @property
    def open(self) -> bool: ...  # whether an `insert` or `remove` waits to be finished
    def close(self) -> None: ...
    most_points: int  # that `insert` may make of it; 0 at first
    @property
    def made(self) -> bool: ...  # whether the last update was finished
    @property
    def steps(self) -> list[tuple[bool, NDArray[np.int64]]]:
        """What the last update did to the index: whether it added, and the slots. A copy."""
    def pop_step(self) -> None: ...  # forgets the last step
    @property
    def unsure(self) -> bool: ...  # whether the last step was made
    @property
    def seconds_search(self) -> float: ...
    def edges(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """What the last `finish` was to let in: the keys of both ends, and the weights."""
    @property
    def slots(self) -> NDArray[np.int64]: ...  # of the new points
    @property
    def leaving(self) -> NDArray[np.int64]: ...
    @property
    def repaired(self) -> NDArray[np.int64]: ...

def fail_allocation(after: int) -> None:
    """For tests: allocation number ``after`` from now (0: the next) fails; -1 switches this off."""
