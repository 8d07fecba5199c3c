//! Opens the files of containers that run, and holds them until their containers have ended.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use flopwatch_api::preparation::{RECORDER_BYTES, RECORDER_DIR, RECORDER_FILE};
use flopwatch_attach::bounded::{Gate, Late};
use flopwatch_attach::mount_kind::{self, MountError};
use flopwatch_attach::process::{ProcessId, Procfs};
use flopwatch_attach::rootfs::{ContainerRoot, RootfsError};
use flopwatch_nvml::ContainerIdentity;
use flopwatch_pipeline::failure::chain;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};
use tracing::{debug, warn};

use super::keep::Recorded;
use super::{EndedContainer, MAX_FILES, Node, RecordingStep, steps, within};

/// Time between two checks of the node's pods while a file is held.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Longest time between two checks otherwise.
const MAX_CHECK_INTERVAL: Duration = Duration::from_mins(1);
/// Time until a container's file is looked for again that was not there; twice as long each time
/// after. A container runs before its program has made the file.
const RETRY_INTERVAL: Duration = Duration::from_millis(250);
/// Longest time until one is looked for again that was not there.
const MAX_RETRY_INTERVAL: Duration = Duration::from_secs(5);
/// Time until one is that did not lie in memory, or does not answer.
const REJECTED_RETRY_INTERVAL: Duration = Duration::from_mins(1);
/// How long a container's files are waited for.
const OPEN_TIMEOUT: Duration = Duration::from_secs(5);
/// Files that are looked for at once.
const MAX_OPENS: usize = 16;

/// Why a file is not held.
#[derive(Debug, thiserror::Error)]
enum OpenError {
    /// The mounts on the way to the file forbid opening it.
    #[error(transparent)]
    Mount(#[from] MountError),
    /// The file cannot be opened in the container.
    #[error(transparent)]
    Rootfs(#[from] RootfsError),
    /// Something was mounted over it meanwhile.
    #[error("what was opened does not lie in memory")]
    NotInMemory,
    /// The kernel does not say where it lies.
    #[error("the kernel does not say where it lies")]
    Unknown(#[from] io::Error),
}

/// What a look for a file found.
struct Looked {
    id: String,
    whose: ContainerIdentity,
    found: Result<File, Absent>,
}

/// Why no file was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Absent {
    /// The file may appear later, and is looked for again soon.
    NotYet,
    /// Another look would find the same.
    Refused,
}

/// When a container's file is looked for again.
#[derive(Clone, Copy, Debug)]
struct Retry {
    at: Instant,
    /// How long before that it was looked for.
    interval: Duration,
}

impl Retry {
    /// After a look at `now`, and the retry that it was, if any.
    fn after(absent: Absent, earlier: Option<Self>, now: Instant) -> Self {
        let interval = match (absent, earlier) {
            (Absent::Refused, _) => REJECTED_RETRY_INTERVAL,
            (Absent::NotYet, None) => RETRY_INTERVAL,
            (Absent::NotYet, Some(earlier)) => earlier.interval.saturating_mul(2).min(MAX_RETRY_INTERVAL),
        };
        Self {
            at: now + interval,
            interval,
        }
    }
}

/// The files that are held and looked for, by container.
#[derive(Debug, Default)]
struct Files {
    held: BTreeMap<String, Arc<File>>,
    looked_for: BTreeSet<String>,
    /// When files that were not found are looked for again, by the ID of their container.
    absent: BTreeMap<String, Retry>,
}

impl Files {
    /// Whether one more may be looked for.
    fn has_room(&self, id: &str, now: Instant) -> bool {
        let all = self.held.len() + self.looked_for.len();
        let rests = self.absent.get(id).is_some_and(|retry| retry.at > now);
        !rests && self.looked_for.len() < MAX_OPENS && all < MAX_FILES
    }

    /// IDs of the containers whose file is held, or is being looked for.
    fn known(&self) -> BTreeSet<String> {
        self.held.keys().chain(&self.looked_for).cloned().collect()
    }

    /// Until the next look at pods, unless they change before that and no file is held.
    fn pause(&self, now: Instant) -> Duration {
        let longest = if self.held.is_empty() {
            MAX_CHECK_INTERVAL
        } else {
            CHECK_INTERVAL
        };
        let waiting = self.absent.iter().filter(|(id, _)| !self.looked_for.contains(*id));
        let next = waiting.map(|(_, retry)| retry.at.saturating_duration_since(now)).min();
        // A file for which there is no room is not looked for all the time.
        next.map_or(longest, |next| next.clamp(RETRY_INTERVAL, longest))
    }
}

/// Holds files until the node is told to stop. `holds` hears whether there are any; what ended
/// abnormally goes to `ended`.
pub(super) async fn run(node: &Arc<Node>, gate: &Gate, holds: &watch::Sender<bool>, ended: &mpsc::Sender<Recorded>) {
    let mut files = Files::default();
    let mut looks = FuturesUnordered::new();
    let mut pods_changed = node.pods_changed.subscribe();
    pods_changed.mark_changed();
    loop {
        let (pause, is_held) = (files.pause(Instant::now()), !files.held.is_empty());
        // Without a file there is nothing to do until a pod comes.
        let inspect = async {
            if is_held {
                sleep(pause).await;
            } else {
                timeout(pause, pods_changed.changed()).await.ok();
            }
        };
        let due = async {
            tokio::select! {
                Some(looked) = looks.next() => Some(looked),
                () = inspect => None,
            }
        };
        let Some(looked) = node.stop.run_until_cancelled(due).await else {
            return;
        };
        if let Some(looked) = looked {
            take_in(node, &mut files, looked);
        } else {
            for (id, whose) in look_at_pods(node, &mut files, ended) {
                looks.push(look_for(node, gate, id, whose));
            }
        }
        let is_held = !files.held.is_empty();
        holds.send_if_modified(|holds| std::mem::replace(holds, is_held) != is_held);
    }
}

/// Holds a file that was looked for, if it was there.
fn take_in(node: &Node, files: &mut Files, looked: Looked) {
    let Looked { id, whose, found } = looked;
    files.looked_for.remove(&id);
    match found {
        Ok(file) => {
            let file = Arc::new(file);
            node.heartbeats.begin(&id, whose, Arc::clone(&file));
            files.absent.remove(&id);
            files.held.insert(id, file);
        }
        Err(absent) => {
            let earlier = files.absent.get(&id).copied();
            files.absent.insert(id, Retry::after(absent, earlier, Instant::now()));
        }
    }
}

/// Lets go of what ended, and returns the containers whose files are to be looked for.
fn look_at_pods(node: &Node, files: &mut Files, to_keep: &mpsc::Sender<Recorded>) -> Vec<(String, ContainerIdentity)> {
    let now = Instant::now();
    let mut running = BTreeSet::new();
    let mut unheld = Vec::new();
    let (pods, known) = (node.pods.state(), files.known());
    for (id, step) in steps(&pods, &known) {
        match step {
            RecordingStep::Open(whose) => {
                if files.has_room(&id, now) {
                    files.looked_for.insert(id.clone());
                    unheld.push((id.clone(), whose));
                }
                running.insert(id);
            }
            RecordingStep::Keep(ended) => {
                node.heartbeats.end(&id);
                let ring = files.held.remove(&id);
                send(node, &id, (ring, ended), to_keep);
            }
            RecordingStep::Forget => {
                node.heartbeats.end(&id);
                files.held.remove(&id);
                drop(node.kernels.take_remains(&id));
            }
        }
    }
    // Programs that have no ranges may have kernels.
    let mut others = node.kernels.known();
    others.retain(|id| !known.contains(id));
    for (id, step) in steps(&pods, &others) {
        match step {
            RecordingStep::Open(_) => {}
            RecordingStep::Keep(ended) => send(node, &id, (None, ended), to_keep),
            RecordingStep::Forget => drop(node.kernels.take_remains(&id)),
        }
    }
    let Files { absent, looked_for, .. } = files;
    absent.retain(|id, _| running.contains(id) || looked_for.contains(id));
    unheld
}

/// Has what there is of a container kept that ended abnormally: its ranges, and its kernels.
fn send(node: &Node, id: &str, (ring, ended): (Option<Arc<File>>, EndedContainer), to_keep: &mpsc::Sender<Recorded>) {
    let kernels = node.kernels.take_remains(id);
    if !node.recordings.is_on() || (ring.is_none() && kernels.is_none()) {
        return;
    }
    if let Err(error) = to_keep.try_send(Recorded { ring, kernels, ended }) {
        warn!(container = id, %error, "what the flight recorder held is not kept");
    }
}

/// Looks for the recorder's file of a container that runs.
async fn look_for(node: &Arc<Node>, gate: &Gate, id: String, whose: ContainerIdentity) -> Looked {
    let (containers, of) = (Arc::clone(&node.containers), id.clone());
    let open = move || {
        let process = containers.first_process(&of)?;
        Some(in_memory(&containers.procfs(), process))
    };
    let (container, pod) = (&whose.container, &whose.pod);
    let found = match within(gate, &id, OPEN_TIMEOUT, open).await {
        Ok(Some(Ok(file))) => Ok(file),
        Ok(Some(Err(error))) => {
            let why = chain(&error);
            if error.will_last() {
                warn!(pod, container, why, "a flight recorder's file is not read");
                Err(Absent::Refused)
            } else {
                debug!(pod, container, why, "a flight recorder's file is not there yet");
                Err(Absent::NotYet)
            }
        }
        Ok(None) => Err(Absent::NotYet),
        Err(late) => {
            warn!(pod, container, %late, "a container's files do not answer");
            Err(if late == Late::Busy {
                Absent::Refused
            } else {
                Absent::NotYet
            })
        }
    };
    Looked { id, whose, found }
}

impl OpenError {
    /// Whether another look would find the same.
    fn will_last(&self) -> bool {
        match self {
            Self::Mount(MountError::Gone { .. } | MountError::Unread(_)) | Self::Rootfs(_) | Self::Unknown(_) => false,
            Self::Mount(_) | Self::NotInMemory => true,
        }
    }
}

/// The recorder's file of a container, where it lies in memory.
fn in_memory(procfs: &Procfs, process: ProcessId) -> Result<File, OpenError> {
    let path = Path::new(RECORDER_DIR).join(RECORDER_FILE);
    mount_kind::check_memory(procfs, process, &path)?;
    let file = ContainerRoot::open(procfs, process)?.open_file(&path, *RECORDER_BYTES.end())?;
    if mount_kind::is_in_memory(&file)? {
        Ok(file)
    } else {
        Err(OpenError::NotInMemory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_files_are_looked_for_at_once_and_one_that_was_absent_rests() {
        let mut files = Files::default();
        let now = Instant::now();
        assert!(files.has_room("a", now) && files.pause(now) == MAX_CHECK_INTERVAL);
        let retry = Retry::after(Absent::NotYet, None, now);
        files.absent.insert("a".to_owned(), retry);
        assert!(!files.has_room("a", now) && files.has_room("b", now) && files.pause(now) == RETRY_INTERVAL);
        assert!(files.has_room("a", retry.at));
        files.looked_for = (0..MAX_OPENS).map(|number| number.to_string()).collect();
        assert!(!files.has_room("b", now));
        files.looked_for.clear();
        let file = Arc::new(tempfile::tempfile().unwrap());
        let held = (0..MAX_FILES).map(|number| (number.to_string(), Arc::clone(&file)));
        files.held = held.collect();
        assert!(!files.has_room("b", now));
        assert_eq!(files.known().len(), MAX_FILES);
        assert!(files.pause(retry.at) <= CHECK_INTERVAL);
    }

    #[test]
    fn a_file_that_a_program_makes_as_it_starts_is_found_within_moments_and_later_looks_are_rare() {
        let now = Instant::now();
        let (mut looks, mut last) = (Vec::new(), None);
        for _ in 0..7 {
            let retry = Retry::after(Absent::NotYet, last, now);
            looks.push(retry.interval.as_millis());
            last = Some(retry);
        }
        assert_eq!(looks, [250, 500, 1_000, 2_000, 4_000, 5_000, 5_000]);
        let refused = Retry::after(Absent::Refused, None, now);
        assert_eq!(refused.at - now, REJECTED_RETRY_INTERVAL);
    }

    #[test]
    fn a_file_on_a_file_system_that_may_never_answer_is_not_looked_for_all_the_time() {
        let unanswered = MountError::Unanswered {
            path: RECORDER_DIR.into(),
            point: RECORDER_DIR.into(),
            kind: "nfs4".to_owned(),
        };
        assert!(OpenError::from(unanswered).will_last() && OpenError::NotInMemory.will_last());
        let path = RECORDER_DIR.into();
        assert!(!OpenError::from(RootfsError::NotFound { path }).will_last());
        assert!(!OpenError::from(MountError::Gone { pid: 1 }).will_last());
    }

    #[test]
    fn without_a_volume_in_memory_nothing_is_opened() {
        let procfs = Procfs::default();
        let own = procfs.identify(i32::try_from(std::process::id()).unwrap()).unwrap();
        // This process has its own root there, which is no memory or has no such file.
        let refused = in_memory(&procfs, own).unwrap_err();
        assert!(
            matches!(
                refused,
                OpenError::Mount(MountError::NotMemory { .. }) | OpenError::Rootfs(RootfsError::NotFound { .. })
            ),
            "{refused}"
        );
    }
}
