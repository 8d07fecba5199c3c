//! Fuzzing of every reader on stable Rust: files of ours and of the corpus, damaged, read in worker
//! processes whose memory and time are bounded. A round ends in a result, which then goes the way
//! of any capture, or in an error that names the file.
//!
//! What runs with the other tests is short and always the same. For longer, and with other damage:
//! `FLOPWATCH_FUZZ_SECONDS=600 FLOPWATCH_FUZZ_FIRST=100000 cargo test --release -p flopwatch-trace fuzz -- --show-output`;
//! seconds are for each format, `FLOPWATCH_FUZZ_TARGET` names a single one. A round is repeated by
//! its number.

mod mutate;
mod target;

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use flopwatch_summary::summarise;
use flopwatch_trace::timeline_file;
use flopwatch_trace::transform::{TransformOptions, transform};

use crate::random::Random;
use target::{Seeds, Target};

/// Time for each format, and its rounds, where no more was asked for.
const SECONDS: u64 = 6;
const ROUNDS: u64 = 200;
/// Longest time without a finished round.
const HANG_TIMEOUT: Duration = Duration::from_mins(2);
/// Address space of a worker in KiB: the files are small, and so must be what is made of them.
const MEMORY: u64 = 3 << 20;
/// Failures of a format after which it is left.
const ENOUGH: usize = 5;

/// What a worker is told in its environment.
const WORK: &str = "FLOPWATCH_FUZZ_WORK";

/// Rounds of a worker.
struct Work {
    target: &'static Target,
    first: u64,
    last: u64,
    seconds: u64,
    folder: PathBuf,
}

impl fmt::Display for Work {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, folder) = (self.target.name, self.folder.display());
        write!(out, "{name} {} {} {} {folder}", self.first, self.last, self.seconds)
    }
}

impl Work {
    fn told() -> Option<Self> {
        let told = std::env::var(WORK).ok()?;
        let mut words = told.splitn(5, ' ');
        let mut word = || words.next().unwrap();
        let target = target::find(word()).unwrap();
        let mut number = || word().parse().unwrap();
        let (first, last, seconds) = (number(), number(), number());
        Some(Self {
            target,
            first,
            last,
            seconds,
            folder: word().into(),
        })
    }

    fn round(&self) -> PathBuf {
        self.folder.join("round")
    }

    fn damaged(&self) -> PathBuf {
        self.folder.join("damaged.bin")
    }

    /// The worker's side.
    fn run(&self) {
        let begin = Instant::now();
        let seeds = (self.target.seeds)();
        let (mut results, mut errors) = (0_u64, 0_u64);
        for round in self.first..self.last {
            if begin.elapsed() >= Duration::from_secs(self.seconds) && round > self.first {
                break;
            }
            std::fs::write(self.round(), round.to_string()).unwrap();
            std::fs::write(self.damaged(), damaged(&seeds, round)).unwrap();
            match self.one() {
                Ok(()) => results += 1,
                Err(error) => {
                    assert!(error.contains("damaged.bin"), "{error}");
                    errors += 1;
                }
            }
        }
        std::fs::write(
            self.folder.join("done"),
            format!("{results} results, {errors} errors in {:.1?}", begin.elapsed()),
        )
        .unwrap();
    }

    /// What was read must be fit for everything that comes after.
    fn one(&self) -> Result<(), String> {
        let capture = (self.target.read)(&self.damaged())?;
        let timeline = transform(capture, TransformOptions::default());
        summarise(&timeline).to_json().map_err(|error| error.to_string())?;
        let output = self.folder.join("damaged.bin.h5");
        timeline_file::write(&timeline, &output).map_err(|error| error.to_string())
    }

    /// The other side: what the worker did, or in which round and how it failed.
    fn watch(&self) -> Result<String, (u64, String)> {
        let message = self.folder.join("said");
        let file = std::fs::File::create(&message).unwrap();
        let mut worker = Command::new("sh")
            .args(["-c", "ulimit -v \"$0\" && exec \"$@\"", &MEMORY.to_string()])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "fuzz::a_worker_reads_damaged_files", "--nocapture"])
            .env(WORK, self.to_string())
            // Each takes address space, and none of them memory.
            .env("MALLOC_ARENA_MAX", "2")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(file)
            .spawn()
            .unwrap();
        let mut last = String::new();
        let mut since = Instant::now();
        let status = loop {
            if let Some(status) = worker.try_wait().unwrap() {
                break Some(status);
            }
            let round = std::fs::read_to_string(self.round()).unwrap_or_default();
            if round != last {
                (last, since) = (round, Instant::now());
            } else if since.elapsed() >= HANG_TIMEOUT {
                worker.kill().unwrap();
                worker.wait().unwrap();
                break None;
            }
            pause();
        };
        let done = std::fs::read_to_string(self.folder.join("done"));
        if let (Some(true), Ok(done)) = (status.map(|status| status.success()), done) {
            return Ok(done);
        }
        let round = std::fs::read_to_string(self.round()).unwrap_or_default();
        let how = status.map_or_else(|| "hangs".to_owned(), |status| status.to_string());
        let message = std::fs::read_to_string(message).unwrap_or_default();
        Err((
            round.parse().unwrap_or(self.first),
            format!("{how}: {}", message.trim()),
        ))
    }
}

#[allow(clippy::disallowed_methods, reason = "there is no runtime")]
fn pause() {
    std::thread::sleep(Duration::from_millis(20));
}

/// The file of a round.
fn damaged(seeds: &Seeds, round: u64) -> Vec<u8> {
    let mut random = Random(round.wrapping_mul(0xD6E8_FEB8_6659_FD93));
    let which = usize::try_from(round).unwrap() % seeds.len();
    let seed = &seeds[which];
    let other = &seeds[random.below(seeds.len())];
    let bytes = mutate::mutate(&seed.bytes, &other.bytes, &mut random);
    (seed.pack)(bytes)
}

fn setting(name: &str) -> Option<u64> {
    let value = std::env::var(format!("FLOPWATCH_FUZZ_{name}")).ok()?;
    Some(value.parse().unwrap())
}

/// Rounds of one format until its time is up.
fn fuzz(target: &'static Target, folder: &Path) -> Vec<String> {
    let begin = Instant::now();
    let asked = setting("SECONDS");
    let seconds = asked.unwrap_or(SECONDS);
    let mut first = setting("FIRST").unwrap_or(0);
    let last = first + if asked.is_some() { u64::MAX / 2 } else { ROUNDS };
    let mut failures = Vec::new();
    while failures.len() < ENOUGH && first < last {
        let left = seconds.saturating_sub(begin.elapsed().as_secs());
        if left == 0 && !failures.is_empty() {
            break;
        }
        let work = Work {
            target,
            first,
            last,
            seconds: left,
            folder: folder.to_owned(),
        };
        match work.watch() {
            Ok(done) => {
                println!("{}: {done}", target.name);
                break;
            }
            Err((round, how)) => {
                failures.push(format!("{} round {round} {how}", target.name));
                first = round + 1;
            }
        }
    }
    failures
}

#[test]
fn damage_ends_in_an_error_that_names_the_file_or_in_a_result() {
    let only = std::env::var("FLOPWATCH_FUZZ_TARGET").ok();
    let mut failures = Vec::new();
    for target in target::ALL {
        if only.as_ref().is_none_or(|only| only == target.name) {
            let folder = tempfile::tempdir().unwrap();
            failures.extend(fuzz(target, folder.path()));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Does nothing unless the test above starts it in a process of its own.
#[test]
fn a_worker_reads_damaged_files() {
    if let Some(work) = Work::told() {
        work.run();
    }
}
