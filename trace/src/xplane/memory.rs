//! What the allocators of devices do while XLA profiles: events `MemoryAllocation` and
//! `MemoryDeallocation` of threads of the host.
//!
//! An allocator of GPUs (BFC) has its name (`GPU_0_bfc`), one of TPUs its index on the host. All
//! that an allocator has, given out or not, is what it gave out, what it has left and what it keeps
//! back; how scattered the rest is becomes a series, as does the most that it ever gave out.

use super::Failure;
use super::fill::Fill;
use super::plane::{Plane, Stat};
use crate::wire::Message;
use flopwatch_model::Allocation;

/// How scattered what is left lies, from 0 to 1, as the allocator says.
pub(super) const FRAGMENTATION: &str = "memory_fragmentation";
/// The most bytes that were in use since the process began.
pub(super) const PEAK: &str = "memory_peak_in_use";

/// What such an event says.
#[derive(Debug, Default)]
struct MemoryEvent {
    device: Option<u32>,
    size: Option<u64>,
    address: u64,
    allocated: Option<u64>,
    available: Option<u64>,
    kept_back: Option<u64>,
    fragmentation: Option<f64>,
    peak: Option<u64>,
}

impl MemoryEvent {
    fn take(&mut self, name: &[u8], value: &Stat) {
        match (name, value) {
            (b"allocator_name", Stat::Text(text)) => self.device = device(text),
            (b"index_on_host" | b"device_ordinal", value) => {
                let index = value.integer().and_then(|index| u32::try_from(index).ok());
                self.device = self.device.or(index);
            }
            (b"allocation_bytes", value) => self.size = value.integer(),
            (b"addr", value) => self.address = value.integer().unwrap_or(0),
            (b"bytes_allocated", value) => self.allocated = value.integer(),
            (b"bytes_available", value) => self.available = value.integer(),
            (b"bytes_reserved", value) => self.kept_back = value.integer(),
            (b"fragmentation", Stat::Double(value)) if value.is_finite() => self.fragmentation = Some(*value),
            (b"peak_bytes_in_use", value) => self.peak = value.integer(),
            _ => {}
        }
    }
}

/// The device of `GPU_0_bfc`; none of an allocator of the host's memory.
fn device(allocator: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(allocator).ok()?;
    let number = text.strip_prefix("GPU_")?.split('_').next()?;
    number.parse().ok()
}

impl Fill<'_> {
    /// Keeps what an allocator did at the biased time `at` on the thread `thread`, where the event
    /// `name` says that.
    pub(super) fn allocation(
        &mut self,
        name: &[u8],
        (at, thread): (u64, u64),
        (message, plane): (Message<'_>, &Plane<'_>),
    ) -> Result<(), Failure> {
        let is_given_out = match name {
            b"MemoryAllocation" => true,
            b"MemoryDeallocation" => false,
            _ => return Ok(()),
        };
        let mut event = MemoryEvent::default();
        for field in message.fields() {
            let (4, value) = field? else { continue };
            let Some(stat) = value.message() else { continue };
            if let Some((name, value)) = plane.stat(stat, |_| true)? {
                event.take(name, &value);
            }
        }
        let size = event.size.and_then(|size| i64::try_from(size).ok()).unwrap_or(0);
        // One that gives out nothing says nothing.
        if is_given_out && size == 0 {
            return Ok(());
        }
        let parts = [event.allocated, event.available, event.kept_back];
        let all = parts.into_iter().flatten().fold(0, u64::saturating_add);
        self.capture.allocations.push(Allocation {
            t_ns: at,
            process: 0,
            thread: Some(thread),
            correlation: 0,
            device: event.device,
            kind: None,
            address: event.address,
            bytes: if is_given_out { size } else { -size },
            allocated: event.allocated,
            reserved: event.available.map(|_| all),
        });
        let Some(device) = event.device else {
            return Ok(());
        };
        let peak = event.peak.map(|peak| flopwatch_model::approximate(peak.into()));
        for (metric, value) in [(FRAGMENTATION, event.fragmentation), (PEAK, peak)] {
            if let Some(value) = value {
                self.sample((format!("gpu{device}"), metric.to_owned()), at, value)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allocator_is_that_of_its_device() {
        assert_eq!(device(b"GPU_3_bfc"), Some(3));
        assert_eq!(device(b"gpu_host_bfc"), None);
        assert_eq!(device(b"GPU_x_bfc"), None);
    }
}
