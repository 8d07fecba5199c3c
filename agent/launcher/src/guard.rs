//! No runaway: what ends a collection when nobody else does.
//!
//! The agent writes `collecting` into the run folder with every start; the session's supervisor
//! reads it and ends the collection itself when its deadline passes, its output outgrows its bound
//! or the volume runs short. The agent may be dead by then.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::run_dir::{self, RunDir};

/// A collection in progress and its bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collecting {
    /// Name of the profiler's session.
    pub session: String,
    /// When the supervisor ends it, Unix milliseconds: the window's end plus a grace for the
    /// agent's own stop.
    pub deadline_unix_ms: u64,
    /// Bytes by which the run folder may grow before it is stopped.
    pub max_bytes: u64,
    /// Free bytes of the run folder's volume below which it is thrown away.
    pub min_free_bytes: u64,
    /// The raw capture that a stop writes.
    pub output: PathBuf,
    /// Whether the start has come to its end: only then can the collection be stopped.
    pub running: bool,
}

impl Collecting {
    /// The file's text.
    pub fn render(&self) -> String {
        format!(
            "session={}\ndeadline_unix_ms={}\nmax_bytes={}\nmin_free_bytes={}\noutput={}\nrunning={}\n",
            self.session,
            self.deadline_unix_ms,
            self.max_bytes,
            self.min_free_bytes,
            self.output.display(),
            self.running
        )
    }

    /// Whether both speak of the same collection, be it running by now or not.
    fn is_same(&self, other: &Self) -> bool {
        Self {
            running: other.running,
            ..self.clone()
        } == *other
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
            running: field("running")?.parse().ok()?,
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

    /// Reads the `guard` file's text. The text of `collecting` there means that the volume had no
    /// room for a verdict.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Deadline, Self::TooLarge, Self::NoSpace, Self::Malformed]
            .into_iter()
            .find(|verdict| verdict.as_str() == text.trim())
            .or_else(|| Collecting::parse(text).map(|_| Self::NoSpace))
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

/// How long a start may take: until then a collection that is not said to run is given time.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// Watches one run folder.
#[derive(Debug)]
pub struct Guard {
    run_dir: RunDir,
    current: Option<Watched>,
}

/// The collection being watched.
#[derive(Debug)]
struct Watched {
    collecting: Collecting,
    /// On the monotonic clock, set once: a step of the wall clock moves no deadline.
    deadline: Instant,
    /// Bytes that were there before.
    before: u64,
}

impl Guard {
    /// Watches `run_dir`.
    pub fn new(run_dir: RunDir) -> Self {
        Self { run_dir, current: None }
    }

    /// Looks once; says which collection must end and why.
    pub fn inspect(&mut self) -> Option<(Option<Collecting>, Verdict)> {
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
        let bytes = self.run_dir.bytes();
        let known = self
            .current
            .take()
            .filter(|watched| watched.collecting.is_same(&collecting));
        let (deadline, before) = known.map_or_else(
            || {
                let left = Duration::from_millis(collecting.deadline_unix_ms.saturating_sub(run_dir::unix_ms()));
                // A deadline beyond what the clock can hold is no deadline to wait for.
                (Instant::now().checked_add(left).unwrap_or_else(Instant::now), bytes)
            },
            |watched| (watched.deadline, watched.before),
        );
        let verdict = if collecting.running {
            let left = deadline.saturating_duration_since(Instant::now());
            judge(
                &collecting,
                Sight {
                    left,
                    used: bytes.saturating_sub(before),
                    free: free_bytes(self.run_dir.path()),
                },
            )
        } else {
            // Still being started: a stop would find nothing to stop. Who started it may have died
            // over it.
            (Instant::now() >= deadline + START_TIMEOUT).then_some(Verdict::Deadline)
        };
        self.current = Some(Watched {
            collecting: collecting.clone(),
            deadline,
            before,
        });
        verdict.map(|verdict| (Some(collecting), verdict))
    }
}

fn free_bytes(path: &Path) -> Option<u64> {
    let volume = nix::sys::statvfs::statvfs(path).ok()?;
    Some(volume.blocks_available().saturating_mul(volume.fragment_size()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::run_dir::tests::run_folder;

    fn collecting() -> Collecting {
        Collecting {
            session: "fw".into(),
            deadline_unix_ms: 9,
            max_bytes: 100,
            min_free_bytes: 10,
            output: "/r/out/x.qdstrm".into(),
            running: true,
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
        let (_folder, run) = run_folder();
        let mut guard = Guard::new(run.clone());
        assert!(guard.inspect().is_none());
        run.write(run_dir::COLLECTING, b"nonsense").unwrap();
        assert_eq!(guard.inspect(), Some((None, Verdict::Malformed)));
    }

    #[test]
    fn what_was_collecting_in_place_of_a_verdict_is_a_want_of_space() {
        assert_eq!(Verdict::parse(&collecting().render()), Some(Verdict::NoSpace));
        assert_eq!(Verdict::parse("too_large\n"), Some(Verdict::TooLarge));
        assert_eq!(Verdict::parse(""), None);
    }

    #[test]
    fn a_passed_deadline_is_seen_at_the_first_look() {
        let (_folder, run) = run_folder();
        let collecting = Collecting {
            max_bytes: u64::MAX,
            min_free_bytes: 0,
            ..collecting()
        };
        run.write(run_dir::COLLECTING, collecting.render().as_bytes()).unwrap();
        assert_eq!(Guard::new(run).inspect(), Some((Some(collecting), Verdict::Deadline)));
    }

    #[test]
    fn only_what_a_running_collection_added_counts() {
        let (_folder, run) = run_folder();
        fs::write(run.file("earlier"), vec![0; 5000]).unwrap();
        let starting = Collecting {
            deadline_unix_ms: u64::MAX / 2,
            max_bytes: 1000,
            min_free_bytes: 0,
            running: false,
            ..collecting()
        };
        let mut guard = Guard::new(run.clone());
        run.write(run_dir::COLLECTING, starting.render().as_bytes()).unwrap();
        assert_eq!(guard.inspect(), None);
        fs::write(run.file("new"), vec![0; 2000]).unwrap();
        assert_eq!(guard.inspect(), None, "a start is given time");
        let running = Collecting {
            running: true,
            ..starting
        };
        run.write(run_dir::COLLECTING, running.render().as_bytes()).unwrap();
        assert_eq!(guard.inspect(), Some((Some(running), Verdict::TooLarge)));
    }
}
