//! Whether the workload's program can take the profiler's libraries, told from its file before
//! anything is tried.
//!
//! The tools are built for glibc on x86-64. In a program of musl their libraries end it at once, a
//! static program takes none, and a glibc that is older than they need ends every process of the
//! container that they are preloaded into.

use std::ffi::{CString, OsStr};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};

use crate::elf::{self, GlibcVersion, Program};
use crate::exec;
use crate::state::Reason;

/// Scripts that may call each other; the kernel follows as many.
const MAX_SCRIPTS: u32 = 4;
/// Files of the tools that run in the container or in the workload.
const TOOLS: [&str; 3] = ["nsys", "libToolsInjectionProxy64.so", "libToolsInjection64.so"];
/// Where a C library lies when it is not beside its loader.
const LIBRARY_FOLDERS: [&str; 4] = [
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib64",
    "/usr/lib64",
];

/// Why a program is left alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The program's loader is musl's.
    Musl {
        /// Program that the container starts.
        program: PathBuf,
        /// Loader that the program names.
        loader: PathBuf,
    },
    /// The program loads no library at all.
    Static {
        /// Program that the container starts.
        program: PathBuf,
    },
    /// The container's glibc is older than the tools need.
    OldGlibc {
        /// The C library.
        library: PathBuf,
        /// Version of the container's C library.
        has: GlibcVersion,
        /// What the tools need.
        needed: GlibcVersion,
    },
    /// How it is loaded cannot be told.
    Unknown {
        /// Program that the container starts.
        program: PathBuf,
        /// What was found.
        why: String,
    },
}

impl Refusal {
    /// The refusal's reason in the state file.
    pub fn reason(&self) -> Reason {
        match self {
            Self::Musl { .. } => Reason::Musl,
            Self::Static { .. } => Reason::StaticProgram,
            Self::OldGlibc { .. } => Reason::OldGlibc,
            Self::Unknown { .. } => Reason::UnknownProgram,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Musl { program, loader } => {
                write!(f, "{} is a program of musl ({})", program.display(), loader.display())
            }
            Self::Static { program } => write!(f, "{} is a static program", program.display()),
            Self::OldGlibc { library, has, needed } => write!(
                f,
                "{} is glibc {has}, and the profiler needs {needed}",
                library.display()
            ),
            Self::Unknown { program, why } => write!(f, "{}: {why}", program.display()),
        }
    }
}

/// Judges the program that `command` would run, with the tools in `tools`.
pub fn judge(command: &[u8], environment: &[CString], tools: &Path) -> Result<(), Refusal> {
    let unknown = |program: &Path, why: String| Refusal::Unknown {
        program: program.to_owned(),
        why,
    };
    let named = Path::new(OsStr::from_bytes(command));
    let mut program = exec::candidates(command, environment)
        .into_iter()
        .map(|file| PathBuf::from(OsStr::from_bytes(file.as_bytes())))
        .find(|file| file.is_file() && access(file, AccessFlags::X_OK).is_ok())
        .ok_or_else(|| unknown(named, "no such program".to_owned()))?;
    for _ in 0..=MAX_SCRIPTS {
        let kind = elf::program(&program).map_err(|error| unknown(&program, error.to_string()))?;
        match kind {
            Program::Script { interpreter } => program = interpreter,
            Program::Elf { loader: None } => return Err(Refusal::Static { program }),
            Program::Elf { loader: Some(loader) } => return judge_loader(program, loader, tools),
            Program::Other => {
                return Err(unknown(
                    &program,
                    "neither a script nor a program for x86-64".to_owned(),
                ));
            }
        }
    }
    Err(unknown(named, "scripts call each other too often".to_owned()))
}

fn judge_loader(program: PathBuf, loader: PathBuf, tools: &Path) -> Result<(), Refusal> {
    // A loader by glibc's name may be a link to musl's, as compatibility packages make it.
    let real = loader.canonicalize().unwrap_or_else(|_absent| loader.clone());
    let is_musl = |path: &Path| {
        path.file_name()
            .is_some_and(|name| name.as_bytes().starts_with(b"ld-musl-"))
    };
    if is_musl(&loader) || is_musl(&real) {
        return Err(Refusal::Musl { program, loader });
    }
    let Some((library, has)) = c_library(&loader, &real) else {
        let why = format!("no glibc was found for its loader {}", loader.display());
        return Err(Refusal::Unknown { program, why });
    };
    let folder = tools.join(crate::run_dir::TARGET_FOLDER);
    // What is missing or broken among the tools fails the session, which says so itself.
    let needed = TOOLS
        .iter()
        .filter_map(|tool| elf::newest_needed(&folder.join(tool)).ok().flatten())
        .max();
    match needed {
        Some(needed) if needed > has => Err(Refusal::OldGlibc { library, has, needed }),
        _ => Ok(()),
    }
}

/// The glibc that a loader would load: the one beside it, as every distribution packs them
/// together.
fn c_library(loader: &Path, real: &Path) -> Option<(PathBuf, GlibcVersion)> {
    let beside = [real.parent(), loader.parent()];
    let folders = beside
        .into_iter()
        .flatten()
        .chain(LIBRARY_FOLDERS.iter().map(Path::new));
    folders
        .map(|folder| folder.join("libc.so.6"))
        .find_map(|library| Some((elf::newest_defined(&library).ok()??, library)))
        .map(|(version, library)| (library, version))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(path: &Path) -> Vec<CString> {
        vec![CString::new(format!("PATH={}", path.display())).unwrap()]
    }

    fn script(folder: &Path, name: &str, text: &str) {
        use std::os::unix::fs::PermissionsExt;
        let file = folder.join(name);
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).unwrap();
    }

    #[test]
    fn a_shell_and_a_script_of_it_are_graftable() {
        let folder = tempfile::tempdir().unwrap();
        script(folder.path(), "first", "#!/bin/sh\n");
        let second = format!("#!{}\n", folder.path().join("first").display());
        script(folder.path(), "second", &second);
        for command in ["/bin/sh", "first", "second"] {
            assert_eq!(
                judge(command.as_bytes(), &environment(folder.path()), folder.path()),
                Ok(()),
                "{command}"
            );
        }
    }

    #[test]
    fn what_cannot_be_told_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("loop");
        script(folder.path(), "loop", &format!("#!{}\n", own.display()));
        script(folder.path(), "text", "no program");
        std::fs::write(folder.path().join("not-executable"), "#!/bin/sh\n").unwrap();
        for command in ["loop", "text", "not-executable", "absent", "/etc"] {
            let refusal = judge(command.as_bytes(), &environment(folder.path()), folder.path()).unwrap_err();
            assert_eq!(refusal.reason(), Reason::UnknownProgram, "{command}: {refusal}");
        }
    }

    #[test]
    fn a_glibc_that_is_older_than_the_tools_need_is_told_by_both_numbers() {
        let version = |text: &str| GlibcVersion::parse(text.as_bytes()).unwrap();
        let refusal = Refusal::OldGlibc {
            library: "/lib64/libc.so.6".into(),
            has: version("GLIBC_2.12"),
            needed: version("GLIBC_2.15"),
        };
        assert_eq!(
            refusal.to_string(),
            "/lib64/libc.so.6 is glibc 2.12, and the profiler needs 2.15"
        );
    }
}
