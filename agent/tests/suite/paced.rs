//! The sample workload at a pace that is known, with the flight recorder in it.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use flopwatch_api::preparation::RECORDER_FILE;
use flopwatch_nvml::ContainerIdentity;
use flopwatch_recorder::LIBRARY;

/// Usual length of a step.
const STEP_DURATION: Duration = Duration::from_millis(20);
/// How long the program's file may take to appear.
const APPEARANCE_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes of the file that slows it down, the same always, so that it never reads half a number.
const DIGITS: usize = 12;

/// A program that works, with the recorder's library in it. It is ended when this is dropped.
pub(crate) struct Paced {
    pub(crate) id: String,
    pub(crate) ring: Arc<File>,
    /// The file of the ends of its steps: 8 bytes of Unix nanoseconds each, the least first.
    pub(crate) steps: PathBuf,
    program: Child,
    slowdown: File,
}

impl Paced {
    /// Starts it by a command that runs the sample workload, in a folder of its own and in the
    /// container of that ID; its steps vary by so many percent.
    pub(crate) fn start(mut workload: Command, beside: &Path, id: &str, variation: u32) -> Self {
        let folder = beside.join(id);
        std::fs::create_dir_all(&folder).unwrap();
        let (library, steps) = (folder.join("recorder.so"), folder.join("steps"));
        std::fs::write(&library, LIBRARY).unwrap();
        let slowed_by = folder.join("slowdown");
        let slowdown = File::create(&slowed_by).unwrap();
        let program = workload
            .env("NVTX_INJECTION64_PATH", library)
            .env("FLOPWATCH_RECORDER_DIR", &folder)
            .args(["--quiet", "--range-micros", "0", "--step-micros"])
            .arg(STEP_DURATION.as_micros().to_string())
            .args(["--step-variation", &variation.to_string(), "--slowdown-file"])
            .arg(slowed_by)
            .arg("--steps-file")
            .arg(&steps)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let (ring, limit) = (folder.join(RECORDER_FILE), Instant::now() + APPEARANCE_TIMEOUT);
        while !ring.exists() {
            assert!(Instant::now() < limit, "the program recorded nothing");
            pause();
        }
        let target = Self {
            id: id.to_owned(),
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
            namespace: "team".to_owned(),
            pod: self.id.clone(),
            container: "main".to_owned(),
        }
    }

    /// Makes its steps longer by so many basis points from the next one on.
    pub(crate) fn slow_down(&self, basis_points: i32) {
        let digits = format!("{basis_points:>DIGITS$}");
        self.slowdown.write_all_at(digits.as_bytes(), 0).unwrap();
    }
}

#[expect(clippy::disallowed_methods, reason = "there is no runtime that could be held up")]
fn pause() {
    std::thread::sleep(Duration::from_millis(20));
}

impl Drop for Paced {
    fn drop(&mut self) {
        self.program.kill().unwrap();
        self.program.wait().unwrap();
    }
}
