"""The compiled core: the engine, ids, neighbour indexes, points.

Ids are int64 *keys* in the engine. An id column is an array of int64, or a list of str.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dynhac.input.batches import GraphBatch, PointIds
from dynhac.input.columns import IdColumn

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Vectors = NDArray[np.float32]

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
    unknown_id           deleted              -
    duplicate_delete     deleted              index of the first occurrence
    present_id           ids                  -
    duplicate_id         ids                  index of the first occurrence
    inexact_times        -                    -          (ints that are not exact as floats)

    An edge between points that is rejected has two more: the ids of its ends, and its weight.
    """

class Reporter(Protocol):
    """What a meter reports to."""

    def __call__(
        self, phase: str, done: int, total: int | None, unit: str, seconds: float, ended: bool, /
    ) -> None: ...
    def clear(self) -> None: ...  # a phase that was reported does not reach its end

class Meter:
    """Reports the progress of long computations, and handles signals in them.

    `start` makes what it reports to, or returns None; it is called when there is something to
    report, `delay` seconds after the meter was made at the earliest.
    """

    def __init__(self, start: Callable[[], Reporter | None] | None, delay: float = 0.5) -> None: ...
    def begin(self, phase: str, unit: str, total: int | None) -> None: ...  # ends the one before
    def advance(self, amount: int) -> None: ...
    def end(self) -> None: ...
    def __enter__(self) -> Meter: ...
    def __exit__(self, type: object, error: object, traceback: object) -> None: ...

Reports: TypeAlias = Meter | Callable[[], Reporter | None] | None
"""What a long call reports to: nothing, a meter, or what a meter is made with."""

class NodeVersions(NamedTuple):
    """Dendrogram nodes that an update removed or created (arrays of one length)."""

    node_id: Ints
    similarity: Floats
    size: Ints
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
    keys: Ints  # in order of insertion
    children: Ints  # (m, 2)
    similarity: Floats  # linkage of each merge
    min_similarity: Floats  # smallest linkage in the subtree; never increases with j
    size: Ints  # number of leaves
    node_ids: Ints  # stable
    level: NDArray[np.int32]  # the level on which the merge was made

class Path(NamedTuple):
    """The merges above a leaf, from the first one up."""

    node_ids: Ints
    similarity: Floats
    size: Ints

class Meeting(NamedTuple):
    """How two leaves come together. Paths end where they meet, or at the roots if they do not."""

    a: Path
    b: Path
    meet: bool
    least: float  # the smallest linkage under the node where they meet

class Nearest(NamedTuple):
    """The nearest points of vectors, in rows; row i has counts[i], and then what has no meaning."""

    keys: Ints
    distances: Floats
    similarities: Floats
    counts: Ints

class WatchStep:
    """What one update did to the clusters of a watch; -1 means no cluster.

    The arrays are made anew each time.
    """

    version: int
    clock: int | float | None  # of the model; None without timestamps, and for the first step
    cluster: Ints  # clusters that leaves left or joined, by id
    before: Ints  # their sizes; 0: not there
    now: Ints
    source: Ints  # moves of leaves: from cluster
    target: Ints  # to cluster
    end: Ints  # of the keys of each move, which begin where those before it end
    keys: Ints
    def drop_keys(self) -> None: ...

class ReportedState(NamedTuple):
    """What a patient watch reports, and what waits to be reported."""

    usual: Ints  # of every raw cluster, by id: the reported cluster of its points that are not held
    reported: Ints  # and the reported cluster that it is matched with; -1: it is beginning
    held_key: Ints  # ascending
    held_reported: Ints
    waiting: Ints  # reported clusters that are ending, then raw clusters that are beginning
    since: Ints  # version or clock; the bits of a float if kind is 1
    kind: Ints
    next: int  # the id that the next new cluster will get

class ClusterSummary(NamedTuple):
    """What is in the clusters of a flat clustering; a mean over nothing is nan."""

    # By cluster.
    start: Ints  # of its members; one more entry at the end
    cohesion: Floats  # mean similarity over all pairs inside
    density: Floats  # share of these pairs that have an edge
    similarity: Floats  # smallest linkage in the subtree of its node
    node_ids: Ints  # of the merge that has exactly these leaves; -1: there is none
    # By member: the most typical first, the earlier one first among equals.
    members: Ints  # leaves
    typicality: Floats  # mean similarity to the other members
    outlier: Floats
    inside_share: Floats  # of the weight of all edges of the point
    # The nearest other clusters of every cluster: the highest linkage first, then by number.
    nearest_start: Ints  # one more entry at the end
    nearest: Ints
    nearest_linkage: Floats

class WatchState(NamedTuple):
    """All that restore_watch needs."""

    ids: Ints  # of the raw clusters, ascending
    roots: Ints  # handles of nodes
    next: int
    reported: ReportedState | None  # None: no patience

class LazyColumn:
    """A column of the state of a model. No update may come before it is made."""

    def make(self) -> NDArray[Any]: ...

class ForkedColumns:
    """Columns that a forked child makes: of the state at the moment when this object is made.

    OSError: there can be no child.
    """

    def __init__(self, columns: list[LazyColumn]) -> None: ...
    @staticmethod
    def supported() -> bool: ...  # whether this system has fork()
    def next(self, progress: Reports = None) -> NDArray[Any]:
        """Return the next column. OSError: the child has ended before its time."""
    def close(self) -> None: ...  # ends the child

class IdTable:
    """Text ids and their keys."""

    def __init__(self) -> None: ...
    def __len__(self) -> int: ...
    @property
    def used(self) -> bool: ...  # whether ids are str
    @property
    def next_key(self) -> int: ...
    def keys(self, texts: list[str]) -> Ints: ...  # -1: it has none
    def texts(self, keys: Ints) -> list[str]: ...  # KeyError: one is gone
    def state_columns(self, engine: Engine) -> list[tuple[str, LazyColumn]]:
        """Return the texts of an engine's keys as UTF-8, one after the other, and their lengths."""
    @staticmethod
    def load(keys: Ints, bytes: NDArray[np.uint8], lengths: Ints, next_key: int) -> IdTable:
        """Return a table of these keys and texts; ValueError: they are not right."""

class NeighborIndex:
    """What the core calls for nearest neighbours."""

class PythonIndex(NeighborIndex):
    """An index written in Python; ``checks_itself``: it has an attribute ``intact``."""

    def __init__(self, index: object, checks_itself: bool) -> None: ...
    @property
    def object(self) -> Any: ...

IndexChoice = tuple[NeighborIndex | None, str | None, int]

class KdTree(NeighborIndex):
    def __init__(self, dimension: int, threads: int = 1) -> None: ...  # 1 to 8
    def __len__(self) -> int: ...
    # Slots that cannot be added or removed: KeyError. Vectors that are not finite: ValueError.
    def add(self, slots: Ints, vectors: Vectors) -> None: ...
    def remove(self, slots: Ints) -> None: ...
    def query(self, vectors: Vectors, k: int) -> tuple[Ints, Floats]: ...
    def points(self) -> tuple[Ints, Vectors]: ...  # slots ascending

class Scan(NeighborIndex):
    def __init__(self, metric: str, dimension: int, threads: int) -> None: ...
    def __len__(self) -> int: ...
    # Slots that cannot be added or removed: KeyError. Vectors that are not finite: ValueError.
    def add(self, slots: Ints, vectors: Vectors) -> None: ...
    def remove(self, slots: Ints) -> None: ...
    def query(self, vectors: Vectors, k: int) -> tuple[Ints, Floats]: ...
    def points(self) -> tuple[Ints, Vectors]: ...  # slots ascending

class Cells(NeighborIndex):
    def __init__(self, metric: str, dimension: int, recall: float, threads: int) -> None: ...
    def __len__(self) -> int: ...
    # As those of Scan.
    def add(self, slots: Ints, vectors: Vectors) -> None: ...
    def remove(self, slots: Ints) -> None: ...
    def query(self, vectors: Vectors, k: int) -> tuple[Ints, Floats]: ...
    def save(self) -> dict[str, Any]: ...  # all arrays, but no vectors
    # Into an empty index: what was saved, and a vector for each of its slots, which are in "slots".
    def load(self, arrays: dict[str, Any], slots: Ints, vectors: Vectors) -> None: ...
    def vectors_of(self, slots: Ints) -> Vectors: ...
    @property
    def recall(self) -> float: ...
    @property
    def measured_recall(self) -> float: ...
    @property
    def n_cells(self) -> int: ...
    @property
    def memory(self) -> int: ...  # bytes

def pair_distances(metric: str, a: Vectors, b: Vectors) -> Floats:
    """Distances of the rows of ``a`` from those of ``b``; for cosine both are of length 1 or 0."""

def scaled(vectors: Vectors) -> Vectors:
    """Return the rows scaled to length 1; zero vectors stay zero."""

class Engine:
    def __init__(
        self, epsilon: float, threshold: float, resolution: float, threads: int
    ) -> None: ...
    def __len__(self) -> int: ...
    @property
    def version(self) -> int: ...  # grows by one with every update that changed something
    def contains(self, key: int) -> bool: ...
    def update(self, batch: GraphBatch, progress: Reports = None) -> ChangeData:
        """Apply one batch, all or nothing: removals, then additions, then weights to set.

        Its columns are contiguous arrays of int64, and one of float64. Raises BatchError,
        MemoryError or KeyboardInterrupt, each with the state as before the call.
        """
    def update_text(self, ids: IdTable, batch: GraphBatch, progress: Reports = None) -> ChangeData:
        """As `update`, for ids that are str; an empty column may be an array."""
    def keys(self) -> Ints: ...  # in order of insertion, as in Snapshot
    def edges(self) -> tuple[Ints, Ints, Floats]:
        """Every edge once: the keys of its ends, and its weight."""
    def degrees(self, keys: Ints) -> Ints: ...
    def edges_of(self, keys: Ints) -> tuple[Ints, Ints, Floats]:
        """The edges at every given key: that key, the key of the other end, the weight."""
    def meeting(self, a: int, b: int) -> Meeting: ...
    def summarize(
        self, version: int, labels: Ints, count: int, only: int | None, most_nearest: int
    ) -> ClusterSummary | None:
        """Return what is in the clusters 0..count-1, or in ``only`` one of them.

        ``labels`` are those of the leaves, -1 for none. None: the engine is at another version.
        """
    def add_watch(
        self, theta: float | None, min_size: int, patience: float | None, in_time: bool
    ) -> int: ...  # a handle
    def restore_watch(
        self,
        theta: float | None,
        min_size: int,
        patience: float | None,
        in_time: bool,
        ids: Ints,
        roots: Ints,
        next: int,
        reported: tuple[Any, ...] | None,  # as ReportedState
    ) -> int: ...
    def watch_state(self, handle: int) -> WatchState: ...
    def watch_handles(self) -> list[int]: ...
    def remove_watch(self, handle: int) -> None: ...
    def steps(self, handle: int) -> list[WatchStep]: ...  # not dropped yet, the oldest first
    def drop_steps(self, handle: int, count: int) -> None: ...
    def watch_labels(self, handle: int) -> tuple[Ints, Ints]:
        """All keys in order of insertion, and their clusters."""
    def watch_clusters(self, handle: int) -> tuple[Ints, Ints]: ...  # ids, ascending, and sizes
    def cluster_of(self, handle: int, key: int) -> int: ...
    def members(self, handle: int, cluster: int) -> Ints: ...
    def snapshot(self) -> Snapshot: ...
    def level_sizes(self) -> list[tuple[int, int]]: ...  # (vertices, edges) of each level
    def memory(self) -> int: ...  # bytes held by the engine
    def export(self, progress: Reports = None) -> tuple[Snapshot, Ints, Ints, Ints, list[str]]:
        """One state: the snapshot; every edge once, as leaf indices u, v and fixed-point weight;
        and what an audit of the caches found wrong, one line each.
        """
    def state_columns(self) -> list[tuple[str, LazyColumn]]:
        """Return the columns that hold the whole state, each with its name."""
    @staticmethod
    def load(
        epsilon: float,
        threshold: float,
        resolution: float,
        threads: int,
        columns: dict[str, NDArray[Any]],
        progress: Reports = None,
    ) -> Engine:
        """Return an engine that continues from the state in these columns.

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
    u: Ints,
    v: Ints,
    w: Ints,
    children: Ints,
    similarity: Floats,
    level: NDArray[np.int32],
    epsilon: float,
    threshold: float,
    resolution: float,
    progress: Reports = None,
) -> CheckResult:
    """Replay the merges level by level on the plain graph and judge every one."""

def cut(n: int, children: Ints, min_similarity: Floats, thresholds: Floats) -> Ints:
    """(len(thresholds), n) labels 0..K-1, numbered by the first leaf of each cluster."""

def subgraph_round(
    part: Ints,
    other_part: Ints,
    u: Ints,
    v: Ints,
    w: Ints,
    size_u: Ints,
    size_v: Ints,
    least_u: Floats,
    epsilon: float,
    heavy: float,
) -> tuple[
    tuple[Ints, Ints, Ints, Floats, NDArray[np.uint8]],
    tuple[Ints, Ints, Ints, Ints, Ints, Floats, Floats, Ints],
    tuple[Ints, Ints, Ints, Ints, Ints, Ints, Ints, Floats, Floats],
]:
    """The columns of vertices, merges and edges of `dynhac.subgraph.SubgraphRound`."""

class CondensedData(NamedTuple):
    """The branches of a dendrogram, parents first; `level` has one entry per merge."""

    top: Ints  # node
    parent: Ints  # branch; -1 for roots
    birth: Floats
    death: Floats
    size: Ints
    excess: Floats
    kept: NDArray[np.bool_]  # whether it is a cluster that is chosen
    level: Floats

def select_clusters(
    n: int,
    children: Ints,
    similarity: Floats,
    min_similarity: Floats,
    min_size: int,
    threshold: float,
) -> Ints:
    """Labels of the automatic choice, numbered by the first leaf of each cluster; -1 for none."""

def condense(
    n: int,
    children: Ints,
    similarity: Floats,
    min_similarity: Floats,
    min_size: int,
    threshold: float,
) -> CondensedData:
    """The tree that `select_clusters` chooses from."""

def least_conductances(n: int, children: Ints, similarity: Floats) -> Floats:
    """For each merge the smallest conductance in its subtree."""

def give_nearest(n: int, children: Ints, labels: Ints) -> Ints:
    """Labels in which those of -1 are replaced; labels are -1..n-1. See core/selection/select.h."""

def one_vector(values: object, dimension: int) -> Vectors | None:
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
    def __call__(self, distances: Floats) -> Floats: ...

class PointChangeData(ChangeData):
    """What an update of points did; ``seconds`` are those in the engine."""

    seconds_search: float
    seconds_total: float
    text: bool  # whether ids are str
    def expired(self) -> IdColumn: ...
    def repaired(self) -> IdColumn: ...

class PointModel:
    """Points, their neighbour index and their graph; see ``core/points/point_model.h``.

    ``similarity`` is a rule or a function. ``choose(dimension, n_points, before, outgrown)``
    returns an index choice, a tuple (index or None, backend or None, max_points); ``index`` is the
    first one.
    Weights below ``least_weight`` are left out.

    One thread at a time may use it.
    """

    def __init__(
        self,
        engine: Engine,
        ids: IdTable,
        similarity: SimilarityRule | Callable[[Floats], Floats],
        choose: Callable[[int, int, str | None, bool], IndexChoice],
        index: IndexChoice,
        n_neighbors: int,
        least_weight: float,
        repair: bool,
        max_points: int | None,
        max_age: int | float | None,
    ) -> None: ...
    def update(
        self,
        vectors: Vectors | None,
        ids: PointIds,
        time_kind: str | None,
        times: Ints | Floats | None,
        deleted: PointIds,
        clock: int | float | None,
        progress: Reports = None,
    ) -> PointChangeData:
        """Delete, then insert, all or nothing.

        Raises BatchError, and what index, similarity, choose and progress raise.
        """
    @property
    def version(self) -> int: ...  # grows with every update
    @property
    def text(self) -> bool: ...  # whether ids are str
    @property
    def dimension(self) -> int | None: ...  # None before the first points, like the next three
    @property
    def time_kind(self) -> str | None: ...  # "int", "float" or "date"; None without timestamps
    @property
    def next_id(self) -> int | None: ...
    @property
    def nbytes(self) -> int | None: ...
    clock: int | float | None  # the latest time seen
    # Rows of k, or of all points if there are fewer. Nothing changes; no update may run meanwhile.
    def nearest(self, vectors: Vectors, k: int) -> Nearest: ...
    def predict(self, vectors: Vectors, k: int) -> tuple[Nearest, Ints, Floats, Ints, Ints]:
        """Return the nearest points, and where a point at each vector would join the hierarchy.

        For every row the place in it of a neighbour in the node that it joins, -1 for none; the
        similarity at which it joins; the size of the node; and its id, -1 for a leaf. BatchError: a
        weight that an update would reject; the index is that into the flat rows.
        """
    def vectors(self, ids: IdColumn | None) -> Vectors: ...  # None: all, by arrival
    def slots_and_vectors(self) -> tuple[Ints, Vectors]: ...
    @property
    def index(self) -> Any: ...  # a NeighborIndex, or None
    @property
    def backend(self) -> str | None: ...
    @property
    def index_max_points(self) -> int: ...
    @property
    def index_lost(self) -> bool: ...
    @property
    def index_changed(self) -> bool: ...  # by the last update, also if it failed
    def lose_index(self) -> None: ...
    @property
    def index_saved(self) -> bool: ...  # since the last update
    def set_index_saved(self) -> None: ...
    def save(self) -> tuple[Ints, Ints, Vectors, Ints | Floats | None, int, int]:
        """Return keys, arrival (-1: free), vectors, times, next_arrival and next_id, by slot."""
    def state_columns(self) -> list[tuple[str, LazyColumn]]:
        """Return those of them that are arrays; none before there are points."""
    @property
    def next_arrival(self) -> int | None: ...
    def load(
        self,
        keys: Ints,
        arrival: Ints,
        vectors: Vectors,
        time_kind: str | None,
        times: Ints | Floats | None,
        next_arrival: int,
        next_id: int,
    ) -> None:
        """Take up what `save` returned, in a new model; ValueError: it is not right."""
    def share_vectors(self, index: NeighborIndex) -> None: ...  # with a new, empty index
    def load_index(self, index: IndexChoice) -> None: ...  # which holds the points
    def build_index(self, index: IndexChoice) -> None: ...  # which is empty

def fail_allocation(after: int) -> None:
    """For tests: allocation number ``after`` from now (0: the next) fails; -1 switches this off."""

def bound_levels(most: int = ..., spare: int = ...) -> None:
    """For tests: how many vertices all levels may have together; without arguments, as usual."""
