//! What is sampled, and in which units.

use std::fmt;

use strum::IntoStaticStr;

/// A quantity. Values are in base units: see [`Metric::unit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
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
    /// 1 while the driver or the board lowers the clocks for power, else 0.
    PowerThrottle,
    /// 1 while the driver or the board lowers the clocks for temperature, else 0.
    ThermalThrottle,
    /// 1 while the board at least halves the clocks, whatever for, else 0.
    HardwareSlowdown,
    /// Bytes that the GPU receives over PCIe, measured over 20 ms about once a second.
    PcieReceive,
    /// Bytes that the GPU sends over PCIe, measured over 20 ms about once a second.
    PcieTransmit,
    /// Share of the time in which a multiprocessor had work, averaged over all of them (GPM).
    SmActivity,
    /// Warps that were resident on the multiprocessors, as a share of the most that fit (GPM).
    SmOccupancy,
    /// Share of the time in which tensor cores worked (GPM).
    TensorActivity,
    /// Share of the time in which the units for FP64 worked, tensor cores aside (GPM).
    Fp64Activity,
    /// Share of the time in which the units for FP32 worked, tensor cores aside (GPM).
    Fp32Activity,
    /// Share of the time in which the units for FP16 worked, tensor cores aside (GPM).
    Fp16Activity,
    /// Bandwidth of the device memory that was used, as a share of the most that it gives (GPM).
    DramBandwidthUtilization,
    /// Bytes that the GPU received over PCIe, the mean between two samples (GPM).
    PcieReceiveMean,
    /// Bytes that the GPU sent over PCIe, the mean between two samples (GPM).
    PcieTransmitMean,
    /// Bytes that the GPU received over all its NVLinks, the mean between two samples (GPM).
    NvlinkReceiveMean,
    /// Bytes that the GPU sent over all its NVLinks, the mean between two samples (GPM).
    NvlinkTransmitMean,
    /// Device memory in use by processes.
    ProcessMemoryUsed,
    /// Share of the driver's last sample in which kernels of processes ran.
    ProcessSmUtilization,
}

/// The units of [`Metric`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
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
    /// Those of a device, in the order of their display, but for PCIe, which takes the driver 20 ms
    /// each.
    pub const QUICK: [Self; 11] = [
        Self::Utilization,
        Self::MemoryUtilization,
        Self::MemoryUsed,
        Self::MemoryTotal,
        Self::Power,
        Self::SmClock,
        Self::MemoryClock,
        Self::Temperature,
        Self::PowerThrottle,
        Self::ThermalThrottle,
        Self::HardwareSlowdown,
    ];

    /// The slow ones of a device.
    pub const PCIE: [Self; 2] = [Self::PcieReceive, Self::PcieTransmit];

    /// Those of GPU Performance Monitoring (GPM, Hopper and newer): each is of the time between two
    /// samples.
    pub const GPM: [Self; 11] = [
        Self::SmActivity,
        Self::SmOccupancy,
        Self::TensorActivity,
        Self::Fp64Activity,
        Self::Fp32Activity,
        Self::Fp16Activity,
        Self::DramBandwidthUtilization,
        Self::PcieReceiveMean,
        Self::PcieTransmitMean,
        Self::NvlinkReceiveMean,
        Self::NvlinkTransmitMean,
    ];

    /// Whether it is of GPU Performance Monitoring.
    pub fn is_gpm(self) -> bool {
        Self::GPM.contains(&self)
    }

    /// Name in snake case, stable.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Unit of the values.
    pub const fn unit(self) -> Unit {
        match self {
            Self::Utilization
            | Self::MemoryUtilization
            | Self::PowerThrottle
            | Self::ThermalThrottle
            | Self::HardwareSlowdown
            | Self::SmActivity
            | Self::SmOccupancy
            | Self::TensorActivity
            | Self::Fp64Activity
            | Self::Fp32Activity
            | Self::Fp16Activity
            | Self::DramBandwidthUtilization
            | Self::ProcessSmUtilization => Unit::Ratio,
            Self::MemoryUsed | Self::MemoryTotal | Self::ProcessMemoryUsed => Unit::Bytes,
            Self::Power => Unit::Watts,
            Self::SmClock | Self::MemoryClock => Unit::Hertz,
            Self::Temperature => Unit::Celsius,
            Self::PcieReceive
            | Self::PcieTransmit
            | Self::PcieReceiveMean
            | Self::PcieTransmitMean
            | Self::NvlinkReceiveMean
            | Self::NvlinkTransmitMean => Unit::BytesPerSecond,
        }
    }
}

impl Unit {
    /// Name in snake case, as metric names end.
    pub fn as_str(self) -> &'static str {
        self.into()
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
