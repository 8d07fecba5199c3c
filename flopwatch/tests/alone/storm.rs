//! Many records side by side, and in every second one a process of the profiler is killed at some
//! moment: the others work, the next ones too, and nothing stays behind.
//!
//! Thirty records, or as many as `FLOPWATCH_RECORDS` says (`cargo xtask soak --records 1000`);
//! `FLOPWATCH_SEED` draws the kills. Needs Nsight Systems as the tests of `record` do. It holds
//! against what lies in `/dev/shm`.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use flopwatch_attach::nsys::HostTools;
use flopwatch_test_harness::workload;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::ONE_AT_A_TIME;
use crate::given::nsys;

/// Records at a time.
const LANES: u64 = 6;
/// Within this time a record that nobody strikes has begun its command.
const START_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest time that a record may take, a struck one too.
const RUN_TIMEOUT: Duration = Duration::from_mins(2);
/// The latest moment of a kill.
const MAX_STRIKE_DELAY: Duration = Duration::from_millis(3500);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// How one record went.
struct Outcome {
    number: u64,
    /// The process that was killed.
    struck: Option<String>,
    /// Its exit code; none when it took too long.
    code: Option<i32>,
    /// How long its command took to begin; none when it never did.
    begun: Option<Duration>,
    took: Duration,
    message: String,
}

#[test]
fn whatever_process_of_the_profiler_is_killed_the_next_record_works() {
    let _turn = ONE_AT_A_TIME.blocking_lock();
    let Some(tools) = nsys() else { return };
    let number = |name: &str| std::env::var(name).ok().map(|value| value.parse::<u64>().unwrap());
    let count = number("FLOPWATCH_RECORDS").unwrap_or(30);
    let seed = number("FLOPWATCH_SEED").unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        u64::from(now.subsec_nanos())
    });
    println!("{count} records, {LANES} at a time, seed {seed}");
    let before = names_of_the_profiler();
    let workload = workload::program();
    let folder = tempfile::tempdir().unwrap();
    let (tools, workload, place) = (&tools, &workload, folder.path());
    let outcomes: Vec<Outcome> = std::thread::scope(|scope| {
        let lane = |lane| {
            scope.spawn(move || {
                (0..count)
                    .filter(|number| number % LANES == lane)
                    // Struck and spared in turn, on every lane.
                    .map(|number| record(tools, workload, place, number, seed, (number / LANES).is_multiple_of(2)))
                    .collect::<Vec<_>>()
            })
        };
        let lanes: Vec<_> = (0..LANES).map(lane).collect();
        lanes.into_iter().flat_map(|lane| lane.join().unwrap()).collect()
    });
    report(&outcomes);

    for outcome in outcomes.iter().filter(|outcome| outcome.struck.is_none()) {
        assert_eq!(outcome.code, Some(0), "record {}: {}", outcome.number, outcome.message);
        let begun = outcome.begun.unwrap();
        assert!(begun < START_TIMEOUT, "record {} began after {begun:?}", outcome.number);
    }
    let hung: Vec<u64> = outcomes
        .iter()
        .filter(|outcome| outcome.code.is_none())
        .map(|outcome| outcome.number)
        .collect();
    assert!(hung.is_empty(), "records that did not come to an end: {hung:?}");
    let left: Vec<String> = processes_that_name(place);
    assert!(left.is_empty(), "processes that stayed: {left:?}");
    // The last that was struck may have left names: the next record, as any other, removes them.
    let last = record(tools, workload, place, count, seed, false);
    assert_eq!(last.code, Some(0), "{}", last.message);
    let stayed: Vec<String> = names_of_the_profiler()
        .into_iter()
        .filter(|name| !before.contains(name))
        .collect();
    assert!(stayed.is_empty(), "in /dev/shm: {stayed:?}");
    let spools: Vec<_> = fs::read_dir(place)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert!(spools.is_empty(), "{spools:?}");
}

/// One record of a second of the sample workload; where it is struck, one process of the profiler's
/// is killed.
fn record(tools: &HostTools, workload: &Path, folder: &Path, number: u64, seed: u64, strike: bool) -> Outcome {
    let own = folder.join(number.to_string());
    fs::create_dir(&own).unwrap();
    let (out, err) = (own.join("stdout"), own.join("stderr"));
    let start = Instant::now();
    let mut child = Command::new(env!("CARGO_BIN_EXE_flopwatch"))
        .args(["record", "--duration", "20", "--no-serve", "--output"])
        .arg(own.join("out"))
        .arg("--")
        .arg(workload)
        .args(["--seconds", "1"])
        .env("TMPDIR", &own)
        .stdin(Stdio::null())
        .stdout(File::create(&out).unwrap())
        .stderr(File::create(&err).unwrap())
        .spawn()
        .unwrap();
    let drawn = fastrand::Rng::with_seed(seed.wrapping_add(number)).u64(..);
    let at = Duration::from_millis(drawn % u64::try_from(MAX_STRIKE_DELAY.as_millis()).unwrap());
    let (mut struck, mut begun) = (None, None);
    let code = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status.code();
        }
        if start.elapsed() > RUN_TIMEOUT {
            child.kill().unwrap();
            child.wait().unwrap();
            break None;
        }
        if begun.is_none() && fs::metadata(&out).unwrap().len() > 0 {
            begun = Some(start.elapsed());
        }
        if strike && struck.is_none() && start.elapsed() >= at {
            struck = kill_one(tools, i32::try_from(child.id()).unwrap(), drawn);
        }
        pause(POLL_INTERVAL);
    };
    if begun.is_none() && fs::metadata(&out).unwrap().len() > 0 {
        begun = Some(start.elapsed());
    }
    let took = start.elapsed();
    let message = fs::read_to_string(&err).unwrap_or_default();
    fs::remove_dir_all(&own).unwrap();
    Outcome {
        number,
        // One that came to its end before its moment is held against the same as one that was
        // spared.
        struck,
        code,
        begun,
        took,
        message,
    }
}

/// Kills one of the profiler's processes below a record, and says which.
fn kill_one(tools: &HostTools, record: i32, drawn: u64) -> Option<String> {
    let folders: Vec<PathBuf> = [&tools.nsys, &tools.importer]
        .iter()
        .filter_map(|program| Some(program.canonicalize().ok()?.parent()?.to_owned()))
        .collect();
    let of_the_profiler: Vec<(i32, PathBuf)> = below(record)
        .into_iter()
        .filter_map(|pid| Some((pid, fs::read_link(format!("/proc/{pid}/exe")).ok()?)))
        .filter(|(_, program)| folders.iter().any(|folder| program.starts_with(folder)))
        .collect();
    let count = u64::try_from(of_the_profiler.len()).unwrap();
    let index = usize::try_from((drawn >> 32).checked_rem(count)?).unwrap();
    let (pid, program) = of_the_profiler.get(index)?;
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let verb = line.split(|byte| *byte == 0).nth(1).unwrap_or_default();
    kill(Pid::from_raw(*pid), Signal::SIGKILL).ok()?;
    let verb = String::from_utf8_lossy(verb);
    // The launcher's first argument is a path.
    let verb = if verb.starts_with('/') || verb.chars().all(|letter| letter.is_ascii_digit()) {
        ""
    } else {
        &*verb
    };
    Some(
        format!("{} {verb}", program.file_name()?.to_string_lossy())
            .trim_end()
            .to_owned(),
    )
}

/// The processes below one.
fn below(of: i32) -> Vec<i32> {
    let parents: Vec<(i32, i32)> = pids()
        .into_iter()
        .filter_map(|pid| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            let parent = stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?;
            Some((pid, parent.parse().ok()?))
        })
        .collect();
    let mut found = vec![of];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        found.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
        next += 1;
    }
    found.split_off(1)
}

fn pids() -> Vec<i32> {
    let entries = fs::read_dir("/proc").unwrap();
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect()
}

/// Processes whose environment or command line names a folder.
fn processes_that_name(folder: &Path) -> Vec<String> {
    let needle = folder.as_os_str().as_bytes();
    let own = i32::try_from(std::process::id()).unwrap();
    let names = |text: Vec<u8>| text.windows(needle.len()).any(|part| part == needle);
    pids()
        .into_iter()
        .filter(|pid| *pid != own)
        .filter(|pid| {
            ["environ", "cmdline"]
                .iter()
                .any(|file| fs::read(format!("/proc/{pid}/{file}")).is_ok_and(names))
        })
        .map(|pid| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            format!("{pid} {}", String::from_utf8_lossy(&line).replace('\0', " "))
        })
        .collect()
}

/// What of the profiler's lies in shared memory.
fn names_of_the_profiler() -> Vec<String> {
    let is_profilers = |name: &String| {
        ["NSys-", "quadd-", "sem.nsys", "flopwatch"]
            .iter()
            .any(|start| name.starts_with(start))
    };
    let entries = fs::read_dir("/dev/shm").unwrap();
    entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(is_profilers)
        .collect()
}

fn report(outcomes: &[Outcome]) {
    let spared = || outcomes.iter().filter(|outcome| outcome.struck.is_none());
    let mut begun: Vec<Duration> = spared().filter_map(|outcome| outcome.begun).collect();
    begun.sort_unstable();
    let at = |share: usize| {
        begun
            .get(begun.len().saturating_sub(1) * share / 100)
            .copied()
            .unwrap_or_default()
    };
    let longest = outcomes.iter().map(|outcome| outcome.took).max().unwrap_or_default();
    println!(
        "spared: {}, {} of them with exit code 0; their commands began after {:?} (median), {:?} (99th percentile), {:?} (longest); longest record {longest:?}",
        spared().count(),
        spared().filter(|outcome| outcome.code == Some(0)).count(),
        at(50),
        at(99),
        at(100),
    );
    let mut struck: BTreeMap<(&str, Option<i32>), u32> = BTreeMap::new();
    for outcome in outcomes {
        if let Some(program) = &outcome.struck {
            *struck.entry((program, outcome.code)).or_default() += 1;
        }
    }
    for ((program, code), count) in struck {
        println!("killed: {program}: {count} records ended with {code:?}");
    }
    for outcome in outcomes
        .iter()
        .filter(|outcome| outcome.struck.is_none() && outcome.code != Some(0))
    {
        println!(
            "record {}, spared, ended with {:?} after {:?}: {}",
            outcome.number, outcome.code, outcome.took, outcome.message
        );
    }
}

#[allow(clippy::disallowed_methods, reason = "this test has no runtime")]
fn pause(time: Duration) {
    std::thread::sleep(time);
}
