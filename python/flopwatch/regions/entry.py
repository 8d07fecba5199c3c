"""What a profiler of regions gives: one entry per call, one summary per operation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class ProfileEntry:
    """One call of an operation. What was not measured is ``None``, never 0."""

    operation: str
    #: Start in seconds since the Unix epoch.
    start_time: float
    #: End in seconds since the Unix epoch.
    end_time: float
    #: Length in ms by the host's clock.
    duration_ms: float
    #: ``gpu`` where GPU time was measured or a GPU framework ran, otherwise ``cpu``.
    device: str
    #: ``pytorch``, ``cupy``, ``jax`` or ``cpu``.
    backend: str
    #: Time in ms between the region's two marks in the current stream of the GPU.
    gpu_time_ms: float | None = None
    #: Processor time of the calling thread in ms.
    cpu_time_ms: float | None = None
    #: Time of copies in ms. Only captures know it.
    transfer_time_ms: float | None = None
    #: Time inside of the CUDA API in ms. Only captures know it.
    overhead_ms: float | None = None
    #: Device memory that the region kept in use, in units of 2^20 bytes; below 0 where it gave memory back.
    memory_allocated_mb: float | None = None
    #: Most device memory in use so far, in units of 2^20 bytes, where the region raised it.
    memory_peak_mb: float | None = None
    #: GPU time of the length, in percent.
    gpu_utilization: float | None = None
    #: Bytes copied by the time of the copies, in 10^9 bytes per second. Only captures know it.
    memory_bandwidth_gb_s: float | None = None
    #: What the caller gave to ``profile``.
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProfileSummary:
    """Figures of all calls of one operation, those without an entry included."""

    operation: str
    call_count: int
    #: Sum of the lengths in ms.
    total_time_ms: float
    avg_time_ms: float
    min_time_ms: float
    max_time_ms: float
    #: Sample standard deviation (n - 1) of the lengths in ms; 0 of one call.
    std_dev_ms: float
    #: Sum of the GPU times that were measured; ``None`` where none was.
    total_gpu_time_ms: float | None
    #: Sum of the processor times in ms.
    total_cpu_time_ms: float | None
    #: Mean of ``memory_allocated_mb``.
    avg_memory_mb: float | None
    #: GPU time of the length of the calls that have one, in percent.
    avg_gpu_utilization: float | None
