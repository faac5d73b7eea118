"""Near-duplicates in a stream: ``python examples/deduplication.py --data FOLDER``.

Texts arrive one at a time. A watch on a high similarity answers at once whether the new one belongs
to a group that is there already, and which: the first of a group is the original, all others are
duplicates. Old texts leave a sliding window, so that this can go on for ever. A group stays whole
at a high similarity while it has no more members than a point has neighbours.
"""

from __future__ import annotations

import time

import numpy as np

from data import arguments, load
from dynhac import DynHAC
from generated import messages

SHOWN = 12  # duplicates that are printed


def main() -> None:
    """Let the texts in one after the other and say which are duplicates of which."""
    parser = arguments(__doc__)
    parser.add_argument("--points", type=int, default=3_000, help="texts to read, at most")
    parser.add_argument("--similarity", type=float, help="cosine from which texts are the same")
    parser.add_argument("--window", type=int, default=1_000, help="texts to remember")
    options = parser.parse_args()
    # To a language model a text with a few misprints is the same; to counted letters less so.
    alike = options.similarity or (0.82 if options.data is None else 0.95)
    data = load(options.data, "reuters_minilm384", messages)
    X, text = data["X"][: options.points], data["title"][: options.points]

    model = DynHAC(
        metric="cosine",
        similarity="cosine",
        n_neighbors=20,
        threshold=alike / 2,
        max_points=options.window,
    )
    groups = model.watch(alike, min_size=2)
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
    for group, size in sorted(groups.clusters().items(), key=lambda item: -item[1])[:1]:
        print(f"\nThe largest group now, of {size}:")
        for row in groups.members(group)[:6].tolist():
            print(f"  {row:5,} {text[row][:90]}")


if __name__ == "__main__":
    main()
