"""The documented rule of ``DynHAC.predict`` in plain Python, on the arrays of a dendrogram."""

import math
from fractions import Fraction


def leaves_of_nodes(dendrogram):
    """Return the set of leaves below every node."""
    below = [{leaf} for leaf in range(dendrogram.n_leaves)]
    for left, right in dendrogram.children.tolist():
        below.append(below[left] | below[right])
    return below


def choices(model, weights):
    """Return every node that a new point could join: (similarity, node, its leaves).

    ``weights`` are those of its edges, by id, not rounded. The nodes that it joins have the largest
    similarity; ties are possible.
    """
    d = model.dendrogram()
    n, unit = d.n_leaves, model.resolution
    ids = d.ids.tolist()
    whole = {ids.index(id): math.floor(w / unit + 0.5) for id, w in weights.items()}
    parent = {child: n + j for j, pair in enumerate(d.children.tolist()) for child in pair}
    found = []
    for node, leaves in enumerate(leaves_of_nodes(d)):
        total = sum(whole.get(leaf, 0) for leaf in leaves)
        if total == 0:
            continue
        # As the doubles of the core are: exact sums, rounded once.
        linkage = float(Fraction(total, len(leaves))) * unit
        if node in parent and linkage < d.similarity[parent[node] - n]:
            continue
        least = math.inf if node < n else float(d.min_similarity[node - n])
        found.append((min(linkage, least), node, leaves))
    return found


def predicted_labels(model, weights, labels, theta):
    """Return the score of a new point, and the labels that it may have: several if there are ties.

    ``labels`` are those of the model, of a cut at ``theta``.
    """
    found = choices(model, weights)
    score = max((similarity for similarity, _, _ in found), default=0.0)
    if score < theta or not found:
        return score, {-1}
    best = [leaves for similarity, _, leaves in found if similarity == score]
    return score, {int(labels[leaf]) for leaves in best for leaf in leaves}


def labels_by_node(model, weights, labels, nearest):
    """Return the labels that a new point may have, of clusters that no similarity decides about.

    ``labels`` are those of the model, -1 for noise. The point is in a cluster if the node that it
    joins is inside it. If ``nearest``, it is otherwise in the largest cluster below that node or
    the nearest node above it that has one.
    """
    d = model.dendrogram()
    below = leaves_of_nodes(d)
    parent = {child: d.n_leaves + j for j, pair in enumerate(d.children.tolist()) for child in pair}
    found = choices(model, weights)
    score = max((similarity for similarity, _, _ in found), default=0.0)
    sizes = [int((labels == label).sum()) for label in range(int(labels.max(initial=-1)) + 1)]
    possible = set()
    for node in [node for similarity, node, _ in found if similarity == score]:
        inside = {int(labels[leaf]) for leaf in below[node]}
        if len(inside) == 1 and inside != {-1}:
            possible |= inside
            continue
        at = node if nearest else None
        while at is not None and not inside - {-1}:
            at = parent.get(at)
            inside = {int(labels[leaf]) for leaf in below[at]} if at is not None else set()
        found_here = sorted(inside - {-1}, key=lambda label: (-sizes[label], label))
        possible.add(found_here[0] if nearest and found_here else -1)
    return possible or {-1}


def state_bytes(model):
    """Return the whole saved state of a model, and whether its index is usable."""
    columns = {name: (column.dtype.str, column.tobytes()) for name, column in model._columns()}
    points = model._points
    return model._header(), columns, points.version, points.index_lost, points.index_changed
