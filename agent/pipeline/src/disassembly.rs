//! Text of machine code (SASS), which NVIDIA's disassembler makes where the machine has one.
//!
//! Reports of Nsight Compute hold machine code. The child that reads one runs the disassembler
//! within its own sandbox: without a network, without rights, with bounded memory and processor
//! time. It is handed a kernel's instructions alone: no header, symbol or table of a file from
//! outside. How long it may take and how much it may say is bounded here.

use std::ffi::OsString;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use flopwatch_model::{Capture, InstructionText, KernelFunction};

/// How a child is told where the disassembler is; users name one with it too.
pub const VARIABLE: &str = "FLOPWATCH_NVDISASM";
/// Its name on PATH.
const PROGRAM: &str = "nvdisasm";
/// Where NVIDIA's installer puts it.
const NVIDIA: &str = "/usr/local/cuda/bin/nvdisasm";

/// Bounds of the disassembly of a capture.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Longest time for a kernel.
    pub kernel: Duration,
    /// Longest time for all of them.
    pub all: Duration,
    /// Most that is said of a kernel, in bytes. An instruction of 16 bytes has some 80.
    pub output_bytes: u64,
}

impl Default for Limits {
    /// 10 s for a kernel, a minute for all, 64 MiB.
    fn default() -> Self {
        Self {
            kernel: Duration::from_secs(10),
            all: Duration::from_mins(1),
            output_bytes: 64 << 20,
        }
    }
}

/// Most bytes of a complaint that are kept.
const MAX_COMPLAINT_BYTES: u64 = 4 << 10;
/// Characters of it that are shown.
const MAX_SHOWN_CHARS: usize = 200;
/// How often its end is looked for.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Finds the disassembler: the one that is named, else the one on `path` (as in `PATH`), else that
/// of NVIDIA's installer.
pub fn find(named: Option<&Path>, path: Option<&OsString>) -> Option<PathBuf> {
    let on_path = path
        .into_iter()
        .flat_map(std::env::split_paths)
        .map(|folder| folder.join(PROGRAM));
    let candidates: Vec<PathBuf> = match named {
        Some(named) => vec![named.to_owned()],
        None => on_path.chain([NVIDIA.into()]).collect(),
    };
    let real = candidates
        .into_iter()
        .filter_map(|candidate| candidate.canonicalize().ok());
    real.into_iter().find(|program| program.is_file())
}

/// The disassembler of this machine: the one of [`VARIABLE`], or as [`find`] finds it.
pub fn on_this_machine() -> Option<PathBuf> {
    let named = std::env::var_os(VARIABLE)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from);
    find(named.as_deref(), std::env::var_os("PATH").as_ref())
}

/// Gives machine code of a capture its text, with the disassembler that this child was told of.
pub(crate) fn of_capture(capture: &mut Capture) {
    let program = std::env::var_os(VARIABLE).map(PathBuf::from);
    disassemble(capture, program.as_deref(), &Limits::default());
}

/// Gives machine code of a capture its text, or the reason why there is none.
pub fn disassemble(capture: &mut Capture, program: Option<&Path>, limits: &Limits) {
    let begin = Instant::now();
    let mut known: Vec<(Arc<KernelFunction>, Arc<KernelFunction>)> = Vec::new();
    for profile in &mut capture.profiles {
        let Some(function) = profile.function.as_mut().filter(|function| !function.code.is_empty()) else {
            continue;
        };
        // Launches of one kernel have its code in common, and most follow each other.
        if let Some((_, made)) = known.iter().rev().find(|(raw, _)| Arc::ptr_eq(raw, function)) {
            *function = Arc::clone(made);
            continue;
        }
        let left = limits.all.saturating_sub(begin.elapsed());
        let text = match program {
            None => Err(Error::NoProgram),
            Some(_) if left.is_zero() => Err(Error::NoTime(limits.all)),
            Some(program) => text(program, function, limits.kernel.min(left), limits.output_bytes),
        };
        let mut made = KernelFunction::clone(function);
        made.code = Vec::new();
        match text {
            Ok(instructions) => made.instructions = instructions,
            Err(error) => made.not_disassembled = error.to_string(),
        }
        let made = Arc::new(made);
        known.push((std::mem::replace(function, Arc::clone(&made)), made));
    }
}

/// Why machine code has no text.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(
        "NVIDIA's disassembler was not found when this capture was read: install nvdisasm (CUDA toolkit; Debian: nvidia-cuda-toolkit of the \
         component non-free; PyPI: nvidia-cuda-nvdisasm), or name it with --nvdisasm or {VARIABLE}, and read the report again"
    )]
    NoProgram,
    #[error("the kernels before it took nvdisasm {0:?}, the most that a report has")]
    NoTime(Duration),
    #[error("the machine code does not say which architecture it is for")]
    NoArchitecture,
    #[error("nvdisasm could not be run: {0}")]
    Io(#[from] io::Error),
    #[error("nvdisasm took longer than {0:?} and was ended")]
    Deadline(Duration),
    #[error("nvdisasm wrote more than {0} bytes and was ended")]
    TooMuch(u64),
    #[error("nvdisasm failed ({how}): {said}")]
    Failed { how: String, said: String },
    #[error("nvdisasm wrote no instruction of it")]
    Nothing,
    #[error("nvdisasm wrote an instruction at {0:#x}, where the kernel has none")]
    Outside(u64),
}

/// `sm_90` as the disassembler calls bare instructions of it. From there on each architecture has a
/// second set of instructions, which holds the first.
fn architecture(function: &KernelFunction) -> Option<String> {
    const FIRST_WITH_MORE: u32 = 90;
    let number: u32 = function.architecture.strip_prefix("sm_")?.parse().ok()?;
    let more = if number >= FIRST_WITH_MORE { "a" } else { "" };
    Some(format!("SM{number}{more}"))
}

/// The text of a function. Offsets count from its first instruction, and so do the targets of
/// branches in the text.
fn text(
    program: &Path,
    function: &KernelFunction,
    deadline: Duration,
    output_bytes: u64,
) -> Result<Vec<InstructionText>, Error> {
    let architecture = architecture(function).ok_or(Error::NoArchitecture)?;
    let folder = tempfile::tempdir_in(".")?;
    let code = folder.path().join("kernel.bin");
    std::fs::write(&code, &function.code)?;
    let mut child = Command::new(program)
        .args(["--binary", &architecture])
        .arg(&code)
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let said = read_most(child.stdout.take(), output_bytes);
    let complaint = read_most(child.stderr.take(), MAX_COMPLAINT_BYTES);
    let ended = wait(&mut child, deadline);
    if ended.is_err() {
        child.kill().ok();
        child.wait().ok();
    }
    let status = ended?;
    let said = said.finish()?;
    // Whoever says more loses the pipe, and fails of that.
    if u64::try_from(said.len()).unwrap_or(u64::MAX) > output_bytes {
        return Err(Error::TooMuch(output_bytes));
    }
    if !status.success() {
        let complaint = String::from_utf8_lossy(&complaint.finish()?).into_owned();
        let line = complaint.lines().find(|line| !line.trim().is_empty()).unwrap_or("");
        return Err(Error::Failed {
            how: status.to_string(),
            said: line.chars().take(MAX_SHOWN_CHARS).collect(),
        });
    }
    parse(&String::from_utf8_lossy(&said), function.bytes)
}

#[expect(
    clippy::disallowed_methods,
    reason = "its process has no runtime: it is the child that reads a file"
)]
fn wait(child: &mut Child, deadline: Duration) -> Result<ExitStatus, Error> {
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if begin.elapsed() >= deadline {
            return Err(Error::Deadline(deadline));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// What a child says, read beside it.
struct Reading(Option<JoinHandle<io::Result<Vec<u8>>>>);

impl Reading {
    fn finish(self) -> io::Result<Vec<u8>> {
        let joined = self.0.map(JoinHandle::join);
        joined.map_or_else(
            || Ok(Vec::new()),
            |joined| joined.unwrap_or_else(|_panic| Err(io::Error::other("its output could not be read"))),
        )
    }
}

/// Reads one byte more than `most` at most.
fn read_most(from: Option<impl Read + Send + 'static>, most: u64) -> Reading {
    let thread = from.map(|from| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            from.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
            Ok(bytes)
        })
    });
    Reading(thread)
}

/// Lines like `/*0060*/  @!P0 BRA 0x810 ;`, offsets rising, all within the code.
fn parse(said: &str, bytes: u64) -> Result<Vec<InstructionText>, Error> {
    let mut instructions: Vec<InstructionText> = Vec::new();
    for line in said.lines() {
        let line = line.trim_start_matches(['{', '}', ' ', '\t']);
        let Some((offset, rest)) = line.strip_prefix("/*").and_then(|line| line.split_once("*/")) else {
            continue;
        };
        let Ok(offset) = u64::from_str_radix(offset, 16) else {
            continue;
        };
        let Some((text, _)) = rest.split_once(';') else {
            continue;
        };
        if offset >= bytes || instructions.last().is_some_and(|last| last.offset_bytes >= offset) {
            return Err(Error::Outside(offset));
        }
        instructions.push(InstructionText {
            offset_bytes: offset,
            text: text.split_whitespace().collect::<Vec<_>>().join(" "),
        });
    }
    if instructions.is_empty() {
        return Err(Error::Nothing);
    }
    Ok(instructions)
}

#[cfg(test)]
mod crate_tests {
    use std::os::unix::fs::PermissionsExt;

    use flopwatch_model::KernelProfile;

    use super::*;

    fn function() -> KernelFunction {
        KernelFunction {
            bytes: 48,
            architecture: "sm_90".to_owned(),
            code: vec![0; 48],
            ..KernelFunction::default()
        }
    }

    /// Two launches of a kernel.
    fn capture(function: KernelFunction) -> Capture {
        let function = Arc::new(function);
        let launch = KernelProfile {
            function: Some(Arc::clone(&function)),
            ..KernelProfile::default()
        };
        Capture {
            profiles: vec![launch.clone(), launch],
            ..Capture::default()
        }
    }

    /// What becomes of a kernel with a disassembler that runs `script`.
    fn told_by(script: &str, function: KernelFunction, limits: &Limits) -> KernelFunction {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("nvdisasm");
        std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        let mut capture = capture(function);
        disassemble(&mut capture, Some(&program), limits);
        let [one, other] = capture.profiles.as_slice() else {
            unreachable!()
        };
        let (one, other) = (one.function.as_ref().unwrap(), other.function.as_ref().unwrap());
        assert!(Arc::ptr_eq(one, other), "a kernel is disassembled once");
        assert!(one.code.is_empty());
        KernelFunction::clone(one)
    }

    fn quick() -> Limits {
        Limits {
            kernel: Duration::from_secs(2),
            ..Limits::default()
        }
    }

    #[test]
    fn each_instruction_has_its_text() {
        let script = "test \"$1 $2\" = '--binary SM90a' || exit 9\n\
            printf '\\t.headerflags @\"EF_CUDA_SM90\"\\n'\n\
            printf '        /*0000*/                   LDC R1, c[0x0][0x28] ;\\n'\n\
            printf '        /*0010*/              @!P0 BRA   0x20 ;   /* 0x000 */\\n'\n\
            printf '        /*0020*/                   EXIT ;\\n'";
        let found = told_by(script, function(), &Limits::default());
        let texts: Vec<(u64, &str)> = found
            .instructions
            .iter()
            .map(|of| (of.offset_bytes, of.text.as_str()))
            .collect();
        assert_eq!(
            texts,
            [(0, "LDC R1, c[0x0][0x28]"), (0x10, "@!P0 BRA 0x20"), (0x20, "EXIT")]
        );
        assert_eq!(found.not_disassembled, "");
    }

    #[test]
    fn a_disassembler_that_does_not_do_its_work_is_named_as_the_reason() {
        let small = Limits {
            output_bytes: 1000,
            ..quick()
        };
        for (script, limits, expected) in [
            (
                "echo 'nvdisasm fatal : bad image' >&2; exit 3",
                quick(),
                "exit status: 3): nvdisasm fatal : bad image",
            ),
            ("kill -SEGV $$", quick(), "signal: 11"),
            ("exec sleep 60", quick(), "took longer than 2s and was ended"),
            ("exec yes 'no end'", small, "more than 1000 bytes"),
            ("head -c 2000 /dev/zero", small, "more than 1000 bytes"),
            ("echo nothing", quick(), "wrote no instruction"),
            ("echo '/*0030*/ EXIT ;'", quick(), "at 0x30, where the kernel has none"),
            ("echo '/*0010*/ NOP ;'; echo '/*0010*/ NOP ;'", quick(), "at 0x10"),
        ] {
            let begin = Instant::now();
            let found = told_by(script, function(), &limits);
            assert!(
                found.not_disassembled.contains(expected),
                "{script}: {}",
                found.not_disassembled
            );
            assert!(found.instructions.is_empty());
            assert!(begin.elapsed() < Duration::from_secs(30), "{script}");
        }
    }

    #[test]
    fn without_a_disassembler_or_an_architecture_there_is_no_text() {
        let mut capture = capture(function());
        disassemble(&mut capture, None, &Limits::default());
        let reason = |capture: &Capture| capture.profiles[1].function.as_ref().unwrap().not_disassembled.clone();
        assert!(
            reason(&capture).contains("nvidia-cuda-nvdisasm"),
            "{}",
            reason(&capture)
        );
        let unknown = KernelFunction {
            architecture: String::new(),
            ..function()
        };
        assert!(
            told_by("exit 0", unknown, &quick())
                .not_disassembled
                .contains("which architecture")
        );
        let none = Limits {
            all: Duration::ZERO,
            ..quick()
        };
        assert!(
            told_by("exit 0", function(), &none)
                .not_disassembled
                .contains("kernels before it")
        );
        assert_eq!(find(Some(Path::new("/nowhere/nvdisasm")), None), None);
    }
}
