//! Programs that NVTX's headers are compiled into, and a folder in which the library records them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use flopwatch_model::{Capture, Category, Events};
use flopwatch_recorder::LIBRARY;
use flopwatch_trace::{ReadLimits, read};
use tempfile::TempDir;

/// Headers of NVTX, by where they come from.
pub(crate) struct Headers {
    pub(crate) of: &'static str,
    pub(crate) folder: PathBuf,
}

/// The headers of both versions of Nsight Systems and of the crate `nvtx`, as far as this machine
/// has them.
pub(crate) fn headers() -> Vec<Headers> {
    let beside = |variable: &str| {
        let program = PathBuf::from(std::env::var_os(variable)?);
        Some(program.parent()?.join("nvtx/include"))
    };
    let sets = [
        ("FLOPWATCH_NSYS", beside("FLOPWATCH_NSYS")),
        ("FLOPWATCH_NSYS_NEWER", beside("FLOPWATCH_NSYS_NEWER")),
        ("the crate nvtx", of_the_crate()),
    ];
    let mut found = Vec::new();
    for (of, folder) in sets {
        match folder.filter(|folder| folder.join("nvtx3/nvToolsExt.h").exists()) {
            Some(folder) => found.push(Headers { of, folder }),
            None => println!("skipped: {of} brings no headers of NVTX to this machine"),
        }
    }
    found
}

/// The crate's sources are where cargo keeps them.
fn of_the_crate() -> Option<PathBuf> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args([
        "metadata",
        "--format-version",
        "1",
        "--offline",
        "--filter-platform",
        "x86_64-unknown-linux-gnu",
    ]);
    let said = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).output().ok()?;
    let metadata: serde_json::Value = serde_json::from_slice(&said.stdout).ok()?;
    let packages = metadata.get("packages")?.as_array()?;
    let nvtx = packages
        .iter()
        .find(|package| package.get("name").is_some_and(|name| name == "nvtx"))?;
    let manifest = PathBuf::from(nvtx.get("manifest_path")?.as_str()?);
    Some(manifest.parent()?.join("nvtx-sys/NVTX/c/include"))
}

/// A folder with the library, programs and a ring.
pub(crate) struct Rig {
    folder: TempDir,
    headers: PathBuf,
}

impl Rig {
    pub(crate) fn new(headers: &Headers) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("libflopwatch-recorder.so"), LIBRARY).unwrap();
        std::fs::create_dir(folder.path().join("ring")).unwrap();
        let rig = Self {
            folder,
            headers: headers.folder.clone(),
        };
        rig.compile("program.c", "program", &["-Wall"]);
        rig
    }

    /// One with the first headers of this machine; a test without any is skipped and says so.
    pub(crate) fn any() -> Option<Self> {
        headers().first().map(Self::new)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn ring(&self) -> PathBuf {
        self.path("ring/recorder.ring")
    }

    /// Compiles a source of this folder with the rig's headers.
    pub(crate) fn compile(&self, source: &str, name: &str, options: &[&str]) {
        let source = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/recorder")
            .join(source);
        let mut compile = Command::new("cc");
        compile
            .args(["-O2", "-pthread"])
            .args(options)
            .arg("-I")
            .arg(&self.headers);
        let output = compile
            .arg(source)
            .arg("-o")
            .arg(self.path(name))
            .arg("-ldl")
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// The program, recorded.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(self.path("program"));
        self.recorded(command.args(words));
        command
    }

    /// A command with the environment in which it is recorded.
    pub(crate) fn recorded<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command
            .env("NVTX_INJECTION64_PATH", self.path("libflopwatch-recorder.so"))
            .env("FLOPWATCH_RECORDER_DIR", self.path("ring"))
    }

    /// Runs the program to its end, and gives how many ranges it says it had.
    pub(crate) fn run(&self, words: &[&str]) -> u64 {
        ranges_of(&self.command(words).output().unwrap())
    }

    pub(crate) fn capture(&self) -> Capture {
        read(&self.ring(), &ReadLimits::default()).unwrap()
    }
}

/// What a program said that it did.
pub(crate) fn ranges_of(output: &Output) -> u64 {
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    let count = text.trim().strip_prefix("ranges ").and_then(|count| count.parse().ok());
    count.unwrap_or_else(|| panic!("the program said {text:?}"))
}

/// The ranges of a capture.
pub(crate) fn ranges(capture: &Capture) -> &Events {
    &capture.events[&Category::NvtxRange]
}

/// How many of a thing a capture says it lost.
pub(crate) fn lost(capture: &Capture, what: &str) -> u64 {
    let losses = capture.losses.list().into_iter().filter(|loss| loss.what == what);
    losses.map(|loss| loss.count).sum()
}
