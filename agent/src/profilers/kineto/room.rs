//! What there is in a container and on its node for a window: memory for its events, and room for
//! its traces.

use flopwatch_api::reason::CaptureReason;
use flopwatch_attach::bounded::Gate;
use flopwatch_attach::usage::memory::{MemoryUsage, of_node};
use flopwatch_pipeline::disk::size;
use flopwatch_pipeline::failure::Failure;

use super::Collection;
use super::budget::{Means, Memory};
use super::trace_directory::TraceDirectory;
use crate::bound::Bound;
use crate::profilers::Site;

/// What there is for a window.
#[derive(Debug)]
pub(super) struct Room {
    /// Most bytes of its traces.
    pub(super) traces: Bound,
    traces_in_memory: bool,
    /// The container's memory; none where nobody counts it.
    container: Option<MemoryUsage>,
}

impl Room {
    /// Looks at the container. Fails where there is no room for traces.
    pub(super) fn inspect(gate: &Gate, site: &Site, collection: &Collection) -> Result<Self, Failure> {
        let place = TraceDirectory::of(gate, site, collection, CaptureReason::AttachFailed);
        let (volume, traces_in_memory) = place.inspect(|folder| Ok((folder.volume()?, folder.is_in_memory()?)))?;
        let above = site.limits.floor.above(volume).map_err(|short| {
            let (free, floor) = (size(short.free), size(short.floor));
            let message = format!(
                "the disk of {} in the container has {free} free and the agent must leave {floor} (--min-free-bytes, \
                 --min-free-percent): free some space there, or set TMPDIR of the program to a larger volume",
                collection.temporary
            );
            Failure::new(CaptureReason::DiskSpace, message)
        })?;
        let traces = Bound::of(site.limits.capture_bytes, site.pod_room, above);
        traces.check()?;
        Ok(Self {
            traces,
            traces_in_memory,
            container: site.containers.memory(&site.container_id),
        })
    }

    /// What of it there is now.
    pub(super) fn means(&self, site: &Site) -> Means {
        let container = self.container.as_ref().and_then(|container| container.read().ok());
        let node = of_node(&site.containers.procfs());
        Means {
            memory: Memory::of(
                container.and_then(|container| container.room),
                node,
                site.limits.window_memory_bytes,
            ),
            traces: self.traces,
            traces_in_memory: self.traces_in_memory,
        }
    }

    /// Bytes of memory that the container holds now; none where nobody counts them.
    pub(super) fn held_bytes(&self) -> Option<u64> {
        let read = self.container.as_ref()?.read().ok()?;
        Some(read.used_bytes)
    }
}
