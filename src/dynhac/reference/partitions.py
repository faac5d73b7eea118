"""One level of the paper's state: its graph, its red/blue partitions and its map to the next level.

A coin colours every vertex red or blue. A red vertex has a partition of its own. A blue vertex
belongs to the partition of its heaviest red neighbour, or has a partition of its own if it has no
red neighbour. So a partition is a star: a red vertex and blue vertices around it. The partition of
a vertex follows from its own edges. (The paper's definition gives a blue vertex its own partition
if it has no *blue* neighbour; that must read red.)

The coin is a hash of the vertex's name and the level. Names do not depend on the history, so the
partitions and the dendrogram depend only on the graph: after any updates the state is that of a
fresh run.
"""

import hashlib
from collections.abc import Iterable, Mapping
from fractions import Fraction

from dynhac.reference.dynamic_dendrogram import Node
from dynhac.reference.merges import Name
from dynhac.reference.subgraph import Graph

WHOLE_LEVEL = -1
"""The partition of all vertices, see ``one_partition`` in ``Level.update_partitions``."""


def is_red(name: Name, level: int) -> bool:
    """Toss the coin of a vertex: the same in every process and on every machine."""
    return bool(hashlib.blake2b(f"{level} {name}".encode(), digest_size=1).digest()[0] & 1)


class Level:
    """The graph of level `number` and the result of round `number` on it.

    ``graph[v][y]`` is the weight of an edge; vertices are handles of clusters. On the last level no
    round has run: the other three dictionaries are empty.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.graph: Graph = {}
        self.partition: dict[int, int] = {}
        self.members: dict[int, set[int]] = {}
        self.image: dict[int, int] = {}
        """VMap in the paper: the vertex of the next level that a vertex has become part of."""

    def apply(self, deleted: Iterable[int], inserted: Graph) -> set[int]:
        """Change the graph; return the inserted vertices and all neighbours of changed ones.

        Edges between two inserted vertices must be listed at both.
        """
        touched = set(inserted)
        for v in deleted:
            for y in self.graph.pop(v):
                if y in self.graph:
                    del self.graph[y][v]
                    touched.add(y)
        self.graph.update((v, dict(neighbours)) for v, neighbours in inserted.items())
        for v, neighbours in inserted.items():
            for y, w in neighbours.items():
                self.graph[y][v] = w
                touched.add(y)
        return touched & self.graph.keys()

    def has_heavy_edge(self, clusters: Mapping[int, Node], floor: Fraction) -> bool:
        """Whether some edge has a linkage >= floor, so that another round is needed."""
        return any(
            Fraction(w, clusters[v].size * clusters[y].size) >= floor
            for v, neighbours in self.graph.items()
            for y, w in neighbours.items()
        )

    def partition_of(self, v: int, clusters: Mapping[int, Node]) -> int:
        """Return the partition of v, named by its red vertex (or by v)."""
        if is_red(clusters[v].name, self.number):
            return v

        def rank(y: int) -> tuple[Fraction, Name]:  # the size of v is the same for all y
            return -Fraction(self.graph[v][y], clusters[y].size), clusters[y].name

        red = (y for y in self.graph[v] if is_red(clusters[y].name, self.number))
        return min(red, key=rank, default=v)

    def update_partitions(
        self,
        deleted: Iterable[int],
        touched: Iterable[int],
        clusters: Mapping[int, Node],
        one_partition: bool,
    ) -> list[int]:
        """Assign touched vertices to their partitions; return the dirty partitions.

        A partition is dirty if a deleted or touched vertex was in it or is in it now, even if it is
        the same one: an edge at that vertex has changed, and outside edges count in SubgraphHAC.

        With `one_partition` the whole level is one partition. SubgraphHAC then leaves no heavy
        edge, so the round is the last one. This bounds the number of rounds on graphs where few
        merges can be made in parallel.
        """
        dirty: set[int] = set()
        for v in {*deleted, *touched} & self.partition.keys():
            where = self.partition.pop(v)
            self.members[where].remove(v)
            dirty.add(where)
        for v in touched:
            where = WHOLE_LEVEL if one_partition else self.partition_of(v, clusters)
            self.partition[v] = where
            self.members.setdefault(where, set()).add(v)
            dirty.add(where)
        for where in [p for p in dirty if not self.members[p]]:
            dirty.remove(where)
            del self.members[where]
        return sorted(dirty)

    def update_vmap(
        self, deleted: Iterable[int], images: Mapping[int, int], next_graph: Graph
    ) -> tuple[list[int], Graph]:
        """UpdateVMap: set new images; return the deletions and insertions on the next level.

        `images` has an entry for every vertex of every dirty partition.
        """
        old = {self.image.pop(v) for v in deleted if v in self.image}
        old.update(self.image[v] for v in images if v in self.image)
        self.image.update(images)
        new = set(images.values())
        inserted = self.contraction({v: z for v, z in images.items() if z not in next_graph})
        return sorted(old - new), inserted

    def contraction(self, images: Mapping[int, int]) -> Graph:
        """Return the given images with their edges to all images.

        `images` has an entry for every member of them. The weight of an edge is the sum of the
        weights between the members.
        """
        contracted: Graph = {z: {} for z in images.values()}
        for v, z in images.items():
            for y, w in self.graph[v].items():
                other = self.image[y]
                if other != z:
                    contracted[z][other] = contracted[z].get(other, 0) + w
        return contracted
