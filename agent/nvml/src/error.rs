//! What goes wrong with NVML, in closed sets.

use std::path::PathBuf;

use nvml_wrapper::error::NvmlError as Raw;
use strum::{IntoStaticStr, VariantArray};

/// Why NVML cannot be used on this machine.
#[derive(Debug, thiserror::Error)]
pub enum NvmlError {
    /// The library cannot be loaded: no NVIDIA driver, or not visible to this process.
    #[error(
        "NVML is absent: {library} cannot be loaded ({source}). Without a GPU that is as it should be; with one, make the driver's libraries visible to the agent"
    )]
    Absent {
        /// The library that was tried.
        library: PathBuf,
        /// What the loader said.
        source: Raw,
    },
    /// The library is there and refuses to start.
    #[error("NVML does not start ({}): {source}", reason.as_str())]
    Start {
        /// The reason, of a closed set.
        reason: Reason,
        /// What NVML said.
        source: Raw,
    },
    /// The sampling thread could not be started.
    #[error("the sampling thread cannot be started: {0}")]
    Thread(#[from] std::io::Error),
}

/// Why a call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Reason {
    /// A GPU fell off the bus.
    GpuLost,
    /// A GPU must be reset first.
    ResetRequired,
    /// The kernel module is not loaded.
    DriverNotLoaded,
    /// The library and the kernel module are of different versions.
    VersionMismatch,
    /// The library was shut down.
    Uninitialized,
    /// The driver, or the container's device rules, do not allow it.
    NoPermission,
    /// The driver did not answer in time.
    Timeout,
    /// Any other code of NVML.
    Other,
}

impl Reason {
    /// All of them.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// The label's value.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Whether the library must be opened anew before anything works again.
    pub(crate) const fn ends_session(self) -> bool {
        matches!(
            self,
            Self::DriverNotLoaded | Self::VersionMismatch | Self::Uninitialized
        )
    }

    /// Whether the device is gone, others may still work.
    pub(crate) const fn ends_device(self) -> bool {
        matches!(self, Self::GpuLost | Self::ResetRequired)
    }
}

/// What a call came to, other than a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The device or the driver has no such thing.
    Unsupported,
    /// There is nothing to tell at the moment.
    NoData,
    /// The call failed for this reason.
    Error(Reason),
}

impl From<Raw> for Failure {
    fn from(error: Raw) -> Self {
        match error {
            Raw::NotSupported | Raw::FunctionNotFound | Raw::FailedToLoadSymbol(_) => Self::Unsupported,
            Raw::NotFound | Raw::NoData => Self::NoData,
            other => Self::Error(reason(&other)),
        }
    }
}

pub(crate) const fn reason(error: &Raw) -> Reason {
    match error {
        Raw::GpuLost => Reason::GpuLost,
        Raw::ResetRequired => Reason::ResetRequired,
        Raw::DriverNotLoaded | Raw::LibraryNotFound | Raw::LibloadingError(_) => Reason::DriverNotLoaded,
        Raw::LibRmVersionMismatch => Reason::VersionMismatch,
        Raw::Uninitialized => Reason::Uninitialized,
        Raw::NoPermission | Raw::OperatingSystem => Reason::NoPermission,
        Raw::Timeout => Reason::Timeout,
        _ => Reason::Other,
    }
}
