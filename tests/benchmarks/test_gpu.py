"""The benchmark of an index on a GPU runs, with NumPy in place of a GPU."""

import numpy as np
import pytest

from benchmarks import gpu


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_gpu(metric):
    sizes = "--points 1500 --dimension 12 --neighbors 5 --singles 5 --batches 1 --sample 20"
    options = gpu.parse([*sizes.split(), "--arrays", "numpy", "--metric", metric, "--threads", "1"])
    results = gpu.measure(options)
    assert results["exact"] == {"rows": 20, "same_slots": 20, "same_distances": 20}
    assert results["build"]["seconds"] > results["build"]["seconds_search"] > 0
    for part in ("single", "batches", "deletions"):
        assert results[part]["ms_p50"] > 0


def test_generated_vectors():
    x = gpu.generate(2000, 8, seed=2)
    assert np.array_equal(x, gpu.generate(2000, 8, seed=2))
    _, counts = np.unique(x, axis=0, return_counts=True)
    assert counts.max() >= 200  # the pile
    assert (counts == 2).sum() > 20
