//! The transform's child: the GPU's engine inside the sandbox and the bounds that the agent gives
//! it.

use std::time::{Duration, Instant};

use anyhow::Result;
use flopwatch_attach::reexec::{End, Reexec};
use flopwatch_attach::sandbox::{self, MemoryBound, Sandboxed};
use flopwatch_cuda::kernels;
use flopwatch_pipeline::steps::Limits;
use serde::Serialize;

/// The user that the child becomes.
const CHILD_UID: u32 = 4321;
const CHILD_TIMEOUT: Duration = Duration::from_mins(1);

/// How the child ended.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct ChildResult {
    pub(crate) events: u64,
    pub(crate) memory_bytes: u64,
    pub(crate) seconds: f64,
    /// Why it failed; absent where it ran on the GPU.
    pub(crate) failed: Option<String>,
    /// Protections that could not be applied.
    pub(crate) missing: Vec<String>,
}

/// Runs this program once in the sandbox.
pub(crate) fn run(events: u64) -> Result<ChildResult> {
    let own = std::env::current_exe()?;
    let limits = Limits::default();
    let folder = tempfile::Builder::new().prefix("flopwatch-child-").tempdir()?;
    if nix::unistd::geteuid().is_root() {
        nix::unistd::chown(folder.path(), Some(CHILD_UID.into()), Some(CHILD_UID.into()))?;
    }
    let library = kernels::find()?;
    let command = [&own.to_string_lossy(), "kernels", &events.to_string()].map(str::to_owned);
    let sandboxed = Sandboxed {
        command: command.to_vec(),
        environment: vec![(kernels::ENVIRONMENT.to_owned(), library.to_string_lossy().into_owned())],
        directory: folder.path().to_owned(),
        readable: vec![own, library],
        gpu: true,
        user: CHILD_UID,
        memory_bytes: limits.memory_bytes,
        memory: MemoryBound::Data,
        cgroups: None,
        file_bytes: limits.file_bytes,
        processes: 4096,
        cpu_seconds: 2 * CHILD_TIMEOUT.as_secs(),
        deadline: CHILD_TIMEOUT,
        whole: false,
    };
    let begin = Instant::now();
    let output = sandbox::run(&Reexec::default(), &sandboxed)?;
    let ended = (output.end != End::Exited(0)).then(|| format!("{:?}: {}", output.end, output.last_words()));
    Ok(ChildResult {
        events,
        memory_bytes: limits.memory_bytes,
        seconds: begin.elapsed().as_secs_f64(),
        failed: ended,
        missing: output.missing,
    })
}
