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


def state_bytes(model):
    """Return the whole saved state of a model, and whether its index is usable."""
    columns = {name: (column.dtype.str, column.tobytes()) for name, column in model._columns()}
    points = model._points
    return model._header(), columns, points.version, points.index_lost, points.index_changed
