//! What is sampled, and in which units.

use std::fmt;

/// A quantity. Values are in base units: see [`Metric::unit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Metric {
    /// Share of the driver's last window in which a kernel ran.
    Utilization,
    /// Share of the driver's last window in which device memory was read or written.
    MemoryUtilization,
    /// Device memory in use.
    MemoryUsed,
    /// Device memory in all.
    MemoryTotal,
    /// Power drawn by the whole board.
    Power,
    /// Clock of the streaming multiprocessors.
    SmClock,
    /// Clock of the memory.
    MemoryClock,
    /// Temperature of the GPU.
    Temperature,
    /// Bytes that the GPU receives over PCIe, measured over 20 ms about once a second.
    PcieReceive,
    /// Bytes that the GPU sends over PCIe, measured over 20 ms about once a second.
    PcieTransmit,
    /// Device memory in use by processes.
    ProcessMemoryUsed,
    /// Share of the driver's last sample in which kernels of processes ran.
    ProcessSmUtilization,
}

/// The units of [`Metric`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unit {
    /// 0 to 1.
    Ratio,
    /// Bytes.
    Bytes,
    /// Watts.
    Watts,
    /// Hertz.
    Hertz,
    /// Degrees Celsius.
    Celsius,
    /// Bytes per second.
    BytesPerSecond,
}

/// What a value is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Attribution {
    /// Measured per process.
    Process,
    /// Of a MIG partition.
    Partition,
    /// Of a whole GPU, whoever uses it.
    Device,
}

impl Metric {
    /// Those of a device, in the order of their display, but for PCIe, which takes the driver 20 ms each.
    pub(crate) const QUICK: [Self; 8] = [
        Self::Utilization,
        Self::MemoryUtilization,
        Self::MemoryUsed,
        Self::MemoryTotal,
        Self::Power,
        Self::SmClock,
        Self::MemoryClock,
        Self::Temperature,
    ];

    /// The slow ones of a device.
    pub(crate) const PCIE: [Self; 2] = [Self::PcieReceive, Self::PcieTransmit];

    /// Name in snake case, stable.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Utilization => "utilization",
            Self::MemoryUtilization => "memory_utilization",
            Self::MemoryUsed => "memory_used",
            Self::MemoryTotal => "memory_total",
            Self::Power => "power",
            Self::SmClock => "sm_clock",
            Self::MemoryClock => "memory_clock",
            Self::Temperature => "temperature",
            Self::PcieReceive => "pcie_receive",
            Self::PcieTransmit => "pcie_transmit",
            Self::ProcessMemoryUsed => "process_memory_used",
            Self::ProcessSmUtilization => "process_sm_utilization",
        }
    }

    /// Unit of the values.
    pub const fn unit(self) -> Unit {
        match self {
            Self::Utilization | Self::MemoryUtilization | Self::ProcessSmUtilization => Unit::Ratio,
            Self::MemoryUsed | Self::MemoryTotal | Self::ProcessMemoryUsed => Unit::Bytes,
            Self::Power => Unit::Watts,
            Self::SmClock | Self::MemoryClock => Unit::Hertz,
            Self::Temperature => Unit::Celsius,
            Self::PcieReceive | Self::PcieTransmit => Unit::BytesPerSecond,
        }
    }
}

impl Unit {
    /// Name in snake case, as metric names end.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ratio => "ratio",
            Self::Bytes => "bytes",
            Self::Watts => "watts",
            Self::Hertz => "hertz",
            Self::Celsius => "celsius",
            Self::BytesPerSecond => "bytes_per_second",
        }
    }
}

impl Attribution {
    /// The label's value.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Partition => "partition",
            Self::Device => "device",
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
