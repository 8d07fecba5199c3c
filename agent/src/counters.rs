//! The GPU's hardware counters, which one reader may have at a time: a lease for each GPU, and DCGM
//! paused while one is held.
//!
//! A lease is a file below the agent's data folder, which one agent has at a time, so it survives
//! the agent: the next one goes on with a capture that has it, and takes it over once its deadline
//! has passed. DCGM is paused by its own command and only where an administrator named that. A file
//! says that it is paused, written before the pause and removed after the resumption, so that
//! whoever finds it resumes.

pub mod dcgm;
mod lease;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use flopwatch_launcher::run_dir::write_atomically;
use tracing::{info, warn};

use dcgm::Dcgm;
pub use lease::{Lease, gpus};

/// Extension of the leases' files.
const EXTENSION: &str = "lease";
/// There while DCGM is paused, or may be.
const PAUSED: &str = "dcgm-paused";
/// Bytes of a lease that are read.
const LEASE_BYTES: u64 = 4 << 10;

/// Why the counters could not be had.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Somebody else has them.
    #[error("capture {owner} has the counters of {gpu} for {seconds} s at most: wait for its end, or stop it")]
    Busy {
        /// The GPU, or the node where its GPUs are not known.
        gpu: String,
        /// UID of the capture that has them.
        owner: String,
        /// Time until the lease ends by itself.
        seconds: u64,
    },
    /// The leases cannot be read or written.
    #[error("the leases of counters in {} cannot be used", path.display())]
    Folder {
        /// Folder of the leases.
        path: PathBuf,
        /// Error of the kernel.
        source: io::Error,
    },
    /// DCGM could not be paused.
    #[error("DCGM holds the counters and cannot be paused")]
    Dcgm(#[from] flopwatch_pipeline::child::Error),
}

/// The leases of a node.
#[derive(Debug)]
pub struct Counters {
    folder: PathBuf,
    dcgm: Option<Dcgm>,
    /// Held while leases are looked at and changed.
    turn: Mutex<()>,
}

impl Counters {
    /// Those kept in `folder`. `dcgm` is the command that pauses and resumes DCGM; none: it is
    /// never paused. Fails where there can be no such folder.
    pub fn open(folder: PathBuf, dcgm: Option<Dcgm>) -> Result<Self, Error> {
        let made = std::fs::create_dir_all(&folder);
        let counters = Self {
            folder,
            dcgm,
            turn: Mutex::new(()),
        };
        made.map_err(counters.failed())?;
        Ok(counters)
    }

    /// Whether DCGM can be paused.
    pub const fn can_pause(&self) -> bool {
        self.dcgm.is_some()
    }

    /// Takes the counters of GPUs, all or none. Who has them already takes them again, with the new
    /// deadline. Blocks for as long as DCGM's command runs.
    pub fn take(&self, gpus: &BTreeSet<String>, lease: &Lease, now_unix_ms: u64) -> Result<(), Error> {
        let _turn = self.turn();
        let held = self.read().map_err(self.failed())?;
        if let Some((gpu, other)) = lease::busy(&held, gpus, &lease.owner, now_unix_ms) {
            return Err(Error::Busy {
                gpu: gpu.to_owned(),
                owner: other.owner.clone(),
                seconds: other.deadline_unix_ms.saturating_sub(now_unix_ms).div_ceil(1000),
            });
        }
        let text = serde_json::to_vec(lease).map_err(|error| self.failed()(error.into()))?;
        for gpu in gpus {
            write_atomically(&self.path(gpu), &text).map_err(self.failed())?;
        }
        if lease.pauses
            && let Err(error) = self.pause()
        {
            self.remove(|held| held.owner == lease.owner);
            self.resume_where_due();
            return Err(error);
        }
        Ok(())
    }

    /// Gives back what a capture has. Safe to run twice; what does not work is logged, and ends at
    /// the deadline.
    pub fn release(&self, owner: &str) {
        let _turn = self.turn();
        self.remove(|lease| lease.owner == owner);
        self.resume_where_due();
    }

    /// Removes leases whose deadline has passed, and resumes DCGM where nobody needs it paused. To
    /// be called at the start of an agent and now and then.
    pub fn tend(&self, now_unix_ms: u64) {
        let _turn = self.turn();
        self.remove(|lease| lease.has_ended(now_unix_ms));
        self.resume_where_due();
    }

    fn pause(&self) -> Result<(), Error> {
        let Some(dcgm) = &self.dcgm else { return Ok(()) };
        // First: an agent that ends here leaves word.
        write_atomically(&self.folder.join(PAUSED), b"").map_err(self.failed())?;
        dcgm.pause()?;
        info!("paused DCGM's profiling metrics");
        Ok(())
    }

    fn resume_where_due(&self) {
        let paused = self.folder.join(PAUSED);
        let is_needed = self.read().is_ok_and(|held| held.values().any(|lease| lease.pauses));
        let Some(dcgm) = self.dcgm.as_ref().filter(|_| paused.exists() && !is_needed) else {
            return;
        };
        match dcgm.resume() {
            Ok(()) => match std::fs::remove_file(&paused) {
                Ok(()) => info!("resumed DCGM's profiling metrics"),
                Err(error) => warn!(%error, "DCGM was resumed, and will be once more"),
            },
            Err(error) => warn!(%error, "DCGM was not resumed; it is tried again"),
        }
    }

    /// What is leased, by GPU. A file that is no lease is none.
    fn read(&self) -> io::Result<BTreeMap<String, Lease>> {
        let mut held = BTreeMap::new();
        for entry in std::fs::read_dir(&self.folder)? {
            let path = entry?.path();
            let is_lease = path.extension().is_some_and(|extension| extension == EXTENSION);
            let Some(gpu) = path.file_stem().and_then(|name| name.to_str()).filter(|_| is_lease) else {
                continue;
            };
            let mut text = Vec::new();
            std::fs::File::open(&path)?.take(LEASE_BYTES).read_to_end(&mut text)?;
            match serde_json::from_slice(&text) {
                Ok(lease) => drop(held.insert(gpu.to_owned(), lease)),
                Err(error) => warn!(gpu, %error, "a lease of counters cannot be read and counts as none"),
            }
        }
        Ok(held)
    }

    fn remove(&self, which: impl Fn(&Lease) -> bool) {
        let removed = self.read().and_then(|held| {
            let mut gone = held.iter().filter(|(_, lease)| which(lease));
            gone.try_for_each(|(gpu, _)| std::fs::remove_file(self.path(gpu)))
        });
        if let Err(error) = removed {
            warn!(%error, "leases of counters cannot be removed; they end at their deadline");
        }
    }

    fn path(&self, gpu: &str) -> PathBuf {
        self.folder.join(format!("{gpu}.{EXTENSION}"))
    }

    fn failed(&self) -> impl FnOnce(io::Error) -> Error + use<> {
        let path = Path::to_owned(&self.folder);
        |source| Error::Folder { path, source }
    }

    fn turn(&self) -> MutexGuard<'_, ()> {
        // It guards nothing in memory that a panic could leave half done.
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A double of DCGM's command: it writes down what it is called with, and fails while there is
    /// a file `fails`.
    fn double(folder: &Path) -> Dcgm {
        use std::os::unix::fs::PermissionsExt as _;
        let program = folder.join("dcgmi-double");
        let (calls, fails) = (folder.join("calls"), folder.join("fails"));
        let text = format!(
            "#!/bin/sh\necho \"$*\" >> {}\nif [ -e {} ]; then exit 1; fi\n",
            calls.display(),
            fails.display()
        );
        std::fs::write(&program, text).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        Dcgm {
            program,
            host: Some("dcgm:5555".to_owned()),
        }
    }

    fn calls(folder: &Path) -> Vec<String> {
        let text = std::fs::read_to_string(folder.join("calls")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn lease(owner: &str, deadline_unix_ms: u64, pauses: bool) -> Lease {
        Lease {
            owner: owner.to_owned(),
            deadline_unix_ms,
            pauses,
        }
    }

    fn of(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn of_two_takers_the_second_learns_who_has_the_counters_and_takes_none() {
        let folder = tempfile::tempdir().unwrap();
        let counters = Counters::open(folder.path().join("counters"), None).unwrap();
        counters.take(&of(&["GPU-1"]), &lease("first", 5000, false), 0).unwrap();
        let refused = counters.take(&of(&["GPU-0", "GPU-1"]), &lease("second", 9000, false), 1000);
        let message = refused.unwrap_err().to_string();
        assert!(
            message.contains("capture first has the counters of GPU-1 for 4 s"),
            "{message}"
        );
        counters
            .take(&of(&["GPU-0"]), &lease("third", 9000, false), 1000)
            .unwrap();
        counters.release("first");
        counters.release("first");
        counters
            .take(&of(&["GPU-1"]), &lease("second", 9000, false), 1000)
            .unwrap();
    }

    #[test]
    fn a_lease_outlives_its_agent_and_a_dead_owner_does_not_keep_it() {
        let folder = tempfile::tempdir().unwrap();
        let open = || Counters::open(folder.path().to_owned(), None).unwrap();
        open().take(&of(&["GPU-1"]), &lease("first", 5000, false), 0).unwrap();
        let next = open();
        next.tend(1000);
        assert!(next.take(&of(&["GPU-1"]), &lease("second", 9000, false), 1000).is_err());
        next.take(&of(&["GPU-1"]), &lease("first", 6000, false), 1000).unwrap();
        assert!(next.take(&of(&["GPU-1"]), &lease("second", 9000, false), 5999).is_err());
        next.take(&of(&["GPU-1"]), &lease("second", 9000, false), 6000).unwrap();
    }

    #[test]
    fn what_is_no_lease_keeps_nobody_out() {
        let folder = tempfile::tempdir().unwrap();
        let counters = Counters::open(folder.path().to_owned(), None).unwrap();
        std::fs::write(folder.path().join("GPU-1.lease"), "{").unwrap();
        counters.take(&of(&["GPU-1"]), &lease("first", 5000, false), 0).unwrap();
    }

    #[test]
    fn dcgm_is_paused_for_the_first_that_needs_it_and_resumed_after_the_last() {
        let folder = tempfile::tempdir().unwrap();
        let counters = Counters::open(folder.path().join("counters"), Some(double(folder.path()))).unwrap();
        counters.take(&of(&["GPU-0"]), &lease("other", 5000, false), 0).unwrap();
        assert!(calls(folder.path()).is_empty(), "nobody needs it paused");
        counters.take(&of(&["GPU-1"]), &lease("one", 5000, true), 0).unwrap();
        counters.take(&of(&["GPU-2"]), &lease("two", 5000, true), 0).unwrap();
        counters.release("one");
        counters.release("other");
        let pause = "profile --host dcgm:5555 --pause";
        assert_eq!(calls(folder.path()), [pause, pause]);
        counters.release("two");
        counters.release("two");
        assert_eq!(calls(folder.path())[2..], ["profile --host dcgm:5555 --resume"]);
    }

    #[test]
    fn dcgm_is_resumed_by_the_next_agent_after_the_deadline_and_tried_until_it_works() {
        let folder = tempfile::tempdir().unwrap();
        let open = || Counters::open(folder.path().join("counters"), Some(double(folder.path()))).unwrap();
        open().take(&of(&["GPU-1"]), &lease("one", 5000, true), 0).unwrap();
        let next = open();
        next.tend(4999);
        assert_eq!(calls(folder.path()).len(), 1, "the capture may go on");
        std::fs::write(folder.path().join("fails"), "").unwrap();
        next.tend(5000);
        std::fs::remove_file(folder.path().join("fails")).unwrap();
        next.tend(5001);
        next.tend(5002);
        let resumed = calls(folder.path())
            .iter()
            .filter(|call| call.contains("resume"))
            .count();
        assert_eq!(resumed, 2, "{:?}", calls(folder.path()));
    }

    #[test]
    fn without_a_pause_there_is_no_lease_either() {
        let folder = tempfile::tempdir().unwrap();
        let counters = Counters::open(folder.path().join("counters"), Some(double(folder.path()))).unwrap();
        std::fs::write(folder.path().join("fails"), "").unwrap();
        let refused = counters.take(&of(&["GPU-1"]), &lease("one", 5000, true), 0);
        assert!(matches!(refused, Err(Error::Dcgm(_))), "{refused:?}");
        std::fs::remove_file(folder.path().join("fails")).unwrap();
        counters.take(&of(&["GPU-1"]), &lease("two", 5000, true), 0).unwrap();
    }
}
