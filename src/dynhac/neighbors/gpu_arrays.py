"""The few operations on arrays that `GpuIndex` needs, for PyTorch, CuPy and NumPy.

The index is written once, in terms of `Arrays`. NumPy is the stand-in with which it runs, and is
tested, on machines without a GPU. What is elementary works alike in all three and has no method
here: indexing by slices, arithmetic and comparisons, ``reshape`` and assignment to slices.

A product of half-precision matrices is summed in float32 or better, in any order, and its result
is rounded to half precision. All else is as IEEE 754 has it: float64 results have the same bits
everywhere.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from dynhac.input.errors import InvalidTypeError, show

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    Download: TypeAlias = Callable[[], list[NDArray[Any]]]

SMALL = 2**16
MOST_PINNED = 2**24
"""Bytes. The driver copies up to the first itself, and the host does not wait for the device; it
does for more, unless the memory is pinned. PyTorch keeps pinned memory: so not more than that."""

FEW = 16
"""Up to so many rows, the call of a function matters more than what the device does for it."""

HALF_SUMS = ("allow_fp16_reduced_precision_reduction", "allow_fp16_accumulation")
"""Settings of PyTorch with which products may be summed in half precision; the second came later
than the first."""

INSTALL = "pip install dynhac[gpu], or CuPy for your version of CUDA"
BACKENDS = ("auto", "torch", "torch-cpu", "cupy", "numpy")


class Arrays:
    """Arrays of NumPy, and the base of those on a device."""

    name = "numpy"
    out_of_memory: tuple[type[Exception], ...] = (MemoryError,)

    def __init__(self) -> None:
        self.module: Any = np
        self.half: Any = np.float16
        self.single: Any = np.float32
        self.double: Any = np.float64
        self.integer: Any = np.int64

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """Return an array without values."""
        return self.module.empty(shape, dtype=dtype)

    def upload(self, array: NDArray[Any]) -> Any:
        """Return an array of the host's on the device. It must not be written to."""
        return array

    def put(self, target: Any, array: NDArray[Any]) -> None:
        """Write an array of the host's to an array, or a slice of one, on the device."""
        target[...] = array

    def download(self, *arrays: Any) -> list[NDArray[Any]]:
        """Return arrays of the device on the host."""
        return self.begin_download(*arrays)()

    def begin_download(self, *arrays: Any) -> Download:
        """Let the device copy arrays to the host; the function that is returned waits for them."""
        return lambda: list(arrays)

    def cast(self, array: Any, dtype: Any) -> Any:
        """Return an array with another type of numbers."""
        return array.astype(dtype)

    def bits(self, array: Any) -> Any:
        """Return the bits of float32 numbers as int64."""
        return array.view(np.int32).astype(np.int64)

    def product(self, a: Any, b: Any) -> Any:
        """Return the inner products of the rows of ``a`` with the rows of ``b``."""
        if a.dtype == np.float16:
            return (a.astype(np.float32) @ b.astype(np.float32).T).astype(np.float16)
        return a @ b.T

    def largest(self, values: Any, count: int) -> tuple[Any, Any]:
        """Return the largest numbers of every row and their positions, in any order."""
        width = values.shape[1]
        if count >= width:
            return values, self.module.tile(self.module.arange(width), (len(values), 1))
        found = self.module.argpartition(values, width - count, axis=1)[:, width - count :]
        return self.take(values, found), found

    def progressions(self, first: Any, steps: Any, step: int) -> Any:
        """Return ``first + i * step`` for every i in ``steps``, on a new last axis."""
        return first[:, :, None] + steps * step

    def order(self, values: Any) -> Any:
        """Return the positions that sort every row, equal numbers as they were."""
        return np.argsort(values, axis=1, kind="stable")

    def take(self, values: Any, positions: Any) -> Any:
        """Return for every row the numbers at the positions in that row."""
        return self.module.take_along_axis(values, positions, 1)

    def take_rows(self, values: Any, rows: Any) -> Any:
        """Return rows; the positions have any shape."""
        return values[rows]

    def most(self, values: Any, axis: int) -> Any:
        """Return the largest numbers along an axis."""
        return values.max(axis=axis)

    def least(self, values: Any) -> Any:
        """Return the smallest number of every row."""
        return values.min(axis=1)

    def total(self, values: Any, axis: int) -> Any:
        """Return sums along an axis, of numbers in any order."""
        return values.sum(axis=axis)

    def every(self, values: Any) -> Any:
        """Return whether all of a row are true."""
        return values.all(axis=1)

    def sqrt(self, values: Any) -> Any:
        """Return square roots."""
        return self.module.sqrt(values)

    def magnitude(self, values: Any) -> Any:
        """Return absolute values."""
        return abs(values)

    def where(self, condition: Any, yes: Any, no: Any) -> Any:
        """Return numbers of ``yes`` or ``no``, each an array or a number."""
        return self.module.where(condition, yes, no)

    def arange(self, count: int) -> Any:
        """Return 0, 1, 2, ..."""
        return self.module.arange(count)

    def free_memory(self) -> int:
        """Return how many bytes the device has left."""
        return 2**30

    @contextmanager
    def memory_errors(self) -> Iterator[None]:
        """Turn the error of a device without memory into a MemoryError that says what to do."""
        try:
            yield
        except self.out_of_memory as error:
            raise MemoryError(
                f"the device of neighbors='gpu' ({self.name}) has too little memory: {error}; "
                "use fewer points, or another index"
            ) from error


class CupyArrays(Arrays):
    """Arrays of CuPy, on the current device of CUDA."""

    name = "cupy"

    def __init__(self) -> None:
        super().__init__()
        import cupy

        cupy.cuda.runtime.getDevice()  # raises without a device
        self.module = cupy
        self.out_of_memory = (MemoryError, cupy.cuda.memory.OutOfMemoryError)

    def upload(self, array: NDArray[Any]) -> Any:
        """See `Arrays.upload`."""
        return self.module.asarray(array)

    def put(self, target: Any, array: NDArray[Any]) -> None:
        """See `Arrays.put`."""
        target.set(array)

    def begin_download(self, *arrays: Any) -> Download:
        """See `Arrays.begin_download`; CuPy waits at once."""
        copies = [self.module.asnumpy(array) for array in arrays]
        return lambda: copies

    def product(self, a: Any, b: Any) -> Any:
        """See `Arrays.product`; cuBLAS sums in float32 unless CuPy is told otherwise."""
        return a @ b.T

    def order(self, values: Any) -> Any:
        """See `Arrays.order`."""
        return self.module.argsort(values, axis=1)  # CuPy sorts stably

    def free_memory(self) -> int:
        """See `Arrays.free_memory`."""
        pool = self.module.get_default_memory_pool()
        return int(self.module.cuda.runtime.memGetInfo()[0]) + int(pool.free_bytes())


class TorchArrays(Arrays):
    """Tensors of PyTorch, on a device of CUDA or on the processor."""

    def __init__(self, device: str) -> None:
        super().__init__()
        import torch

        self.name = f"torch on {device}"
        self.module = torch
        self.half, self.single, self.double = torch.float16, torch.float32, torch.float64
        self.integer = torch.int64
        self.device = torch.device(device)
        self.on_gpu = self.device.type == "cuda"
        self.out_of_memory = (MemoryError, torch.cuda.OutOfMemoryError)

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """See `Arrays.empty`."""
        return self.module.empty(shape, dtype=dtype, device=self.device)

    def upload(self, array: NDArray[Any]) -> Any:
        """See `Arrays.upload`."""
        if not array.flags.writeable:  # PyTorch warns, though nothing writes to it
            array = array.copy()
        here = self.module.from_numpy(array)
        if self.on_gpu and SMALL < array.nbytes <= MOST_PINNED:
            here = self.module.empty(here.shape, dtype=here.dtype, pin_memory=True).copy_(here)
        return here.to(self.device, non_blocking=True)

    def put(self, target: Any, array: NDArray[Any]) -> None:
        """See `Arrays.put`."""
        target.copy_(self.module.from_numpy(array), non_blocking=True)

    def begin_download(self, *arrays: Any) -> Download:
        """See `Arrays.begin_download`."""
        if not self.on_gpu:
            return lambda: [array.numpy() for array in arrays]
        torch = self.module
        copies = [torch.empty(array.shape, dtype=array.dtype, pin_memory=True) for array in arrays]
        for copy, array in zip(copies, arrays, strict=True):
            copy.copy_(array, non_blocking=True)
        done = torch.cuda.Event()
        done.record(torch.cuda.current_stream(self.device))

        def wait() -> list[NDArray[Any]]:
            done.synchronize()
            return [copy.numpy() for copy in copies]

        return wait

    def cast(self, array: Any, dtype: Any) -> Any:
        """See `Arrays.cast`."""
        return array.to(dtype)

    def bits(self, array: Any) -> Any:
        """See `Arrays.bits`."""
        return array.view(self.module.int32).to(self.integer)

    def product(self, a: Any, b: Any) -> Any:
        """See `Arrays.product`."""
        torch = self.module
        if a.dtype != torch.float16:
            return a @ b.T
        if not self.on_gpu:
            return (a.float() @ b.float().T).half()
        settings = torch.backends.cuda.matmul
        before = {name: getattr(settings, name) for name in HALF_SUMS if hasattr(settings, name)}
        for name in before:
            setattr(settings, name, False)
        try:
            return torch.mm(a, b.T)
        finally:
            for name, value in before.items():
                setattr(settings, name, value)

    def largest(self, values: Any, count: int) -> tuple[Any, Any]:
        """See `Arrays.largest`."""
        found, positions = self.module.topk(values, min(count, values.shape[1]), 1, sorted=False)
        return found, positions

    def progressions(self, first: Any, steps: Any, step: int) -> Any:
        """See `Arrays.progressions`."""
        return self.module.add(first[:, :, None], steps, alpha=step)

    def order(self, values: Any) -> Any:
        """See `Arrays.order`."""
        return self.module.argsort(values, dim=1, stable=True)

    def take(self, values: Any, positions: Any) -> Any:
        """See `Arrays.take`."""
        return self.module.gather(values, 1, positions)

    def take_rows(self, values: Any, rows: Any) -> Any:
        """See `Arrays.take_rows`."""
        if rows.shape[0] > FEW:
            return values[rows]
        found = values.index_select(0, rows.reshape(-1))
        return found.reshape(*rows.shape, *values.shape[1:])

    def most(self, values: Any, axis: int) -> Any:
        """See `Arrays.most`."""
        return self.module.amax(values, dim=axis)

    def least(self, values: Any) -> Any:
        """See `Arrays.least`."""
        return self.module.amin(values, dim=1)

    def total(self, values: Any, axis: int) -> Any:
        """See `Arrays.total`."""
        return values.sum(dim=axis)

    def every(self, values: Any) -> Any:
        """See `Arrays.every`."""
        return values.all(dim=1)

    def sqrt(self, values: Any) -> Any:
        """See `Arrays.sqrt`; on the processor, PyTorch may not round it as IEEE 754 has it."""
        if self.on_gpu:
            return values.sqrt()
        return self.module.from_numpy(np.sqrt(values.numpy()))

    def arange(self, count: int) -> Any:
        """See `Arrays.arange`."""
        return self.module.arange(count, device=self.device)

    def free_memory(self) -> int:
        """See `Arrays.free_memory`."""
        if not self.on_gpu:
            return 2**30
        cuda = self.module.cuda
        held = cuda.memory_reserved(self.device) - cuda.memory_allocated(self.device)
        return int(cuda.mem_get_info(self.device)[0]) + int(held)


def arrays_of(backend: object) -> Arrays:
    """Return the arrays with a name; "auto": PyTorch with CUDA, otherwise CuPy.

    Raises
    ------
    ImportError
        The package is not installed.
    RuntimeError
        There is no GPU.

    Examples
    --------
    >>> from dynhac.neighbors.gpu_arrays import arrays_of
    >>> arrays_of("numpy").name
    'numpy'
    """
    if backend not in BACKENDS:
        error = ValueError if isinstance(backend, str) else InvalidTypeError
        names = ", ".join(map(repr, BACKENDS[:-1]))
        raise error(f"arrays is {show(backend)}; it must be {names} or {BACKENDS[-1]!r}")
    if backend == "numpy":
        return Arrays()
    if backend == "torch-cpu":
        return TorchArrays("cpu")
    failures: list[Exception] = []
    for name, make in (("torch", _torch_with_cuda), ("cupy", CupyArrays)):
        if backend not in ("auto", name):
            continue
        try:
            return make()
        except ImportError as error:
            failures.append(ImportError(f"{name} is not installed"))
            failures[-1].__cause__ = error
        except Exception as error:  # of the package's own kind: the driver, the device
            failures.append(RuntimeError(f"{name} finds no GPU: {error}"))
            failures[-1].__cause__ = error
    kind = RuntimeError if any(isinstance(e, RuntimeError) for e in failures) else ImportError
    raise kind(
        f"neighbors='gpu' needs a GPU with CUDA: {'; '.join(map(str, failures))}; {INSTALL}"
    ) from failures[-1]


def _torch_with_cuda() -> Arrays:
    import torch

    if not torch.cuda.is_available():
        raise RuntimeError("torch.cuda.is_available() is False")
    return TorchArrays(f"cuda:{torch.cuda.current_device()}")
