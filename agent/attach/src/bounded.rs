//! Calls that may block for ever: each on a thread of its own, at most one per key.
//!
//! A file of a container may lie on a file system whose server is gone, and procfs waits for the
//! memory of a process that waits for such a file. Nobody can end a thread that the kernel holds:
//! it is left behind, its key stays taken until it returns, and whoever asked goes on.

use std::collections::BTreeSet;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Threads that may be left behind before nothing more is begun.
const MAX_ABANDONED_THREADS: usize = 512;
/// Bytes of such a thread's stack.
const STACK_BYTES: usize = 1 << 20;

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Late {
    /// The work was begun, and has not come back within this time.
    #[error("no answer within {0:?}")]
    Waited(Duration),
    /// An earlier one for the same key has not come back yet, or too many have not.
    #[error("an earlier look has not come back yet")]
    Busy,
    /// No thread could be started, or it ended early.
    #[error("no thread for it")]
    NoThread,
}

/// Keys that are taken. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Gate {
    taken: Arc<Mutex<BTreeSet<String>>>,
}

impl Gate {
    /// Does `work` on a thread of its own and waits for it, at most `limit`.
    pub fn within<T: Send + 'static>(
        &self,
        key: &str,
        limit: Duration,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Late> {
        self.among(key, 1, limit, work)
    }

    /// The same, where up to `slots` pieces of work for a key may be under way at once.
    pub fn among<T: Send + 'static>(
        &self,
        key: &str,
        slots: u32,
        limit: Duration,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Late> {
        let (told, answer) = sync_channel(1);
        self.start(key, slots, work, move |found| {
            // Nobody listens any more where it came too late.
            told.send(found).ok();
        })?;
        answer.recv_timeout(limit).map_err(|error| match error {
            std::sync::mpsc::RecvTimeoutError::Timeout => Late::Waited(limit),
            std::sync::mpsc::RecvTimeoutError::Disconnected => Late::NoThread,
        })
    }

    /// Begins `work` on a thread of its own and waits for nothing. `then` takes what it found, on
    /// that thread, once the key is free again.
    pub fn begin<T: Send + 'static>(
        &self,
        key: &str,
        work: impl FnOnce() -> T + Send + 'static,
        then: impl FnOnce(T) + Send + 'static,
    ) -> Result<(), Late> {
        self.start(key, 1, work, then)
    }

    fn start<T: Send + 'static>(
        &self,
        key: &str,
        slots: u32,
        work: impl FnOnce() -> T + Send + 'static,
        then: impl FnOnce(T) + Send + 'static,
    ) -> Result<(), Late> {
        let mut slots = (0..slots).map(|slot| match slot {
            0 => key.to_owned(),
            slot => format!("{key} {slot}"),
        });
        let slot = slots.find_map(|key| self.take(key)).ok_or(Late::Busy)?;
        let thread = std::thread::Builder::new()
            .name("flopwatch-look".into())
            .stack_size(STACK_BYTES)
            .spawn(move || {
                let found = work();
                drop(slot);
                then(found);
            });
        if thread.is_ok() { Ok(()) } else { Err(Late::NoThread) }
    }

    /// Whether work for that key is under way, or was left behind.
    pub fn is_taken(&self, key: &str) -> bool {
        lock(&self.taken).contains(key)
    }

    fn take(&self, key: String) -> Option<Slot> {
        let mut taken = lock(&self.taken);
        (taken.len() < MAX_ABANDONED_THREADS && taken.insert(key.clone())).then(|| Slot {
            taken: Arc::clone(&self.taken),
            key,
        })
    }
}

/// A key that is taken; given back however the thread ends.
struct Slot {
    taken: Arc<Mutex<BTreeSet<String>>>,
    key: String,
}

impl Drop for Slot {
    fn drop(&mut self) {
        lock(&self.taken).remove(&self.key);
    }
}

fn lock(taken: &Mutex<BTreeSet<String>>) -> MutexGuard<'_, BTreeSet<String>> {
    // A set of strings is whole whatever happened to who held it.
    taken.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_come_back_holds_its_own_key_and_no_other() {
        let gate = Gate::default();
        let (release, held) = sync_channel::<()>(0);
        let limit = Duration::from_millis(50);
        let stuck = gate.within("hangs", limit, move || held.recv().is_ok());
        assert_eq!(stuck, Err(Late::Waited(limit)));
        assert!(gate.is_taken("hangs"));
        assert_eq!(gate.within("hangs", limit, || 1), Err(Late::Busy));
        assert_eq!(gate.within("other", Duration::from_mins(1), || 2), Ok(2));
        assert_eq!(
            gate.among("hangs", 2, Duration::from_mins(1), || 4),
            Ok(4),
            "another place"
        );
        release.send(()).unwrap();
        let deadline = std::time::Instant::now() + Duration::from_mins(1);
        while gate.is_taken("hangs") {
            assert!(std::time::Instant::now() < deadline, "the key was never given back");
            std::thread::yield_now();
        }
        assert_eq!(gate.within("hangs", Duration::from_mins(1), || 3), Ok(3));
    }

    #[test]
    fn what_is_begun_is_not_waited_for_and_its_key_is_free_before_it_is_told() {
        let gate = Gate::default();
        let (release, held) = sync_channel::<()>(0);
        let (told, answer) = sync_channel(1);
        let of = gate.clone();
        let begun = gate.begin(
            "hangs",
            move || held.recv().is_ok(),
            move |came_back| told.send((came_back, of.is_taken("hangs"))).unwrap(),
        );
        assert_eq!(begun, Ok(()));
        assert_eq!(gate.begin("hangs", || (), |()| ()), Err(Late::Busy));
        assert_eq!(gate.begin("other", || (), |()| ()), Ok(()));
        release.send(()).unwrap();
        assert_eq!(answer.recv_timeout(Duration::from_mins(1)), Ok((true, false)));
    }

    #[test]
    fn a_key_is_given_back_when_the_work_panics() {
        let gate = Gate::default();
        let ended = gate.within("x", Duration::from_mins(1), || panic!("on purpose"));
        assert_eq!(ended, Err::<(), _>(Late::NoThread));
        assert!(!gate.is_taken("x"));
    }
}
