"""The data sets: where their points come from, their thresholds and their titles."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

SEED = 0
Floats = NDArray[np.float32]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Dataset:
    """The threshold of models of a data set, its file, and how many of its points are used."""

    threshold: float
    file: str | None = None  # None: generated here, or part of scikit-learn
    points: int | None = None


DATASETS = {
    "mnist": Dataset(1e-4, "mnist_umap2.npz"),
    "fruits360": Dataset(1e-2, "fruits360_bic128.npz", points=108_000),
    "intents": Dataset(1e-2, "intents_minilm384.npz"),
    "tinyimagenet": Dataset(1e-2, "tinyimagenet_effnet256.npz"),
    "reuters": Dataset(1e-2, "reuters_minilm384.npz"),
    "tycho2": Dataset(1e-2, "tycho2_stars.npz"),
    "cora": Dataset(1e-4, "cora_er.npz"),
    "geonames": Dataset(1e-4, "geonames_cities.npz"),
    # Data sets of the paper that fetch.py prepares.
    "aloi": Dataset(1e-2, "aloi_scale128.npz"),
    "ilsvrc": Dataset(1e-2, "ilsvrc_features.npz", points=50_000),
    "digits": Dataset(1e-4),
    "blobs": Dataset(1e-4),
    "uniform": Dataset(1e-2),
}
TITLES = {
    "mnist": "MNIST (UMAP), 70k x 2",
    "fruits360": "Fruits-360, 108k x 128",
    "intents": "Intents (MiniLM), 46.6k x 384",
    "tinyimagenet": "Tiny-ImageNet, 50k x 256",
    "reuters": "Reuters (MiniLM), 11.4k x 384",
    "tycho2": "Tycho-2 stars, 1.87M x 3",
    "cora": "Cora (MiniLM), 1.9k x 384",
    "geonames": "GeoNames cities, 171k x 3",
    "email": "e-mail graph, 1k vertices",
    "digits": "digits, 1.8k x 64",
    "blobs": "blobs, 20k x 2",
}


def read_points(name: str, data: Path | None) -> tuple[Floats, Ints]:
    """Return all points and classes of a data set, in the order of its file."""
    dataset = DATASETS[name]
    if dataset.file is None:
        return _builtin(name)
    if data is None:
        raise SystemExit(f"{name} needs --data (or DYNHAC_DATA), the folder with {dataset.file}")
    with np.load(data / dataset.file, allow_pickle=False) as arrays:
        X = arrays["X"].astype(np.float32)
        y = arrays["y"].astype(np.int64) if "y" in arrays else np.zeros(len(X), np.int64)
    return X, y


def shuffled_points(name: str, data: Path | None) -> tuple[Floats, Ints]:
    """Return the points of a data set that are used, and their classes, in a random order."""
    X, y = read_points(name, data)
    order = np.random.default_rng(SEED).permutation(len(X))[: DATASETS[name].points]
    return X[order], y[order]


def generated_clusters(n: int, dimension: int) -> Floats:
    """Return points in clusters of about 200, in random order; one in fifty is equal to another."""
    rng = np.random.default_rng(SEED)
    centres = rng.standard_normal((max(10, n // 200), dimension), np.float32)
    X = centres[rng.integers(len(centres), size=n)]
    for part in np.array_split(np.arange(n), max(1, n // 10_000)):
        X[part] += np.float32(0.7) * rng.standard_normal((len(part), dimension), np.float32)
    X[rng.integers(n, size=n // 50)] = X[rng.integers(n, size=n // 50)]
    return X


def _builtin(name: str) -> tuple[Floats, Ints]:
    rng = np.random.default_rng(SEED)
    points: NDArray[Any]
    if name == "digits":
        from sklearn.datasets import load_digits

        points, labels = load_digits(return_X_y=True)
    elif name == "uniform":
        points, labels = rng.uniform(size=(10_000, 3)), np.zeros(10_000)
    else:
        centres = rng.uniform(-30, 30, size=(30, 2))
        labels = rng.integers(30, size=20_000)
        points = centres[labels] + rng.normal(size=(20_000, 2))
    return points.astype(np.float32), labels.astype(np.int64)
