//! A program whose pace is known, and what it wrote down of its steps.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use flopwatch_api::preparation::RECORDER_FILE;
use flopwatch_nvml::ContainerIdentity;
use flopwatch_recorder::LIBRARY;

use crate::{WORKLOAD, wait_until};

/// Usual length of a step.
const STEP: Duration = Duration::from_millis(20);
/// How long the program's file may take to appear.
const APPEARS: Duration = Duration::from_secs(30);
/// Bytes of the file that slows it down, the same always, so that it never reads half a number.
const DIGITS: usize = 12;

/// A program that works, with the recorder's library in it. It is ended when this is dropped.
pub(crate) struct Target {
    pub(crate) id: String,
    pub(crate) ring: Arc<File>,
    program: Child,
    slowdown: File,
    steps: PathBuf,
}

impl Target {
    /// Starts it in a folder of its own.
    pub(crate) fn start(beside: &Path, number: usize, variation: u32) -> Self {
        let folder = beside.join(number.to_string());
        std::fs::create_dir_all(&folder).unwrap();
        let (library, steps) = (folder.join("recorder.so"), folder.join("steps"));
        std::fs::write(&library, LIBRARY).unwrap();
        let slowed_by = folder.join("slowdown");
        let slowdown = File::create(&slowed_by).unwrap();
        let program = Command::new(std::env::var_os(WORKLOAD).unwrap())
            .env("NVTX_INJECTION64_PATH", library)
            .env("FLOPWATCH_RECORDER_DIR", &folder)
            .args(["--quiet", "--range-micros", "0", "--step-micros"])
            .arg(STEP.as_micros().to_string())
            .args(["--step-variation", &variation.to_string(), "--slowdown-file"])
            .arg(slowed_by)
            .arg("--steps-file")
            .arg(&steps)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let (ring, limit) = (folder.join(RECORDER_FILE), Instant::now() + APPEARS);
        while !ring.exists() {
            assert!(Instant::now() < limit, "the program recorded nothing");
            wait_until(Instant::now() + Duration::from_millis(20));
        }
        let target = Self {
            id: format!("container-{number}"),
            ring: Arc::new(File::open(ring).unwrap()),
            program,
            slowdown,
            steps,
        };
        target.slow_down(0);
        target
    }

    pub(crate) fn whose(&self) -> ContainerIdentity {
        ContainerIdentity {
            namespace: "bench".to_owned(),
            pod: self.id.clone(),
            container: "main".to_owned(),
        }
    }

    /// Makes its steps longer by so many basis points from the next one on.
    pub(crate) fn slow_down(&self, basis_points: i32) {
        let digits = format!("{basis_points:>DIGITS$}");
        self.slowdown.write_all_at(digits.as_bytes(), 0).unwrap();
    }

    /// The ends of its steps so far, in ns since 1970.
    pub(crate) fn ends(&self) -> Ends {
        let written = std::fs::read(&self.steps).unwrap();
        let (whole, _) = written.as_chunks();
        Ends(whole.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect())
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        self.program.kill().unwrap();
        self.program.wait().unwrap();
    }
}

/// The ends of steps, in order: the program's own count.
pub(crate) struct Ends(Vec<u64>);

impl Ends {
    /// Steps that ended, and the seconds they took, from the first that ended within a time in ns since 1970 to the last.
    pub(crate) fn within(&self, (from_ns, until_ns): (u64, u64)) -> (f64, f64) {
        let first = self.0.partition_point(|end| *end < from_ns);
        let after = self.0.partition_point(|end| *end < until_ns);
        let inside = &self.0[first..after];
        let [begin, .., end] = inside else {
            panic!("the program made no steps in that time");
        };
        ((inside.len() - 1) as f64, (end - begin) as f64 / 1e9)
    }
}
