//! A raw capture against what the workload counted itself.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use flopwatch_attach::nsys::{HostTools, failed_at_random};
use flopwatch_attach::sandbox::{self, Sandboxed};

use super::container::{Container, Rig, wait_for, wait_until};

/// A count that one of the workload's processes reported.
pub(crate) struct Count {
    /// Unix nanoseconds.
    t: u64,
    pub(crate) pid: u64,
    pub(crate) ranges: u64,
}

impl Count {
    /// Whether it was reported at least `time` and 400 ranges after another.
    pub(crate) fn is_later(&self, other: &Self, time: Duration) -> bool {
        Duration::from_nanos(self.t.saturating_sub(other.t)) >= time && self.ranges >= other.ranges + 400
    }
}

/// The counts in the workload's output; a last line that is still being written is left out.
pub(crate) fn counts(stdout: &str) -> Vec<Count> {
    let whole = stdout.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let field = |line: &str, name: &str| {
        line.split(' ')
            .find_map(|word| word.strip_prefix(name)?.parse().ok())
            .unwrap()
    };
    let lines = whole.lines().filter(|line| line.starts_with("t="));
    lines
        .map(|line| Count {
            t: field(line, "t="),
            pid: field(line, "pid="),
            ranges: field(line, "ranges="),
        })
        .collect()
}

impl Container {
    /// Waits until the workload has said of itself that it runs. Before that nothing may be done to
    /// it or to its session: between the launcher's decision and the workload's first instruction
    /// lies the start of the profiler's library.
    pub(crate) fn reports(&self) {
        wait_until("the workload's first report", || !counts(&self.stdout()).is_empty());
    }

    /// Waits until the workload has worked so long by its own reports, and so much.
    pub(crate) fn works_for(&self, time: Duration) {
        let first = counts(&self.stdout()).pop();
        wait_for("the workload's work", || {
            let last = counts(&self.stdout()).pop()?;
            first
                .as_ref()
                .is_none_or(|first| last.is_later(first, time))
                .then_some(())
        });
    }
}

/// A finished range.
struct Range {
    /// Unix nanoseconds.
    end: u64,
    pid: u64,
    name: String,
}

/// What a raw capture holds.
pub(crate) struct Capture {
    ranges: Vec<Range>,
}

/// Prints the end (Unix ns), PID and name of every finished range.
const QUERY: &str = "import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
epoch = db.execute('select utcEpochNs from TARGET_INFO_SESSION_START_TIME').fetchone()[0]
rows = db.execute('select n.end, (n.globalTid >> 24) & 0xffffff, coalesce(n.text, s.value) '
    'from NVTX_EVENTS n left join StringIds s on s.id = n.textId where n.eventType = 59 and n.end is not null')
for end, pid, name in rows: print(epoch + end, pid, name)";

impl Capture {
    /// Imports and exports a raw capture, in the sandbox, and reads its ranges.
    pub(crate) fn read(rig: &Rig, raw: &Path) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path();
        nix::unistd::chown(folder, Some(4321.into()), Some(4321.into())).unwrap();
        std::fs::copy(raw, folder.join("x.qdstrm")).unwrap();
        let tools = HostTools {
            nsys: rig.nsys_target.join("nsys"),
            importer: rig.nsys_host.join("QdstrmImporter"),
            libraries: rig.libraries.clone(),
        };
        let (report, sqlite, hdf) = (folder.join("x.nsys-rep"), folder.join("x.sqlite"), folder.join("x.h5"));
        let steps = [
            tools.import(&folder.join("x.qdstrm"), &report),
            tools.export_sqlite(&report, &sqlite),
            tools.export_hdf(&report, &hdf),
        ];
        for command in steps {
            let mut readable = vec![rig.nsys_target.clone(), rig.nsys_host.clone()];
            readable.extend(rig.libraries.iter().cloned());
            let tool = Sandboxed {
                readable,
                ..sandboxed(command, tools.environment(folder), folder)
            };
            let mut output = sandbox::run(&rig.reexec, &tool).unwrap();
            // As the agent does it.
            if failed_at_random(&output) {
                output = sandbox::run(&rig.reexec, &tool).unwrap();
            }
            assert!(
                output.success(),
                "{:?}: {}",
                output.end,
                String::from_utf8_lossy(&output.stderr)
            );
            assert!(output.missing.is_empty());
        }
        assert!(std::fs::read(&hdf).unwrap().starts_with(b"\x89HDF"));
        let output = Command::new("python3")
            .args(["-c", QUERY])
            .arg(&sqlite)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        let ranges = text.lines().map(|line| {
            let mut words = line.splitn(3, ' ');
            let mut word = || words.next().unwrap();
            Range {
                end: word().parse().unwrap(),
                pid: word().parse().unwrap(),
                name: word().to_owned(),
            }
        });
        Self {
            ranges: ranges.collect(),
        }
    }

    /// How many ranges it holds.
    pub(crate) fn len(&self) -> usize {
        self.ranges.len()
    }

    /// The names of its ranges, each once.
    pub(crate) fn names(&self) -> Vec<&str> {
        let names: BTreeSet<&str> = self.ranges.iter().map(|range| range.name.as_str()).collect();
        names.into_iter().collect()
    }

    /// Checks, for each process, that between its first and its last report inside the capture it
    /// holds what the process counted. The workload counts a step's four ranges when the step ends:
    /// at either edge four per thread are under way. Each process begins to record when it sees the
    /// session's request, so its own ranges bound what it can hold.
    pub(crate) fn agrees_with(&self, counts: &[Count], processes: usize, threads: u64) {
        let pids: BTreeSet<u64> = counts.iter().map(|count| count.pid).collect();
        assert_eq!(pids.len(), processes);
        for pid in pids {
            let ends = || {
                let own = self.ranges.iter().filter(|range| range.pid == pid);
                own.map(|range| range.end)
            };
            let first = ends().min().expect("a capture with ranges of each process");
            let last = ends().max().expect("a capture with ranges of each process");
            let inside = counts
                .iter()
                .filter(|count| count.pid == pid && count.t > first && count.t < last);
            let inside: Vec<&Count> = inside.collect();
            let (from, to) = (inside.first().expect("a report in the window"), inside.last().unwrap());
            let length = Duration::from_nanos(to.t - from.t);
            assert!(
                length > Duration::from_millis(500),
                "the window is too short to say anything"
            );
            let counted = to.ranges - from.ranges;
            let held = self
                .ranges
                .iter()
                .filter(|range| range.pid == pid && range.end >= from.t && range.end < to.t);
            let held = u64::try_from(held.count()).unwrap();
            eprintln!("process {pid}: {held} ranges captured, {counted} counted in the same {length:?}");
            assert!(
                counted > 100 && held.abs_diff(counted) <= 8 * threads,
                "process {pid}: {held}, not {counted}"
            );
        }
    }
}

/// A tool with bounds that are wide enough for all that the tests run.
pub(crate) fn sandboxed(command: Vec<String>, environment: Vec<(String, String)>, directory: &Path) -> Sandboxed {
    Sandboxed {
        command,
        environment,
        directory: directory.to_owned(),
        readable: Vec::new(),
        gpu: false,
        user: 4321,
        memory_bytes: 4 << 30,
        memory: sandbox::MemoryBound::AddressSpace,
        cgroups: None,
        file_bytes: 1 << 30,
        processes: 256,
        cpu_seconds: 60,
        deadline: Duration::from_mins(1),
        whole: true,
    }
}
