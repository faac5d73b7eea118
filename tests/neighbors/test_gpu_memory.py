"""The index for GPUs with little memory, and with none left."""

import numpy as np
import pytest
from nearest import check

from dynhac import DynHAC
from dynhac.neighbors import GpuIndex, gpu
from dynhac.neighbors.gpu_arrays import Arrays


def test_the_memory_of_a_search_is_bounded(monkeypatch):
    sizes = []
    real = Arrays.product

    def product(self, a, b):
        sizes.append(len(a) * len(b))
        return real(self, a, b)

    monkeypatch.setattr(Arrays, "product", product)
    x = np.random.default_rng(10).normal(size=(1500, 4)).astype(np.float32)
    answers = []
    for memory in (None, 2**19):
        index = GpuIndex("cosine", 4, arrays="numpy", memory=memory)
        index.add(np.arange(1500), x)
        sizes.clear()
        answers.append(index.query(x[:500], 5))
        assert 2 * max(sizes) <= (memory or 2**30)
    for one, other in zip(*answers, strict=True):
        np.testing.assert_array_equal(one, other)


class Faulty(Arrays):
    """NumPy that has no memory left in one of its calls."""

    out_of_memory = (ZeroDivisionError,)  # stands for the error of a package
    left = None

    def __getattribute__(self, name):
        own = super().__getattribute__
        found = own(name)
        counted = name in vars(Arrays) and name != "memory_errors" and callable(found)
        if counted and own("left") is not None:
            self.left = own("left") - 1
            if self.left < 0:
                raise ZeroDivisionError("no memory")
        return found


@pytest.fixture
def faulty(monkeypatch):
    """The arrays of every new index on a GPU, which fail after ``left`` calls."""
    arrays = Faulty()
    monkeypatch.setattr(gpu, "arrays_of", lambda backend: arrays)
    return arrays


def test_no_memory_leaves_the_index_as_it_was(faulty):
    rng = np.random.default_rng(11)
    x = rng.normal(size=(2600, 6)).astype(np.float32)
    x[::9] = x[0]
    failures = 0
    for step in ("add", "few", "long", "remove", "query"):
        for calls in range(200):
            faulty.left = None
            index = GpuIndex("euclidean", 6, arrays="auto")
            index.add(np.arange(1000), x[:1000])
            faulty.left = calls
            held = dict(enumerate(x[:1000]))
            try:
                if step == "add":
                    index.add(np.arange(1000, 2600), x[1000:])
                elif step == "few":
                    index.add(np.arange(1000, 1003), x[1000:1003])
                elif step == "long":
                    index.add(np.array([1000]), 1e6 * x[1000:1001])
                elif step == "remove":
                    index.remove(np.arange(0, 1000, 2))
                else:
                    index.query(x[:20], 70)
            except MemoryError:
                failures += 1
                faulty.left = None
                if step not in ("add", "remove"):  # these move rows, which may fail half-way
                    assert index.intact
                if index.intact:
                    assert len(index) == 1000
                    check(index, held, x[::400], 4)
            else:
                break
        else:
            pytest.fail(f"{step} takes more calls than were tried")
    assert failures > 50


def test_the_error_tells_what_to_do(faulty):
    faulty.left = 0
    with pytest.raises(MemoryError, match="too little memory: no memory; use fewer points, or"):
        GpuIndex("cosine", 2).add(np.array([1]), np.ones((1, 2), np.float32))


def test_no_memory_leaves_the_model_as_it_was(faulty):
    rng = np.random.default_rng(12)
    x = rng.normal(size=(300, 6)).astype(np.float32)
    x[::9] = x[0]
    twin = DynHAC(n_neighbors=5, neighbors="exact")
    model = DynHAC(n_neighbors=5, neighbors="gpu")
    for each in (model, twin):
        each.insert(x[:100])
    assert model.backend == "gpu"
    for step in range(40):
        new = x[100 + 3 * step : 103 + 3 * step] if step % 2 else x[100 + 3 * step]
        faulty.left = step
        try:
            model.insert(new)
        except MemoryError:
            faulty.left = None
            assert len(model.ids) == len(twin.ids)
            model.verify()
            model.insert(new)
        faulty.left = None
        twin.insert(new)
        faulty.left = 5 * step
        try:
            model.delete([step])
        except MemoryError:
            faulty.left = None
            model.verify()
            model.delete([step])
        faulty.left = None
        twin.delete([step])
        assert np.array_equal(model.dendrogram().children, twin.dendrogram().children)
    assert np.array_equal(model.dendrogram().similarity, twin.dendrogram().similarity)
