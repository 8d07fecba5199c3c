//! The memory of the target and of its node while a window is open.
//!
//! What a profiler records lies in the memory of the programs that it records until it is taken
//! out, and nobody knows before how much that is. So the container and the node are looked at all
//! the time, and a window is ended before the kernel ends the program or the kubelet evicts a pod.

mod alarm;

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use flopwatch_api::reason::CaptureReason;
use flopwatch_api::session::StartMode;
use flopwatch_attach::process::Procfs;
use flopwatch_attach::usage::memory::{MemoryUsage, of_node};
use flopwatch_pipeline::failure::Failure;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};
use tokio_util::task::AbortOnDropHandle;
use tracing::debug;

use super::context::Context;
use crate::adoption::Attached;
use crate::overhead::MAX_POLL_INTERVAL;
use alarm::{Alarm, MemoryReading};

/// Time between two looks at a window whose end takes memory itself: the sooner it is ended, the
/// less.
const QUICK_READ_INTERVAL: Duration = Duration::from_millis(50);

/// Watches until it is dropped, or until it has found that the window is to be ended.
#[derive(Debug)]
pub(super) struct MemoryWatch {
    opened: MemoryReading,
    found: Arc<OnceLock<String>>,
    _task: AbortOnDropHandle<()>,
}

/// The counters that each reading reads.
#[derive(Debug)]
struct Sources {
    container: MemoryUsage,
    /// The profiler's own processes in the container; none where it has none.
    session: Option<MemoryUsage>,
    procfs: Procfs,
}

impl Sources {
    /// Looks for a container's counters in the tree of cgroups; none where it is not there.
    fn find(root: &Path, container_id: &str, session: Option<MemoryUsage>, procfs: Procfs) -> Option<Self> {
        let container = MemoryUsage::find(root, container_id, &procfs)
            .inspect_err(|error| debug!(%error, "nobody counts the container's memory"))
            .ok()?;
        Some(Self {
            container,
            session,
            procfs,
        })
    }

    /// Memory that the container holds and has left now; none when the container is gone.
    fn read(&self) -> Option<MemoryReading> {
        let container = self.container.read().ok()?;
        let session = self.session.as_ref().and_then(|session| session.read().ok());
        let session_bytes = session.map_or(0, |session| session.used_bytes);
        Some(MemoryReading {
            container_bytes: container.used_bytes,
            held_bytes: container.used_bytes.saturating_add(session_bytes),
            container: container.room,
            node: of_node(&self.procfs),
        })
    }
}

impl MemoryWatch {
    /// Watches from what was `opened` before the profiler attached, whose window's end takes so
    /// many bytes for each byte that it took.
    fn start(sources: Sources, opened: MemoryReading, to_end: u64) -> Self {
        let found = Arc::new(OnceLock::new());
        let tell = Arc::clone(&found);
        let task = tokio::spawn(async move {
            let (begin, sources) = (Instant::now(), Arc::new(sources));
            let mut alarm = Alarm::new(opened, to_end);
            let pause = if to_end > 0 {
                QUICK_READ_INTERVAL
            } else {
                MAX_POLL_INTERVAL
            };
            loop {
                sleep(pause).await;
                let sources = Arc::clone(&sources);
                let Ok(Some(seen)) = spawn_blocking(move || sources.read()).await else {
                    return;
                };
                if let Some(shortage) = alarm.inspect(begin.elapsed(), seen) {
                    tell.set(shortage.to_string()).ok();
                    return;
                }
            }
        });
        Self {
            opened,
            found,
            _task: AbortOnDropHandle::new(task),
        }
    }

    /// Why the window is to be ended; none while it may go on.
    pub(super) fn found(&self) -> Option<String> {
        self.found.get().cloned()
    }
}

/// Watches the memory of the target and of the node from now on, where the window could be
/// ended. Of a program that begins with its window all growth is its own.
pub(super) async fn watch(cx: &mut Context<'_>, attached: &Attached) {
    cx.overhead.memory = None;
    let begins = cx.capture.spec.start == StartMode::ContainerStart;
    let profiler = cx.profiler(attached).ok();
    let Some(profiler) = profiler.filter(|profiler| !begins && profiler.can_be_ended()) else {
        return;
    };
    let entering = &cx.node.entering;
    let session = entering.target(&attached.container_id, attached.process).cgroup;
    let (root, procfs) = (entering.cgroup_root.clone(), cx.node.procfs.clone());
    let id = attached.container_id.clone();
    let looked = spawn_blocking(move || {
        let session = session.and_then(|session| session.memory());
        let sources = Sources::find(&root, &id, session, procfs)?;
        let opened = sources.read()?;
        Some((sources, opened))
    });
    let found = looked.await.ok().flatten();
    let to_end = profiler.memory_to_end();
    cx.overhead.memory = found.map(|(sources, opened)| MemoryWatch::start(sources, opened, to_end));
}

/// Fails where less memory is left than a window takes before it can be ended.
pub(super) fn check(cx: &Context<'_>, attached: &Attached) -> Result<(), Failure> {
    let Some(watch) = &cx.overhead.memory else {
        return Ok(());
    };
    let needed = cx.profiler(attached)?.memory_to_begin(&attached.profiler)?;
    let lack = watch.opened.lack(needed);
    lack.map_or(Ok(()), |why| Err(Failure::new(CaptureReason::OverBudget, why)))
}
