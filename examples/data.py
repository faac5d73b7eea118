"""Where the data of the examples come from: a folder of real data, or made up on the spot.

A data set is a file ``name.npz`` of plain arrays: vectors ``X``, classes ``y`` and, depending on
the set, ``text``, ``title``, ``time`` and the names of the ``classes``. Without a folder an example
takes a made-up data set with the same arrays from `generated`.
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
        help="folder with the real data (default: DYNHAC_DATA); made-up data without it",
    )
    return parser


def load(folder: Path | None, name: str, make: Callable[[], Arrays]) -> Arrays:
    """Return a data set of the folder, or what ``make`` makes up if there is no folder."""
    if folder is None:
        print(f"No --data: made-up data instead of {name}.npz.\n")
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
    """Return a vector of length 1 for each text, made of its runs of three and four letters.

    Each run counts in one of ``dimension`` places, less if many texts have it. Nothing is learnt:
    texts are near each other if they are spelt alike, whatever they mean.
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


def typical(vectors: NDArray[np.float32]) -> int:
    """Return the row that is most like the mean of all: a good one to show."""
    return int((vectors @ vectors.mean(axis=0)).argmax())
