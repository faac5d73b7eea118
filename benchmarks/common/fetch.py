"""Fetches the data sets of the DynHAC paper and prepares them for the evaluation.

    python -m benchmarks.common.fetch mnist --out FOLDER       mnist_784 of OpenML, after UMAP
    python -m benchmarks.common.fetch aloi --out FOLDER        aloi.scale of LIBSVM
    python -m benchmarks.common.fetch ilsvrc --out FOLDER --source features.npz

The licence of ILSVRC forbids redistribution: its features come from a file of your own, an npz of X
(a row per image) and y (its class). The others can come from a file as well, instead of the
network: an npz of pixels X and digits y for mnist, aloi.scale or aloi.scale.bz2 for aloi. A data
set is one file in the folder, X in float32 and y in int64; it is complete or absent.
"""

from __future__ import annotations

import argparse
import os
import shutil
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ALOI = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass/aloi.scale.bz2"
ALOI_FEATURES = 128
UMAP_SEED = 42
Set = tuple[NDArray[Any], NDArray[Any]]


def mnist(folder: Path, source: Path | None) -> Set:
    """Return all 70,000 digits as two numbers each, by UMAP with a fixed seed."""
    try:
        from umap import UMAP
    except ImportError:
        raise SystemExit("mnist needs UMAP: pip install umap-learn") from None
    if source is not None:
        pixels, classes = from_npz(source)
    else:
        from sklearn.datasets import fetch_openml

        digits = fetch_openml(
            "mnist_784", version=1, as_frame=False, parser="liac-arff", data_home=str(folder)
        )
        pixels, classes = digits.data, digits.target.astype(np.int64)
    return UMAP(random_state=UMAP_SEED).fit_transform(pixels), classes


def aloi(folder: Path, source: Path | None) -> Set:
    """Return the 108,000 photographs of 1,000 objects, 128 features each, as LIBSVM scales them."""
    from sklearn.datasets import load_svmlight_file

    if source is None:
        source = folder / "aloi.scale.bz2"
        if not source.exists():
            download(ALOI, source)
    points, classes = load_svmlight_file(str(source), n_features=ALOI_FEATURES, dtype=np.float32)
    return points.toarray(), classes


def ilsvrc(folder: Path, source: Path | None) -> Set:
    """Return the features in a file of the user."""
    if source is None:
        raise SystemExit("ilsvrc needs --source, an npz file of X (features) and y (classes)")
    return from_npz(source)


SETS: dict[str, tuple[str, Callable[[Path, Path | None], Set]]] = {
    "mnist": ("mnist_umap2.npz", mnist),
    "aloi": ("aloi_scale128.npz", aloi),
    "ilsvrc": ("ilsvrc_features.npz", ilsvrc),
}


def from_npz(file: Path) -> Set:
    """Return X and y of a file."""
    with np.load(file, allow_pickle=False) as arrays:
        missing = [name for name in ("X", "y") if name not in arrays]
        if missing:
            raise SystemExit(f"{file} has no array {missing[0]}; it must have X and y")
        return arrays["X"], arrays["y"]


def download(address: str, file: Path) -> None:
    """Fetch a file; it gets its name when it is complete."""
    unfinished = file.with_name(f"{file.name}.part")
    print(f"fetching {address}", flush=True)
    with urllib.request.urlopen(address, timeout=60) as reply, unfinished.open("wb") as out:
        shutil.copyfileobj(reply, out)
    unfinished.replace(file)


def checked(points: NDArray[Any], classes: NDArray[Any], name: str) -> Set:
    """Return a data set with the dtypes of its file; SystemExit if it cannot be used."""
    if points.ndim != 2:
        raise SystemExit(f"X of {name} has shape {points.shape}; it must be a row per point")
    if classes.shape != (len(points),):
        raise SystemExit(f"y of {name} has shape {classes.shape}; it must be ({len(points)},)")
    points = np.ascontiguousarray(points, dtype=np.float32)
    wrong = ~np.isfinite(points).all(axis=1)
    if wrong.any():
        raise SystemExit(f"X of {name} has values that are not finite in row {wrong.argmax()}")
    return points, np.unique(classes, return_inverse=True)[1].astype(np.int64)


def fetch(name: str, folder: Path, source: Path | None = None) -> Path:
    """Prepare a data set and return its file."""
    file, load = SETS[name]
    folder.mkdir(parents=True, exist_ok=True)
    points, classes = checked(*load(folder, source), name)
    unfinished = folder / f".{os.getpid()}.part.npz"
    np.savez_compressed(unfinished, X=points, y=classes)
    unfinished.replace(folder / file)
    print(f"{folder / file}: {len(points):,} x {points.shape[1]}, {classes.max() + 1:,} classes")
    return folder / file


def main(argv: list[str] | None = None) -> None:
    """Fetch what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("set", choices=SETS)
    parser.add_argument("--out", type=Path, required=True, help="folder for the file")
    parser.add_argument("--source", type=Path, help="a file to take the data from")
    options = parser.parse_args(argv)
    fetch(options.set, options.out, options.source)


if __name__ == "__main__":
    main()
