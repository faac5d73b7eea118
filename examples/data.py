"""The data of the examples: real data from a folder, or generated data.

A data set is a file ``name.npz`` of plain arrays: vectors ``X``, classes ``y`` and, depending on
the set, ``text``, ``title``, ``time`` and the names of the ``classes``. Without a folder an example
uses a generated data set with the same arrays, from the module `generated`.
"""

from __future__ import annotations

import argparse
import os
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]


def arguments(description: str | None) -> argparse.ArgumentParser:
    """Return a parser with the option that all examples have."""
    folder = os.environ.get("DYNHAC_DATA")
    parser = argparse.ArgumentParser(description=(description or "").split("\n")[0])
    parser.add_argument(
        "--data",
        type=Path,
        metavar="FOLDER",
        default=Path(folder) if folder else None,
        help="folder with the real data (default: DYNHAC_DATA); generated data without it",
    )
    return parser


def load(folder: Path | None, name: str, make: Callable[[], Arrays]) -> Arrays:
    """Return the data set in the folder; without a folder, what ``make`` returns."""
    if folder is None:
        print(f"No --data: generated data instead of {name}.npz.\n")
        arrays = make()
    else:
        path = folder / f"{name}.npz"
        if not path.exists():
            raise SystemExit(f"--data is {folder}, which has no {path.name}")
        with np.load(path, allow_pickle=False) as file:
            arrays = {key: file[key] for key in file.files}
    arrays["X"] = arrays["X"].astype(np.float32)
    return arrays


def text_vectors(texts: Sequence[str], dimension: int = 384) -> NDArray[np.float32]:
    """Return a unit vector for each text: hashed, weighted counts of 3- and 4-grams of letters.

    Each n-gram is hashed to one of ``dimension`` components; frequent n-grams have less weight.
    Texts with a similar spelling have similar vectors, whatever they mean.
    """
    counts = np.zeros((len(texts), dimension), np.float32)
    for row, text in enumerate(texts):
        spaced = f" {' '.join(text.lower().split())} "
        runs = (spaced[i : i + n] for n in (3, 4) for i in range(len(spaced) - n + 1))
        for run in runs:
            counts[row, zlib.crc32(run.encode()) % dimension] += 1
    weight = np.log1p(len(texts) / np.maximum((counts > 0).sum(axis=0), 1))
    vectors = np.sqrt(counts) * weight.astype(np.float32)
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.maximum(length, 1e-12)).astype(np.float32)
