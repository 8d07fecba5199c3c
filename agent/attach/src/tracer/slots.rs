//! The slots of the processes that share a tracer's file, read without ordering anything.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use flopwatch_tracer_file::header::IDENTITY_BYTES;
use flopwatch_tracer_file::process::{BYTES, Process, SLOTS};
use flopwatch_tracer_file::{HEADER_BYTES, Layout, MAX_BYTES, NAMES_AT};

use super::Error;
use crate::process::{ProcessId, Procfs};
use crate::user_files::UserFiles;

/// What the slots of a file held at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slots(Vec<u8>);

impl Slots {
    /// Those of the file at `path` of a container, read with the rights of the user of `process`,
    /// one of the container's.
    ///
    /// # Errors
    ///
    /// When there is no such file, it may never be answered for, or is none of a tracer.
    pub fn of_container(procfs: &Procfs, process: ProcessId, path: &Path) -> Result<Self, Error> {
        let files = UserFiles::open(procfs, process)?;
        let limit = u64::try_from(MAX_BYTES).unwrap_or(u64::MAX);
        slots(path, &files.open_file(path, limit)?)
    }

    /// Those that were kept as [`bytes`](Self::bytes); none where there are too few.
    pub fn of_bytes(bytes: Vec<u8>) -> Option<Self> {
        (bytes.len() == SLOTS * BYTES).then_some(Self(bytes))
    }

    /// As they are kept.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The process of each slot; none for a slot without one, and for one that makes no sense.
    pub fn all(&self) -> impl Iterator<Item = Option<Process>> {
        self.0
            .chunks_exact(BYTES)
            .map(|slot| slot.first_chunk().and_then(Process::of_bytes))
    }

    /// The processes.
    pub fn processes(&self) -> Vec<Process> {
        self.all().flatten().collect()
    }
}

/// What the slots of the file hold now; fails where it is none of a tracer, or was cut.
pub(super) fn slots(path: &Path, file: &File) -> Result<Slots, Error> {
    let open = || Error::open(path);
    let mut begin = [0; IDENTITY_BYTES];
    let length = file.metadata().map_err(open())?.len();
    if file.read_exact_at(&mut begin, 0).is_err() || Layout::of_file(&begin, length).is_none() {
        return Err(Error::NotATrace(path.to_owned()));
    }
    let mut bytes = vec![0; NAMES_AT - HEADER_BYTES];
    let at = u64::try_from(HEADER_BYTES).unwrap_or(u64::MAX);
    file.read_exact_at(&mut bytes, at).map_err(open())?;
    Ok(Slots(bytes))
}

#[cfg(test)]
mod tests {
    use flopwatch_tracer_file::LEAST_BYTES;
    use flopwatch_tracer_file::process::{CLAIM_AT, PID_AT, USED, claim};

    use super::super::{NAME, TraceFile};
    use super::*;

    #[test]
    fn the_processes_of_a_file_are_read_without_its_lock() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        let held = TraceFile::make(&path, LEAST_BYTES).unwrap();
        let own = File::options().read(true).write(true).open(&path).unwrap();
        let at = u64::try_from(HEADER_BYTES + BYTES).unwrap();
        let put = |place: usize, bytes: &[u8]| {
            let at = at + u64::try_from(place).unwrap();
            own.write_all_at(bytes, at).unwrap();
        };
        put(PID_AT, &77_u32.to_le_bytes());
        put(CLAIM_AT, &claim(1, USED).to_le_bytes());
        let found = slots(&path, &own).unwrap();
        let pids: Vec<_> = found.all().map(|process| process.map(|process| process.pid)).collect();
        assert_eq!((pids.len(), pids[0], pids[1]), (SLOTS, None, Some(77)));
        let kept = Slots::of_bytes(found.bytes().to_vec()).unwrap();
        assert_eq!(kept, found);
        assert_eq!(held.slots().unwrap(), found);
        assert_eq!(Slots::of_bytes(vec![0; 7]), None);
        std::fs::write(folder.path().join("text"), "no trace").unwrap();
        let text = File::open(folder.path().join("text")).unwrap();
        assert!(matches!(slots(&path, &text), Err(Error::NotATrace(_))));
    }
}
