//! No runaway: what ends a collection when nobody else does.
//!
//! The agent writes `collecting` into the run folder with every start; the session's keeper reads it and ends the
//! collection itself when its deadline passes, its output outgrows its bound or the volume runs short. The agent may
//! be dead by then.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::run_dir::{self, RunDir};

/// A collection in progress and its bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collecting {
    /// Name of the profiler's session.
    pub session: String,
    /// When the keeper ends it, Unix milliseconds: the window's end plus a grace for the agent's own stop.
    pub deadline_unix_ms: u64,
    /// Bytes below the run folder at which it is stopped.
    pub max_bytes: u64,
    /// Free bytes of the run folder's volume below which it is thrown away.
    pub min_free_bytes: u64,
    /// The raw capture that a stop writes.
    pub output: PathBuf,
}

impl Collecting {
    /// The file's text.
    pub fn render(&self) -> String {
        format!(
            "session={}\ndeadline_unix_ms={}\nmax_bytes={}\nmin_free_bytes={}\noutput={}\n",
            self.session,
            self.deadline_unix_ms,
            self.max_bytes,
            self.min_free_bytes,
            self.output.display()
        )
    }

    /// Reads the file's text; none when a field is absent or malformed.
    pub fn parse(text: &str) -> Option<Self> {
        let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        Some(Self {
            session: field("session").filter(|name| !name.is_empty())?.to_owned(),
            deadline_unix_ms: field("deadline_unix_ms")?.parse().ok()?,
            max_bytes: field("max_bytes")?.parse().ok()?,
            min_free_bytes: field("min_free_bytes")?.parse().ok()?,
            output: field("output").filter(|path| path.starts_with('/'))?.into(),
        })
    }
}

/// Why the guard ended a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Its deadline passed: stopped, the data is kept.
    Deadline,
    /// Its output outgrew its bound: stopped, the data is kept.
    TooLarge,
    /// The volume runs short: thrown away.
    NoSpace,
    /// The control file is not one: thrown away.
    Malformed,
}

impl Verdict {
    /// Its name in the `guard` file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deadline => "deadline",
            Self::TooLarge => "too_large",
            Self::NoSpace => "no_space",
            Self::Malformed => "malformed",
        }
    }

    /// Whether what was collected until then is kept.
    pub fn keeps(self) -> bool {
        matches!(self, Self::Deadline | Self::TooLarge)
    }
}

/// What the guard sees.
#[derive(Debug, Clone, Copy)]
pub struct Sight {
    /// Time left to the deadline on the monotonic clock.
    pub left: Duration,
    /// Bytes below the run folder.
    pub used: u64,
    /// Free bytes of its volume; none when the kernel did not say.
    pub free: Option<u64>,
}

/// Whether the collection must end.
pub fn judge(collecting: &Collecting, sight: Sight) -> Option<Verdict> {
    if sight.free.is_some_and(|free| free < collecting.min_free_bytes) {
        Some(Verdict::NoSpace)
    } else if sight.used > collecting.max_bytes {
        Some(Verdict::TooLarge)
    } else if sight.left.is_zero() {
        Some(Verdict::Deadline)
    } else {
        None
    }
}

/// Watches one run folder.
#[derive(Debug)]
pub struct Guard {
    run_dir: RunDir,
    /// The collection being watched, and its deadline on the monotonic clock: set once, so that a step of the wall
    /// clock moves no deadline.
    current: Option<(Collecting, Instant)>,
}

impl Guard {
    /// Watches `run_dir`.
    pub fn new(run_dir: RunDir) -> Self {
        Self { run_dir, current: None }
    }

    /// Looks once; says which collection must end and why.
    pub fn look(&mut self) -> Option<(Option<Collecting>, Verdict)> {
        if !self.run_dir.has(run_dir::COLLECTING) {
            self.current = None;
            return None;
        }
        let Some(collecting) = self
            .run_dir
            .read_text(run_dir::COLLECTING)
            .ok()
            .and_then(|text| Collecting::parse(&text))
        else {
            // It may have been removed between the two looks.
            return self
                .run_dir
                .has(run_dir::COLLECTING)
                .then_some((None, Verdict::Malformed));
        };
        let deadline = match &self.current {
            Some((known, deadline)) if *known == collecting => *deadline,
            _ => {
                let left = Duration::from_millis(collecting.deadline_unix_ms.saturating_sub(run_dir::unix_ms()));
                // A deadline beyond what the clock can hold is no deadline to wait for.
                Instant::now().checked_add(left).unwrap_or_else(Instant::now)
            }
        };
        let sight = Sight {
            left: deadline.saturating_duration_since(Instant::now()),
            used: bytes_below(self.run_dir.path(), 0),
            free: free_bytes(self.run_dir.path()),
        };
        let verdict = judge(&collecting, sight);
        self.current = Some((collecting.clone(), deadline));
        verdict.map(|verdict| (Some(collecting), verdict))
    }
}

/// Bytes of regular files below a folder, not following links, at most 8 levels deep.
pub fn bytes_below(folder: &Path, depth: u32) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let mut bytes: u64 = 0;
    for path in entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .collect::<Vec<PathBuf>>()
    {
        let Ok(metadata) = fs::symlink_metadata(&path) else {
            continue;
        };
        if metadata.is_dir() && depth < 8 {
            bytes = bytes.saturating_add(bytes_below(&path, depth + 1));
        } else if metadata.is_file() {
            bytes = bytes.saturating_add(metadata.len());
        }
    }
    bytes
}

fn free_bytes(path: &Path) -> Option<u64> {
    let volume = nix::sys::statvfs::statvfs(path).ok()?;
    Some(volume.blocks_available().saturating_mul(volume.fragment_size()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collecting() -> Collecting {
        Collecting {
            session: "fw".into(),
            deadline_unix_ms: 9,
            max_bytes: 100,
            min_free_bytes: 10,
            output: "/r/out/x.qdstrm".into(),
        }
    }

    #[test]
    fn space_goes_before_size_and_size_before_time() {
        let cases = [
            (1, 0, Some(50), None),
            (0, 0, Some(50), Some(Verdict::Deadline)),
            (0, 101, Some(50), Some(Verdict::TooLarge)),
            (1, 101, Some(9), Some(Verdict::NoSpace)),
            (1, 100, None, None),
        ];
        for (left, used, free, verdict) in cases {
            assert_eq!(
                judge(
                    &collecting(),
                    Sight {
                        left: Duration::from_secs(left),
                        used,
                        free
                    }
                ),
                verdict
            );
        }
    }

    #[test]
    fn the_control_file_reads_back_and_a_broken_one_ends_the_collection() {
        assert_eq!(Collecting::parse(&collecting().render()), Some(collecting()));
        let folder = tempfile::tempdir().unwrap();
        let run = RunDir::new(folder.path());
        let mut guard = Guard::new(run.clone());
        assert!(guard.look().is_none());
        run.write(run_dir::COLLECTING, b"nonsense").unwrap();
        assert_eq!(guard.look(), Some((None, Verdict::Malformed)));
    }

    #[test]
    fn a_passed_deadline_is_seen_at_the_first_look() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDir::new(folder.path());
        let collecting = Collecting {
            max_bytes: u64::MAX,
            min_free_bytes: 0,
            ..collecting()
        };
        run.write(run_dir::COLLECTING, collecting.render().as_bytes()).unwrap();
        assert_eq!(Guard::new(run).look(), Some((Some(collecting), Verdict::Deadline)));
    }
}
