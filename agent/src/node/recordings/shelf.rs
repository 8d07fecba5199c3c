//! Kept recordings on the node's disk: a copy of the recorder's file, the kernels of the CUDA
//! tracer's file where there are some, and what is known of their container, in a folder that has a
//! bound in bytes and in time. The latest of a container replaces an earlier one. A copy without
//! what is known of it was never finished: an agent was killed while it kept something, and a sweep
//! removes it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use flopwatch_trace::recorder::{self, snapshot};
use flopwatch_trace::tracer::Drain;
use flopwatch_trace::{ReadLimits, tracer};
use serde::{Deserialize, Serialize};
use tracing::warn;

use crate::profilers::Remains;

/// How the names of copies end: of ranges, and of kernels.
const RING: &str = "ring";
const KERNELS: &str = "kernels";
/// Longest time before a container's end of which kernels are kept.
const MAX_KERNELS_DURATION: Duration = Duration::from_mins(10);
/// Age of a file that was not finished at which nobody writes it any more.
const MIN_ABANDONED_AGE: Duration = Duration::from_mins(10);

/// A container that ended abnormally.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EndedContainer {
    /// Namespace of its pod.
    pub(crate) namespace: String,
    /// Name of its pod.
    pub(crate) pod: String,
    /// UID of its pod.
    pub(crate) pod_uid: String,
    /// Name of the container that ended.
    pub(crate) container: String,
    /// The runtime's ID of the life that ended.
    pub(crate) container_id: String,
    /// Exit code of the container that ended.
    pub(crate) exit_code: i32,
    /// What the kubelet says of its end, such as `OOMKilled`.
    pub(crate) reason: String,
    /// When it ended, in ns since the Unix epoch, rounded up to a second.
    pub(crate) at_utc_ns: u64,
}

/// Why a recording is not kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ShelfError {
    /// The copy cannot be made.
    #[error("the flight recorder's file: {0}")]
    Snapshot(#[from] recorder::Failure),
    /// The kernels cannot be taken.
    #[error("the CUDA tracer's file {0}")]
    Kernels(#[from] tracer::Failure),
    /// There is neither a range nor a kernel.
    #[error("it holds nothing")]
    Empty,
    /// The copy or its description cannot be written.
    #[error("cannot be written: {0}")]
    Io(#[from] io::Error),
    /// One copy alone is larger than all may be.
    #[error("it has {bytes} bytes, and all may have {limit} (--kept-recordings-bytes)")]
    TooLarge {
        /// Bytes of the copy.
        bytes: u64,
        /// Most bytes of all.
        limit: u64,
    },
}

/// The folder of kept recordings.
#[derive(Clone, Debug)]
pub struct Recordings {
    folder: PathBuf,
    /// Most bytes of all; 0: none are kept.
    bytes: u64,
    /// How long one is kept.
    age: Duration,
}

impl Recordings {
    /// In a folder, with the most bytes that all may have (0: none are kept) and how long one is
    /// kept.
    pub fn new(folder: PathBuf, bytes: u64, age: Duration) -> Self {
        Self { folder, bytes, age }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.bytes > 0 && !self.age.is_zero()
    }

    /// How long one is kept, in whole hours.
    pub(crate) fn hours(&self) -> u64 {
        self.age.as_secs() / 3600
    }

    fn path_of(&self, pod_uid: &str, container: &str, ending: &str) -> PathBuf {
        self.folder.join(format!("{pod_uid}_{container}.{ending}"))
    }

    /// Copies what there is of a container that ended.
    pub(crate) fn keep(
        &self,
        ended: &EndedContainer,
        ring: Option<&File>,
        kernels: Option<File>,
    ) -> Result<(), ShelfError> {
        fs::create_dir_all(&self.folder)?;
        let path_of = |ending: &str| self.path_of(&ended.pod_uid, &ended.container, ending);
        // An earlier life's copy may still be under way.
        let life: String = ended.container_id.chars().filter(char::is_ascii_hexdigit).collect();
        let partial = path_of(&format!("{life}.partial"));
        let copies = [RING, KERNELS].map(|ending| (path_of(&format!("{life}.{ending}.partial")), path_of(ending)));
        let [(ring_copy, _), (kernels_copy, _)] = &copies;
        if let Err(error) = self.copy(ended, (ring, ring_copy), (kernels, kernels_copy)) {
            remove(ring_copy)?;
            remove(kernels_copy)?;
            return Err(error);
        }
        // Of what is there, never one life's copy with another's end.
        remove(&path_of("json"))?;
        for (copy, path) in &copies {
            remove(path)?;
            if copy.is_file() {
                fs::rename(copy, path)?;
            }
        }
        let text = serde_json::to_vec(ended).map_err(io::Error::from)?;
        fs::write(&partial, text)?;
        Ok(fs::rename(&partial, path_of("json"))?)
    }

    /// Copies ranges and kernels. Without kernels, whose file a container may have spoilt, ranges
    /// are worth to be kept.
    fn copy(
        &self,
        ended: &EndedContainer,
        (ring, ring_copy): (Option<&File>, &Path),
        (kernels, kernels_copy): (Option<File>, &Path),
    ) -> Result<(), ShelfError> {
        let bytes = ring.map(|ring| copy_ring(ring, ring_copy)).transpose()?;
        self.check(bytes.unwrap_or(0))?;
        let Some(kernels) = kernels else {
            return bytes.map(drop).ok_or(ShelfError::Empty);
        };
        let copied = copy_kernels(ended, kernels, kernels_copy).and_then(|of_kernels| {
            self.check(bytes.unwrap_or(0).saturating_add(of_kernels))?;
            Ok(of_kernels)
        });
        match copied {
            Ok(0) if bytes.is_none() => Err(ShelfError::Empty),
            Ok(0) => Ok(remove(kernels_copy)?),
            Ok(_) => Ok(()),
            Err(error) if bytes.is_none() => Err(error),
            Err(error) => {
                warn!(container = ended.container_id, %error, "the kernels of a container that ended are not kept");
                Ok(remove(kernels_copy)?)
            }
        }
    }

    /// Fails where there are more bytes than all copies may have.
    fn check(&self, bytes: u64) -> Result<(), ShelfError> {
        if bytes > self.bytes {
            return Err(ShelfError::TooLarge {
                bytes,
                limit: self.bytes,
            });
        }
        Ok(())
    }

    /// What is kept of a pod's container: the copies, and how the container ended.
    pub(crate) fn find(&self, pod_uid: &str, container: &str) -> Option<(Remains, EndedContainer)> {
        let ended = read(&self.path_of(pod_uid, container, "json"))?;
        let copy = |ending| Some(self.path_of(pod_uid, container, ending)).filter(|path| path.is_file());
        let remains = Remains {
            ring: copy(RING),
            kernels: copy(KERNELS),
            ended_utc_ns: ended.at_utc_ns,
        };
        let is_there = remains.ring.is_some() || remains.kernels.is_some();
        is_there.then_some((remains, ended))
    }

    /// Removes what is too old, the oldest of what is too much, and what was never finished.
    pub(crate) fn sweep(&self, now_utc_ns: u64) {
        let Ok(entries) = fs::read_dir(&self.folder) else {
            // Nothing was kept yet.
            return;
        };
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let (described, others): (Vec<PathBuf>, Vec<PathBuf>) = paths.partition(|path| ends(path, "json"));
        for path in others {
            let is_copy = ends(&path, RING) || ends(&path, KERNELS);
            let is_finished = is_copy && path.with_extension("json").exists();
            let is_ours = is_copy || ends(&path, "partial");
            if is_ours && !is_finished && is_left(&path, now_utc_ns) {
                sweep_away(&path);
            }
        }
        let mut kept: Vec<(u64, u64, PathBuf)> = described
            .into_iter()
            .map(|path| {
                let copies = [RING, KERNELS].map(|ending| fs::metadata(path.with_extension(ending)));
                let bytes = copies.into_iter().flatten().map(|metadata| metadata.len()).sum();
                (read(&path).map_or(0, |ended| ended.at_utc_ns), bytes, path)
            })
            .collect();
        kept.sort_unstable();
        let mut all: u64 = kept.iter().map(|(_, bytes, _)| bytes).sum();
        let age = u64::try_from(self.age.as_nanos()).unwrap_or(u64::MAX);
        for (ended, bytes, path) in kept {
            if now_utc_ns.saturating_sub(ended) < age && all <= self.bytes {
                break;
            }
            all = all.saturating_sub(bytes);
            for file in [path.with_extension(RING), path.with_extension(KERNELS), path] {
                sweep_away(&file);
            }
        }
    }
}

/// Copies a recorder's file, and gives the bytes of the copy.
fn copy_ring(ring: &File, to: &Path) -> Result<u64, ShelfError> {
    let mut copy = File::create(to)?;
    let bytes = snapshot(ring, &mut copy, &ReadLimits::default())?;
    copy.sync_data()?;
    Ok(bytes)
}

/// Takes the kernels of the last minutes of a container, and gives the bytes that they take; 0
/// where there are none.
fn copy_kernels(ended: &EndedContainer, kernels: File, to: &Path) -> Result<u64, ShelfError> {
    let copy = File::create(to)?;
    let longest = u64::try_from(MAX_KERNELS_DURATION.as_nanos()).unwrap_or(u64::MAX);
    let since = ended.at_utc_ns.saturating_sub(longest);
    let records = Drain::recent(kernels, copy.try_clone()?, &ReadLimits::default(), since, true)?;
    copy.sync_data()?;
    Ok(if records > 0 { copy.metadata()?.len() } else { 0 })
}

fn ends(path: &Path, ending: &str) -> bool {
    path.extension().is_some_and(|found| found == ending)
}

/// Whether a file was last written so long ago that nobody does any more.
fn is_left(path: &Path, now_utc_ns: u64) -> bool {
    let written = fs::metadata(path).and_then(|metadata| metadata.modified());
    let now = UNIX_EPOCH + Duration::from_nanos(now_utc_ns);
    written.is_ok_and(|written: SystemTime| now.duration_since(written).is_ok_and(|age| age >= MIN_ABANDONED_AGE))
}

/// Removes a file; one that is not there is no failure.
fn remove(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn sweep_away(file: &Path) {
    if let Err(error) = remove(file) {
        warn!(file = %file.display(), %error, "a kept recording cannot be removed");
    }
}

fn read(path: &Path) -> Option<EndedContainer> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn ended(pod_uid: &str, seconds: u64) -> EndedContainer {
        EndedContainer {
            namespace: "team".to_owned(),
            pod: "p".to_owned(),
            pod_uid: pod_uid.to_owned(),
            container: "main".to_owned(),
            container_id: "abc".to_owned(),
            exit_code: 137,
            reason: "OOMKilled".to_owned(),
            at_utc_ns: seconds * SECOND,
        }
    }

    /// A file that begins as a ring does.
    fn ring(folder: &Path) -> File {
        let path = folder.join("a ring");
        let bytes = 256_u64 << 10;
        let mut text = vec![0_u8; usize::try_from(bytes).unwrap()];
        text[..8].copy_from_slice(&flopwatch_ring::MAGIC);
        text[flopwatch_ring::header::VERSION_AT..][..4].copy_from_slice(&flopwatch_ring::VERSION.to_le_bytes());
        text[flopwatch_ring::header::BYTES_AT..][..8].copy_from_slice(&bytes.to_le_bytes());
        fs::write(&path, text).unwrap();
        File::open(path).unwrap()
    }

    #[test]
    fn the_latest_of_a_container_is_kept_until_it_is_too_old() {
        let folder = tempfile::tempdir().unwrap();
        let recordings = Recordings::new(folder.path().join("recordings"), 1 << 20, Duration::from_hours(1));
        recordings.sweep(0);
        assert_eq!(recordings.find("u", "main"), None);
        let ring = ring(folder.path());
        for seconds in [100, 200] {
            recordings.keep(&ended("u", seconds), Some(&ring), None).unwrap();
            assert_eq!(recordings.find("u", "main").unwrap().1, ended("u", seconds));
        }
        recordings.sweep(3_799 * SECOND);
        assert!(recordings.find("u", "main").is_some());
        recordings.sweep(3_800 * SECOND);
        assert_eq!(recordings.find("u", "main"), None);
        assert_eq!(fs::read_dir(folder.path().join("recordings")).unwrap().count(), 0);
    }

    #[test]
    fn of_too_many_the_oldest_go_and_one_that_is_too_large_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let of = |bytes| Recordings::new(folder.path().join("recordings"), bytes, Duration::from_hours(1));
        let ring = ring(folder.path());
        for (uid, seconds) in [("new", 300), ("old", 100), ("middle", 200)] {
            of(1 << 20).keep(&ended(uid, seconds), Some(&ring), None).unwrap();
        }
        of(512 << 10).sweep(400 * SECOND);
        let left = ["old", "middle", "new"].map(|uid| of(1).find(uid, "main").is_some());
        assert_eq!(left, [false, true, true]);
        let refused = of(1000).keep(&ended("another", 300), Some(&ring), None).unwrap_err();
        assert!(matches!(refused, ShelfError::TooLarge { .. }), "{refused}");
        assert!(!of(1000).is_on() || of(1).find("another", "main").is_none());
    }

    #[test]
    fn kernels_that_cannot_be_taken_cost_no_ranges_and_nothing_is_kept_of_neither() {
        let folder = tempfile::tempdir().unwrap();
        let recordings = Recordings::new(folder.path().join("recordings"), 1 << 20, Duration::from_hours(1));
        let spoilt = || {
            let path = folder.path().join("spoilt");
            fs::write(&path, "no trace").unwrap();
            File::open(path).unwrap()
        };
        let from = ring(folder.path());
        recordings.keep(&ended("u", 100), Some(&from), Some(spoilt())).unwrap();
        let (kept, _) = recordings.find("u", "main").unwrap();
        assert!(kept.ring.is_some() && kept.kernels.is_none(), "{kept:?}");
        let refused = recordings.keep(&ended("v", 100), None, Some(spoilt())).unwrap_err();
        assert!(matches!(refused, ShelfError::Kernels(_)), "{refused}");
        let empty = recordings.keep(&ended("v", 100), None, None).unwrap_err();
        assert!(matches!(empty, ShelfError::Empty), "{empty}");
        assert_eq!(recordings.find("v", "main"), None);
        let names = fs::read_dir(folder.path().join("recordings")).unwrap();
        let partial = names.filter(|entry| ends(&entry.as_ref().unwrap().path(), "partial"));
        assert_eq!(partial.count(), 0);
    }

    /// A file of the folder, which was last written so long before `now`.
    fn left(folder: &Path, name: &str, age: Duration, now: SystemTime) -> PathBuf {
        let path = folder.join(name);
        let file = File::create(&path).unwrap();
        file.set_modified(now - age).unwrap();
        path
    }

    #[test]
    fn what_a_killed_agent_did_not_finish_is_swept_and_what_is_being_written_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let shelf = folder.path().join("recordings");
        let recordings = Recordings::new(shelf.clone(), 1 << 20, Duration::from_hours(1));
        let now = SystemTime::now();
        let now_utc_ns = u64::try_from(now.duration_since(UNIX_EPOCH).unwrap().as_nanos()).unwrap();
        let ended = ended("u", now_utc_ns / SECOND);
        let from = ring(folder.path());
        recordings.keep(&ended, Some(&from), None).unwrap();
        let (soon, late) = (
            MIN_ABANDONED_AGE.saturating_sub(Duration::from_secs(1)),
            MIN_ABANDONED_AGE,
        );
        let kept = shelf.join("u_main.ring");
        File::options()
            .write(true)
            .open(&kept)
            .unwrap()
            .set_modified(now - late)
            .unwrap();
        let stay = [
            left(&shelf, "v_main.abc.partial", soon, now),
            left(&shelf, "v_main.ring", soon, now),
            left(&shelf, "somebody's", late, now),
            kept,
        ];
        let go = [
            left(&shelf, "w_main.abc.partial", late, now),
            left(&shelf, "w_main.partial", late, now),
            left(&shelf, "w_main.ring", late, now),
        ];
        for _twice in 0..2 {
            recordings.sweep(now_utc_ns);
            for path in &stay {
                assert!(path.exists(), "{}", path.display());
            }
            for path in &go {
                assert!(!path.exists(), "{}", path.display());
            }
        }
        assert_eq!(recordings.find("u", "main").unwrap().1, ended);
    }
}
