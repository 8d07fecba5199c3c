//! The library's state, and what a handle stands for.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nvml_wrapper_sys::bindings as sys;

use crate::gpm::Samples;
use crate::processes::Processes;
use crate::state::{Device, Partition, Process, State, Value, read};

/// How long a look at the file holds: real NVML reads none, and what it costs is measured with this
/// one.
const MAX_READING_AGE: Duration = Duration::from_millis(5);

/// What tells one state of the file from the next: inode, time of change and length. The inode
/// tells two files apart that were renamed into place within one tick of the file system's clock.
type Stamp = Option<(u64, SystemTime, u64)>;

/// Everything between `nvmlInit` and `nvmlShutdown`.
#[derive(Debug)]
pub(crate) struct Library {
    users: u32,
    stamp: Stamp,
    looked: Option<Instant>,
    state: Option<State>,
    processes: Processes,
    pub(crate) samples: Samples,
}

static LIBRARY: Mutex<Library> = Mutex::new(Library {
    users: 0,
    stamp: None,
    looked: None,
    state: None,
    processes: Processes::new(),
    samples: Samples::new(),
});

/// Which GPU or partition a handle stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) device: usize,
    pub(crate) partition: Option<usize>,
}

/// A handle is a number, never an address: 1 + GPU, with 1 + partition in the upper half.
impl Position {
    pub(crate) const fn to_handle(self) -> sys::nvmlDevice_t {
        let partition = match self.partition {
            Some(partition) => partition + 1,
            None => 0,
        };
        std::ptr::without_provenance_mut((partition << 16) | (self.device + 1))
    }

    pub(crate) fn of_handle(handle: sys::nvmlDevice_t) -> Result<Self, sys::nvmlReturn_t> {
        let number = handle.addr();
        let device = (number & 0xffff)
            .checked_sub(1)
            .ok_or(sys::nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT)?;
        Ok(Self {
            device,
            partition: (number >> 16).checked_sub(1),
        })
    }
}

/// What a handle stands for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Unit<'a> {
    Device(&'a Device),
    Partition(&'a Partition),
}

impl<'a> Unit<'a> {
    pub(crate) fn device(self) -> Result<&'a Device, sys::nvmlReturn_t> {
        match self {
            Self::Device(device) => Ok(device),
            Self::Partition(_) => Err(sys::nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED),
        }
    }

    /// What its GPM counts.
    pub(crate) fn gpm(self) -> Option<&'a BTreeMap<String, Value>> {
        match self {
            Self::Device(device) => device.gpm.as_ref(),
            Self::Partition(partition) => partition.gpm.as_ref(),
        }
    }

    pub(crate) fn processes(self) -> &'a [Process] {
        match self {
            Self::Device(device) => &device.processes,
            Self::Partition(partition) => &partition.processes,
        }
    }
}

/// A process that runs on a unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Running<'a> {
    pub(crate) pid: u32,
    pub(crate) process: &'a Process,
}

impl Library {
    /// The one library of this process.
    pub(crate) fn lock() -> MutexGuard<'static, Self> {
        LIBRARY.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn start(&mut self) -> Result<(), sys::nvmlReturn_t> {
        (self.stamp, self.looked) = (None, None);
        self.refresh()?;
        self.users += 1;
        Ok(())
    }

    pub(crate) fn stop(&mut self) -> Result<(), sys::nvmlReturn_t> {
        self.users = self
            .users
            .checked_sub(1)
            .ok_or(sys::nvmlReturn_enum_NVML_ERROR_UNINITIALIZED)?;
        Ok(())
    }

    /// The state now. A file that vanishes while the library is in use is a GPU that fell off the
    /// bus.
    pub(crate) fn state(&mut self, function: &str) -> Result<(&State, &mut Processes), sys::nvmlReturn_t> {
        if self.users == 0 {
            return Err(sys::nvmlReturn_enum_NVML_ERROR_UNINITIALIZED);
        }
        self.refresh().map_err(|code| match code {
            sys::nvmlReturn_enum_NVML_ERROR_DRIVER_NOT_LOADED => sys::nvmlReturn_enum_NVML_ERROR_GPU_IS_LOST,
            other => other,
        })?;
        let state = self.state.as_ref().ok_or(sys::nvmlReturn_enum_NVML_ERROR_UNKNOWN)?;
        state.let_pass(function)?;
        Ok((state, &mut self.processes))
    }

    fn refresh(&mut self) -> Result<(), sys::nvmlReturn_t> {
        if self.looked.is_some_and(|looked| looked.elapsed() < MAX_READING_AGE) {
            return Ok(());
        }
        let path = std::env::var_os("FLOPWATCH_FAKE_NVML").map(PathBuf::from);
        let stamp = path.as_ref().and_then(|path| path.metadata().ok()).map(|metadata| {
            let changed = metadata.modified().unwrap_or(UNIX_EPOCH);
            (metadata.ino(), changed, metadata.len())
        });
        if stamp.is_none() || stamp != self.stamp {
            self.state = Some(read(path.as_deref())?);
            self.stamp = stamp;
        }
        self.looked = Some(Instant::now());
        Ok(())
    }
}

impl State {
    pub(crate) fn unit(&self, place: Position) -> Result<Unit<'_>, sys::nvmlReturn_t> {
        let invalid = sys::nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT;
        let device = self.devices.get(place.device).ok_or(invalid)?;
        match place.partition {
            None => Ok(Unit::Device(device)),
            Some(partition) => device.partitions.get(partition).map(Unit::Partition).ok_or(invalid),
        }
    }
}

/// The processes of a unit, those named by `comm` looked up.
pub(crate) fn running<'a>(unit: Unit<'a>, processes: &mut Processes) -> Vec<Running<'a>> {
    let mut running = Vec::new();
    for process in unit.processes() {
        let named = process
            .comm
            .as_deref()
            .map(|comm| processes.named(comm))
            .unwrap_or_default();
        running.extend(process.pid.into_iter().chain(named).map(|pid| Running { pid, process }));
    }
    running
}

/// The value now, or `NOT_SUPPORTED` where the file has none.
pub(crate) fn supported(value: Option<&Value>) -> Result<u64, sys::nvmlReturn_t> {
    value
        .map(Value::now)
        .ok_or(sys::nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED)
}

/// The same for fields of 32 bits.
pub(crate) fn supported_u32(value: Option<&Value>) -> Result<u32, sys::nvmlReturn_t> {
    supported(value).map(|value| u32::try_from(value).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_stands_for_one_place() {
        for place in [
            Position {
                device: 0,
                partition: None,
            },
            Position {
                device: 7,
                partition: None,
            },
            Position {
                device: 7,
                partition: Some(0),
            },
            Position {
                device: 0,
                partition: Some(6),
            },
        ] {
            assert_eq!(Position::of_handle(place.to_handle()), Ok(place));
        }
        assert!(Position::of_handle(std::ptr::null_mut()).is_err());
    }
}
