//! Where a profiler collects for a capture, and the bounds that it keeps.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use flopwatch_attach::process::ProcessId;
use flopwatch_pipeline::disk::Floor;

use super::containers::Containers;

/// Bounds of what this node's captures may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Captures that are recorded at once, and that are processed at once.
    pub captures: usize,
    /// Bytes of one raw capture.
    pub capture_bytes: u64,
    /// Bytes of memory that a window may take which cannot be ended.
    pub window_memory_bytes: u64,
    /// Disk space to leave free.
    pub floor: Floor,
}

/// Where a capture collects, and within which bounds.
#[derive(Clone, Debug)]
pub struct Site {
    /// The node's containers.
    pub containers: Arc<dyn Containers>,
    /// The container, as the runtime names it.
    pub container_id: String,
    /// One of its processes.
    pub process: ProcessId,
    /// UID of the capture.
    pub capture: String,
    /// Folder of the capture, for its raw files.
    pub folder: PathBuf,
    /// Bounds of the node's captures.
    pub limits: Limits,
    /// Bytes that captures may take of the pod's ephemeral storage; none where nothing limits them.
    pub pod_room: Option<u64>,
    /// Length of the window.
    pub length: Duration,
}
