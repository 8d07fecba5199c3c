//! What a program file says of how it is loaded: script or ELF, its loader, the versions of glibc
//! that it has or needs.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use object::LittleEndian;
use object::elf::{EM_X86_64, FileHeader64, PT_INTERP};
use object::read::ReadCache;
use object::read::elf::{FileHeader, ProgramHeader};

type Header = FileHeader64<LittleEndian>;

/// Bytes of a script that the kernel reads for its interpreter.
const SCRIPT_HEAD: u64 = 256;

/// A version of glibc, as its symbols name it: `GLIBC_2.34` is 2.34.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct GlibcVersion {
    major: u32,
    minor: u32,
}

impl std::fmt::Display for GlibcVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl GlibcVersion {
    /// Reads a symbol version; none for those that are no release, such as `GLIBC_PRIVATE`.
    pub fn parse(name: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(name).ok()?.strip_prefix("GLIBC_")?;
        let mut numbers = text.split('.').map(|number| number.parse().ok());
        Some(Self {
            major: numbers.next()??,
            minor: numbers.next()??,
        })
    }
}

/// How the kernel would run a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// By handing it to another program.
    Script {
        /// Interpreter that the file names.
        interpreter: PathBuf,
    },
    /// As a program for x86-64.
    Elf {
        /// The loader that maps its libraries; none for a static program.
        loader: Option<PathBuf>,
    },
    /// In no way known here.
    Other,
}

/// Reads what kind of program a file is. Fails where it cannot be read or is a broken ELF file.
pub fn program(path: &Path) -> io::Result<Program> {
    let mut head = Vec::new();
    let mut file = File::open(path)?;
    Read::by_ref(&mut file).take(SCRIPT_HEAD).read_to_end(&mut head)?;
    if let Some(rest) = head.strip_prefix(b"#!") {
        return Ok(interpreter(rest).map_or(Program::Other, |interpreter| Program::Script { interpreter }));
    }
    if !head.starts_with(b"\x7fELF") {
        return Ok(Program::Other);
    }
    let data = ReadCache::new(file);
    let Ok(header) = Header::parse(&data) else {
        // Of another word size or byte order.
        return Ok(Program::Other);
    };
    if header.e_machine.get(LittleEndian) != EM_X86_64 {
        return Ok(Program::Other);
    }
    let segments = header.program_headers(LittleEndian, &data).map_err(broken)?;
    let named = segments
        .iter()
        .find(|segment| segment.p_type(LittleEndian) == PT_INTERP)
        .map(|segment| segment.interpreter(LittleEndian, &data))
        .transpose()
        .map_err(broken)?
        .flatten();
    Ok(Program::Elf {
        loader: named.map(path_of),
    })
}

/// The program in a script's first line.
fn interpreter(line: &[u8]) -> Option<PathBuf> {
    let line = line.split(|byte| *byte == b'\n').next()?;
    let mut words = line
        .split(|byte| matches!(byte, b' ' | b'\t' | b'\0'))
        .filter(|word| !word.is_empty());
    words.next().map(path_of)
}

fn path_of(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

/// The newest version that a C library has; none when it is no glibc.
pub fn newest_defined(library: &Path) -> io::Result<Option<GlibcVersion>> {
    versions(library, Side::Defined)
}

/// The newest version that a program or library needs; none when it needs none.
pub fn newest_needed(file: &Path) -> io::Result<Option<GlibcVersion>> {
    versions(file, Side::Needed)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Defined,
    Needed,
}

fn versions(path: &Path, side: Side) -> io::Result<Option<GlibcVersion>> {
    let data = ReadCache::new(File::open(path)?);
    let header = Header::parse(&data).map_err(broken)?;
    let sections = header.sections(LittleEndian, &data).map_err(broken)?;
    let mut newest = None;
    let mut name = |found: object::Result<&[u8]>| newest = newest.max(found.ok().and_then(GlibcVersion::parse));
    if side == Side::Defined {
        let Some((mut definitions, link)) = sections.gnu_verdef(LittleEndian, &data).map_err(broken)? else {
            return Ok(None);
        };
        let strings = sections.strings(LittleEndian, &data, link).map_err(broken)?;
        while let Some((_, mut names)) = definitions.next().map_err(broken)? {
            // The first name is its own, the others those that it goes on from.
            if let Some(own) = names.next().map_err(broken)? {
                name(own.name(LittleEndian, strings));
            }
        }
    } else {
        let Some((mut libraries, link)) = sections.gnu_verneed(LittleEndian, &data).map_err(broken)? else {
            return Ok(None);
        };
        let strings = sections.strings(LittleEndian, &data, link).map_err(broken)?;
        while let Some((_, mut names)) = libraries.next().map_err(broken)? {
            while let Some(needed) = names.next().map_err(broken)? {
                name(needed.name(LittleEndian, strings));
            }
        }
    }
    Ok(newest)
}

fn broken(error: object::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_numbers_and_private_ones_are_none() {
        let parse = |text: &str| GlibcVersion::parse(text.as_bytes());
        assert!(parse("GLIBC_2.9") < parse("GLIBC_2.34"));
        assert_eq!(parse("GLIBC_2.2.5").unwrap().to_string(), "2.2");
        for name in ["GLIBC_PRIVATE", "GLIBC_ABI_DT_RELR", "GCC_3.0", "GLIBC_2", ""] {
            assert_eq!(parse(name), None, "{name}");
        }
    }

    #[test]
    fn the_first_line_names_a_scripts_interpreter() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("script");
        for (text, found) in [
            ("#!/bin/sh\n/no", Some("/bin/sh")),
            ("#! /usr/bin/env  python3 -u\n", Some("/usr/bin/env")),
            ("#!/bin/sh", Some("/bin/sh")),
            ("#!\n", None),
            ("echo", None),
        ] {
            std::fs::write(&file, text).unwrap();
            let expected = found.map_or(Program::Other, |path| Program::Script {
                interpreter: path.into(),
            });
            assert_eq!(program(&file).unwrap(), expected, "{text:?}");
        }
    }

    #[test]
    fn a_cut_or_damaged_file_is_an_error_or_other_and_never_a_panic() {
        let own = std::fs::read("/proc/self/exe").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("program");
        for length in [0, 4, 17, 63, 64, 100, 500] {
            std::fs::write(&file, &own[..length]).unwrap();
            assert!(
                !matches!(program(&file), Ok(Program::Elf { loader: Some(_) })),
                "{length}"
            );
            assert!(newest_needed(&file).is_err() || newest_needed(&file).unwrap().is_none());
        }
        for at in 4..64 {
            let mut damaged = own[..4096].to_vec();
            damaged[at] ^= 0xff;
            std::fs::write(&file, &damaged).unwrap();
            drop(program(&file));
            drop(newest_defined(&file));
            drop(newest_needed(&file));
        }
    }

    #[test]
    fn this_very_program_and_its_library_tell_their_versions() {
        let own = Path::new("/proc/self/exe");
        let Program::Elf { loader: Some(loader) } = program(own).unwrap() else {
            println!("skipped: this test is a static program");
            return;
        };
        let needed = newest_needed(own).unwrap().unwrap();
        let libc = loader.canonicalize().unwrap().with_file_name("libc.so.6");
        assert!(newest_defined(&libc).unwrap().unwrap() >= needed);
        assert_eq!(newest_defined(own).unwrap(), None);
    }
}
