//! A program with the CUDA tracer's library in it, between a stand-in for the driver and ones for
//! libcupti. `README.md` says what these do.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "a rig of tests fails by a panic"
)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::OnceLock;

use flopwatch_tracer::LIBRARY;
use tempfile::TempDir;

/// Releases of libcupti that there are stand-ins for.
pub const RELEASES: [u32; 10] = [1108, 1200, 1206, 1208, 1300, 1301, 1302, 1303, 1304, 1305];

/// Compiles the stand-ins once, into the folder that cargo has for such things.
fn doubles() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let test = std::env::current_exe().unwrap();
        let target = test.ancestors().nth(3).expect("the test lies in target/PROFILE/deps");
        let folder = target.join("tmp/fake-cupti");
        std::fs::create_dir_all(&folder).unwrap();
        let shared = ["-shared", "-fPIC", "-pthread"];
        compile("program.c", &folder.join("program"), &["-pthread"]);
        compile(
            "next.c",
            &folder.join("libnext.so"),
            &[&shared[..], &["-Wno-unused-function"]].concat(),
        );
        compile(
            "cuda.c",
            &folder.join("libcuda.so.1"),
            &[&shared[..], &["-Wl,-soname,libcuda.so.1"]].concat(),
        );
        for release in RELEASES {
            let soname = format!("-Wl,-soname,libcupti.so.{}", suffix(release));
            let define = format!("-DRELEASE={release}");
            let words = [&shared[..], &[&soname, &define, "-Wno-infinite-recursion"]].concat();
            compile("cupti.c", &folder.join(format!("{release}.so")), &words);
        }
        folder
    })
}

fn compile(source: &str, to: &Path, words: &[&str]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut compile = Command::new("cc");
    compile.args(["-O1", "-Wall", "-Wextra", "-Werror"]).args(words);
    // Another process of the same tests may read the old one.
    let beside = to.with_extension(std::process::id().to_string());
    let output = compile
        .arg(folder.join(source))
        .arg("-o")
        .arg(&beside)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::rename(&beside, to).unwrap();
}

/// How the file of a release ends.
fn suffix(release: u32) -> &'static str {
    match release / 100 {
        11 => "11.8",
        12 => "12",
        _ => "13",
    }
}

/// A folder with the library, a program, a driver and a libcupti of ours of one release.
pub struct Rig {
    folder: TempDir,
    /// The folder of the programs' file, where that one is in memory.
    memory: Option<TempDir>,
    release: u32,
    variables: Vec<(&'static str, String)>,
}

impl Rig {
    /// A folder for one release.
    pub fn new(release: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let rig = Self {
            folder,
            memory: None,
            release,
            variables: Vec::new(),
        };
        std::fs::write(rig.path("libflopwatch_cuda.so"), LIBRARY).unwrap();
        for folder in ["trace", "driver", "own"] {
            std::fs::create_dir(rig.path(folder)).unwrap();
        }
        std::os::unix::fs::symlink(doubles().join("libcuda.so.1"), rig.path("driver/libcuda.so.1")).unwrap();
        rig.place(release, "own");
        rig
    }

    /// Puts a libcupti into a folder, and gives its path.
    pub fn place(&self, release: u32, folder: &str) -> PathBuf {
        std::fs::create_dir_all(self.path(folder)).unwrap();
        let path = self.path(folder).join(format!("libcupti.so.{}", suffix(release)));
        std::fs::copy(doubles().join(format!("{release}.so")), &path).unwrap();
        path
    }

    /// Puts the library that is called first into a folder, and gives its path; by another name, it
    /// is another profiler's library.
    pub fn place_next(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::copy(doubles().join("libnext.so"), &path).unwrap();
        path
    }

    /// With a variable of the program's environment.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: &impl ToString) -> Self {
        self.variables.push((name, value.to_string()));
        self
    }

    /// With the programs' file in memory, where pods have it.
    #[must_use]
    pub fn in_memory(mut self) -> Self {
        self.memory = Some(tempfile::tempdir_in("/dev/shm").unwrap());
        self
    }

    /// With something that goes wrong.
    #[must_use]
    pub fn failing(self, faults: &str) -> Self {
        self.with("FLOPWATCH_FAKE_CUPTI", &faults)
    }

    /// A path in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The file that the programs share.
    pub fn trace(&self) -> PathBuf {
        self.shared().join("cuda.trace")
    }

    /// The folder of that file.
    fn shared(&self) -> PathBuf {
        let in_memory = self.memory.as_ref().map(|folder| folder.path().to_owned());
        in_memory.unwrap_or_else(|| self.path("trace"))
    }

    /// The calls of libcupti: name, number, thread.
    pub fn calls(&self) -> Vec<(String, u64, u32)> {
        let text = std::fs::read_to_string(self.path("calls")).unwrap_or_default();
        let calls = text.lines().map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            (
                words[0].to_owned(),
                words[1].parse().unwrap(),
                words[2].parse().unwrap(),
            )
        });
        calls.collect()
    }

    /// The program, with the library in it.
    pub fn command(&self) -> Command {
        let mut command = self.bare();
        command
            .env("CUDA_INJECTION64_PATH", self.path("libflopwatch_cuda.so"))
            .env("FLOPWATCH_CUDA_DIR", self.shared())
            .env("FLOPWATCH_CUDA_CUPTI", self.path("own"))
            .env("FLOPWATCH_CUDA_BYTES", (8_u32 << 20).to_string())
            .env("FLOPWATCH_FAKE_LOG", self.path("calls"))
            .envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// The program alone.
    pub fn bare(&self) -> Command {
        let mut command = Command::new(doubles().join("program"));
        command
            .env("LD_LIBRARY_PATH", self.path("driver"))
            .env("FLOPWATCH_FAKE_DRIVER", (self.release * 10).to_string());
        command
    }

    /// Starts the program, and CUDA in it.
    pub fn start(&self) -> Program {
        let mut program = Program::of(self.command());
        assert_eq!(program.ask("init"), "init 0");
        program
    }
}

/// A program that runs; one that is still there when it is dropped is killed.
pub struct Program {
    /// The process.
    pub child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Program {
    /// Starts a command.
    pub fn of(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        Self {
            input: child.stdin.take(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
        }
    }

    /// Has a line done, without waiting.
    pub fn tell(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    /// The next line that it says.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Has a line done, and gives the answer.
    pub fn ask(&mut self, line: &str) -> String {
        self.tell(line);
        self.line()
    }

    /// Has something launched, and gives how many records the stand-in wrote for it.
    pub fn recorded(&mut self, line: &str) -> u64 {
        let answer = self.ask(line);
        let count = answer.strip_prefix("recorded ").and_then(|count| count.parse().ok());
        count.unwrap_or_else(|| panic!("{line}: the program said {answer:?}"))
    }

    /// Whether it has a library mapped.
    pub fn has_mapped(&self, part: &str) -> bool {
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", self.child.id())).unwrap();
        maps.lines().any(|line| line.contains(part))
    }

    /// Its memory in KiB, as the kernel calls it: `VmSize:` is what it has mapped in all,
    /// `RssAnon:` what is there of its own.
    pub fn memory_kib(&self, of: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let size = status.lines().find_map(|line| line.strip_prefix(of));
        size.unwrap().trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// Ends its input, and waits for its end.
    pub fn end(mut self) -> ExitStatus {
        drop(self.input.take());
        self.child.wait().unwrap()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // One that has ended cannot be killed.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
