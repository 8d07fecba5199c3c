"""Frameworks that can tell a region's GPU time and memory, found among the modules that the program has loaded.

Nothing is imported and no GPU is initialised for a region: a program that uses no GPU does not start to, and the first region of a program that does
costs no start-up.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Protocol

from flopwatch._native import FlopwatchError, Mark, Marks


class Backend(Protocol):
    """What a framework offers to a region."""

    #: Its name in entries.
    name: str

    def mark(self, device: int, /) -> Mark | None:
        """A mark in the current stream of the device; ``None`` where none can be made there and then."""

    def synchronize(self, device: int, /) -> None:
        """Waits until the GPU has come to all marks."""

    def memory(self, device: int, /) -> tuple[int, int] | None:
        """Bytes in use, and the most so far; ``None`` where it is not known."""


_marks: dict[int, Marks | None] = {}


def _marks_of(device: int) -> Marks | None:
    """Marks of a device; ``None`` where CUDA's driver has none, as where the framework drives another maker's GPU."""
    try:
        made = Marks(device)
    except FlopwatchError:
        made = None
    return _marks.setdefault(device, made)


class PyTorch:
    """PyTorch with an initialised CUDA."""

    name = "pytorch"

    def __init__(self, torch: Any) -> None:
        self._cuda = torch.cuda
        # What the compiler of PyTorch itself asks; the public way makes an object of each answer.
        raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)
        self._stream: Callable[[int], int] = raw or (lambda device: int(torch.cuda.current_stream(device).cuda_stream))

    def mark(self, device: int) -> Mark | None:
        marks = _marks.get(device) or _marks_of(device)
        return None if marks is None else marks.mark(self._stream(device))

    def synchronize(self, device: int) -> None:
        self._cuda.synchronize(device)

    def memory(self, device: int) -> tuple[int, int] | None:
        stats = self._cuda.memory_stats_as_nested_dict(device).get("allocated_bytes", {}).get("all")
        return (stats["current"], stats["peak"]) if stats else (0, 0)


class CuPy:
    """CuPy."""

    name = "cupy"

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy

    def mark(self, device: int) -> Mark | None:
        marks = _marks.get(device) or _marks_of(device)
        return None if marks is None else marks.mark(self._cupy.cuda.get_current_stream(device).ptr)

    def synchronize(self, device: int) -> None:
        with self._cupy.cuda.Device(device) as of:
            of.synchronize()

    def memory(self, device: int) -> tuple[int, int] | None:
        with self._cupy.cuda.Device(device):
            return self._cupy.get_default_memory_pool().used_bytes(), 0


class Jax:
    """JAX, which has no marks in its streams: a region has its host time alone, and its GPU time in a capture."""

    name = "jax"

    def mark(self, _device: int) -> Mark | None:
        return None

    def synchronize(self, _device: int) -> None:
        return None

    def memory(self, _device: int) -> tuple[int, int] | None:
        return None


def _jax_has_gpu() -> bool:
    bridge = sys.modules.get("jax._src.xla_bridge")
    initialised = getattr(bridge, "backends_are_initialized", None)
    # Asking JAX for its devices would initialise them.
    if initialised is None or not initialised():
        return False
    return bool(sys.modules["jax"].default_backend() == "gpu")


_made: dict[str, Backend] = {}


def find() -> Backend | None:
    """The framework that drives a GPU in this process, if one does by now."""
    modules = sys.modules
    torch = modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    if cuda is not None and cuda.is_initialized():
        return _made.setdefault("pytorch", PyTorch(torch))
    cupy = modules.get("cupy")
    if cupy is not None:
        known = _made.get("cupy")
        if known is None and cupy.cuda.is_available():
            known = _made["cupy"] = CuPy(cupy)
        return known
    if "jax" in modules and _jax_has_gpu():
        return _made.setdefault("jax", Jax())
    return None
