"""Why two points are in one cluster: the merge that joins them, and the path from each to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from dynhac.dendrogram.cuts import snap
from dynhac.input.errors import counted

if TYPE_CHECKING:
    from dynhac._core import Meeting, Path

SHOWN = 4  # merges printed at each end of a long path


class Step(NamedTuple):
    """One merge on the path from a point to the root."""

    node_id: int
    similarity: float
    size: int


class Explanation(NamedTuple):
    """How two points are joined in the hierarchy; made by `GraphHAC.explain`.

    Attributes
    ----------
    a, b : int or str
        The points.
    together : bool
        Whether they are in one tree.
    similarity : float
        They are in one cluster at every cut up to this similarity; 0 if they are in different
        trees. It is the smallest linkage in the subtree of the merge that joins them. It may be
        below the threshold of the model by up to a factor 1 + epsilon; no cut is made there.
    linkage : float
        The linkage of the merge that joins them: the mean similarity over all pairs of points that
        it joins.
    node_id : int
        The stable id of that merge; -1 if there is none.
    size : int
        The number of points under it.
    path_a, path_b : list of Step
        The merges from each point up to the one that joins them, inclusive; up to their roots if
        they are in different trees. Printing an explanation shows them.
    threshold : float
        The threshold of the model: the lowest similarity at which it can be cut.
    clustered : bool
        Whether they are in one cluster at the threshold. If not, then at no cut.
    """

    a: int | str
    b: int | str
    together: bool
    similarity: float
    linkage: float
    node_id: int
    size: int
    path_a: list[Step]
    path_b: list[Step]
    threshold: float
    clustered: bool

    @classmethod
    def _of(
        cls, a: Any, b: Any, meeting: Meeting, threshold: float, resolution: float
    ) -> Explanation:
        """Return the explanation for ids a and b from the engine's result."""
        path_a, path_b = _steps(meeting.a), _steps(meeting.b)
        if a == b:
            return cls(a, b, True, float("inf"), float("inf"), -1, 1, [], [], threshold, True)
        if not meeting.meet:
            return cls(a, b, False, 0.0, 0.0, -1, 0, path_a, path_b, threshold, False)
        top = path_a[-1]
        joined = (meeting.least, top.similarity, top.node_id, top.size)
        clustered = meeting.least >= float(snap(threshold, resolution))
        return cls(a, b, True, *joined, path_a, path_b, threshold, clustered)

    def _repr_html_(self) -> str:
        from dynhac.notebook.views import lines_html

        return lines_html("Explanation", self)

    def __str__(self) -> str:
        if self.a == self.b:
            return f"{self.a!r} is one point: it is with itself at every similarity"
        names = f"{self.a!r} and {self.b!r} are"
        meet = (
            f"they meet in node {self.node_id} of {counted(self.size, 'point', 'points')}, at "
            f"linkage {self.linkage:.4g}"
        )
        if not self.together:
            lines = [
                f"{names} never in one cluster: their trees are not merged, which needs a linkage "
                f"of at least the threshold, {self.threshold:g}"
            ]
        elif not self.clustered:
            lines = [
                f"{names} in no cut in one cluster, but in one tree: {meet}, and are together at "
                f"similarities up to {self.similarity:.4g} only, below the threshold, "
                f"{self.threshold:g}, which is the lowest cut"
            ]
        else:
            lines = [f"{names} in one cluster at similarities up to {self.similarity:.4g}; {meet}"]
        for name, path in ((self.a, self.path_a), (self.b, self.path_b)):
            shown = path if len(path) <= 2 * SHOWN else [*path[:SHOWN], None, *path[-SHOWN:]]
            lines.append(f"  from {name!r}, {counted(len(path), 'merge', 'merges')}:")
            lines += [
                f"    ... {len(path) - 2 * SHOWN} more ..."
                if step is None
                else f"    {step.similarity:.4g}: node {step.node_id}, "
                + counted(step.size, "point", "points")
                for step in shown
            ]
        return "\n".join(lines)


def _steps(path: Path) -> list[Step]:
    columns = (path.node_ids, path.similarity, path.size)
    return list(map(Step._make, zip(*(column.tolist() for column in columns), strict=True)))
