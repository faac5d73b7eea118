"""Timelines for plots: a small fixed one, and random ones that a watch could have produced."""

import numpy as np

from dynhac import Timeline


def from_rows(rows, events, last_update):
    update, cluster, size = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    return Timeline(update, cluster, size, last_update, events)


def plain_timeline(timeline):
    """A timeline as plain values that can be compared."""
    return [column.tolist() if hasattr(column, "tolist") else column for column in timeline]


def small_timeline():
    """Three clusters over ten updates: 2 splits off 0 and dies, 1 is absorbed by 0."""
    rows = [
        (1, 0, 30), (2, 0, 45), (2, 1, 12), (3, 1, 20), (4, 0, 38), (4, 2, 9), (5, 1, 24),
        (6, 2, 14), (7, 0, 62), (7, 1, 0), (8, 2, 5), (9, 2, 0), (10, 0, 65),
    ]  # fmt: skip
    events = [
        (1, "born", 0, ()), (2, "born", 1, ()), (4, "split", 0, (2,)), (7, "merged", 0, (1,)),
        (9, "died", 2, ()),
    ]  # fmt: skip
    return from_rows(rows, events, 10)


def random_timeline(n_clusters, n_updates, seed=0):
    """At most ``n_clusters`` clusters; every update changes a few sizes."""
    rng = np.random.default_rng(seed)
    size, rows, events = {}, [], []
    born_at = np.sort(rng.integers(1, max(n_updates * 3 // 4, 2), n_clusters)).tolist()
    pull = rng.pareto(1.2, n_clusters) + 0.3
    next_cluster = 0
    for update in range(1, n_updates + 1):
        changed = {}
        while next_cluster < n_clusters and born_at[next_cluster] <= update:
            new, next_cluster = next_cluster, next_cluster + 1
            large = [c for c, s in size.items() if s > 60]
            if large and rng.random() < 0.4:
                parent = int(rng.choice(large))
                part = int(size[parent] * rng.uniform(0.2, 0.5))
                changed[parent] = size[parent] = size[parent] - part
                changed[new] = size[new] = part
                events.append((update, "split", parent, (new,)))
            else:
                changed[new] = size[new] = int(rng.integers(2, 10))
                events.append((update, "born", new, ()))
        alive = list(size)
        for c in rng.choice(alive, min(4, len(alive)), replace=False).tolist() if alive else ():
            if c in changed:
                continue
            step = int(rng.integers(-6, 10) * pull[c])
            size[c] = changed[c] = max(size[c] + step, 0)
            if not size[c]:
                del size[c]
                events.append((update, "died", c, ()))
        free = [c for c in size if c not in changed]
        if len(free) > 4 and rng.random() < 0.5 * n_clusters / n_updates:
            a, b = sorted(rng.choice(free, 2, replace=False).tolist(), key=lambda c: (-size[c], c))
            size[a] = changed[a] = size[a] + size.pop(b)
            changed[b] = 0
            events.append((update, "merged", a, (b,)))
        rows += [(update, c, s) for c, s in sorted(changed.items())]
    return from_rows(rows, events, n_updates)
