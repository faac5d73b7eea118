"""Names of clusters, from the texts of their most typical points.

Reading all payloads of a large model would take long, so that only some points of each cluster
count, the more the fewer clusters there are. A cluster of a watch keeps its name while it is right.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynhac.clusters.names import NameKeeper, names_of

if TYPE_CHECKING:
    from collections.abc import Hashable

    from dynhac.clusters.clusters import Clusters
    from dynhac.serve.service import Service

MOST_TEXTS = 10_000
EACH = (5, 50)
"""The least and the most texts of a cluster."""
PART = 100
"""At most one part in so many of the time is spent on names."""


class Names:
    """The names of the clusters that a service shows."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._keepers: dict[str, NameKeeper] = {}
        self._last: dict[str, dict[int, str]] = {}

    def of(self, clusters: Clusters, watch: str | None, key: Hashable) -> dict[int, str]:
        """Return the names of clusters, by id; ``key`` tells these clusters from others."""

        def make() -> dict[int, str]:
            names = self._make(clusters, watch)
            if watch is not None:
                self._last[watch] = names
            return names

        return self._service.views.get(("names", key), make, PART).value

    def last(self, watch: str) -> dict[int, str]:
        """Return the names that the clusters of a watch had last."""
        return self._last.get(watch, {})

    def _make(self, clusters: Clusters, watch: str | None) -> dict[int, str]:
        least, most = EACH
        each = min(max(MOST_TEXTS // max(len(clusters), 1), least), most)
        labels, ids = [], []
        for cluster in clusters.largest(MOST_TEXTS // each):
            some = cluster.representatives(each).tolist()
            ids += some
            labels += [cluster.id] * len(some)
        if not ids:
            return {}
        texts = self._service.model.texts(ids, self._service.settings.name_field)
        if not any(texts):
            return {}
        if watch is None:
            found = names_of(labels, texts)
        else:
            found = self._keepers.setdefault(watch, NameKeeper()).names(labels, texts)
        return {id: name for id, name in found.items() if name}
