"""Near-duplicates in a stream: ``python examples/deduplication.py --data FOLDER``.

Texts arrive one at a time. A watch at a high similarity tells at once whether a new text belongs to
an existing group. The first text of a group is the original, all others are duplicates. A sliding
window removes old texts, so that the stream may have any length. A group stays one cluster at a
high similarity as long as it has no more members than a point has neighbours.
"""

from __future__ import annotations

import time

import numpy as np

from data import arguments, load
from dynhac import DynHAC
from generated import messages

SHOWN = 12  # number of duplicates to print


def main() -> None:
    """Insert the texts one after the other and print which are duplicates of which."""
    parser = arguments(__doc__)
    parser.add_argument("--points", type=int, default=3_000, help="most texts to read")
    parser.add_argument("--theta", type=float, help="cosine from which texts are duplicates")
    parser.add_argument("--window", type=int, default=1_000, help="texts in the window")
    options = parser.parse_args()
    # Typing errors change the vectors of a language model less than counts of letters.
    theta = options.theta or (0.82 if options.data is None else 0.95)
    data = load(options.data, "reuters_minilm384", messages)
    X, text = data["X"][: options.points], data["title"][: options.points]

    model = DynHAC(
        metric="cosine",
        similarity="cosine",
        n_neighbors=20,
        threshold=theta / 2,
        max_points=options.window,
    )
    groups = model.watch(theta, min_size=2)
    duplicates, milliseconds = 0, []
    for row, vector in enumerate(X):
        start = time.perf_counter()
        model.insert(vector, ids=row)
        group = groups.cluster_of(row)
        milliseconds.append((time.perf_counter() - start) * 1000)
        if group < 0:
            continue
        original, *later = groups.members(group).tolist()
        duplicates += 1
        if duplicates <= SHOWN:
            others = f" and of {len(later) - 1} more" if len(later) > 1 else ""
            print(f"{row:5,} {text[row][:90]}\n      is a duplicate of {original:,}{others}:")
            print(f"      {text[original][:90]}\n")
    p50, p99 = np.percentile(milliseconds, [50, 99])
    print(
        f"{duplicates:,} of {len(X):,} texts were duplicates of one among the {options.window:,} "
        f"before them.\nAn answer took {p50:.2f} ms (median; 99% within {p99:.2f} ms)."
    )
    for largest in groups.summary().largest(1):
        print(f"\nThe largest group now, of {largest.size}, most typical first:")
        for row in largest.representatives(6).tolist():
            print(f"  {row:5,} {text[row][:90]}")


if __name__ == "__main__":
    main()
