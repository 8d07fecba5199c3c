//! What a library of kernels holds, read from the file without running any of its code.

use std::fs;
use std::path::Path;

use crate::CudaError;
use crate::kernels::{INTERFACE, source_hash};

/// Begin of every container of device code, as `fatbinary` of the CUDA toolkit writes it (little
/// endian).
const FATBIN_MAGIC: [u8; 4] = [0x50, 0xed, 0x55, 0xba];
/// Begin of the library's own description.
const NAME: &[u8] = b"flopwatch-kernels ";
/// Largest library that is read, in bytes.
const MAX_BYTES: u64 = 256 << 20;

/// Device code for one generation of GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Architecture {
    /// Machine code for this compute capability (10 times the major plus the minor version) and
    /// later ones of the same major.
    Machine(u32),
    /// PTX that the driver translates for this compute capability and every later one.
    Ptx(u32),
}

impl Architecture {
    /// Whether a GPU of this compute capability can run it.
    pub const fn runs_on(self, capability: u32) -> bool {
        match self {
            Self::Machine(built) => built / 10 == capability / 10 && built <= capability,
            Self::Ptx(built) => built <= capability,
        }
    }
}

impl std::fmt::Display for Architecture {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Machine(built) => write!(formatter, "sm_{built}"),
            Self::Ptx(built) => write!(formatter, "compute_{built}"),
        }
    }
}

/// What a library of kernels holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inventory {
    /// Version of the calls.
    pub interface: String,
    /// Hash of the sources it was built from.
    pub source: String,
    /// What built it, such as `cuda 13.0`.
    pub builder: String,
    /// Architectures that every one of its kernels is there for, sorted.
    pub architectures: Vec<Architecture>,
    /// Size in bytes.
    pub bytes: u64,
}

impl Inventory {
    /// Reads the library at `path`.
    pub fn read(path: &Path) -> Result<Self, CudaError> {
        let bad = |reason: String| CudaError::BadKernels {
            path: path.to_owned(),
            reason,
        };
        let bytes = fs::metadata(path).map_err(|error| bad(error.to_string()))?.len();
        if bytes > MAX_BYTES {
            return Err(bad(format!("it is larger than {MAX_BYTES} bytes")));
        }
        let file = fs::read(path).map_err(|error| bad(error.to_string()))?;
        Self::parse(&file).ok_or_else(|| bad("it does not say what it is".to_owned()))
    }

    fn parse(file: &[u8]) -> Option<Self> {
        let at = file.windows(NAME.len()).position(|window| window == NAME)?;
        let text = file.get(at + NAME.len()..)?;
        let end = text.iter().take(200).position(|byte| *byte == 0)?;
        let text = std::str::from_utf8(text.get(..end)?).ok()?;
        let mut words = text.splitn(3, ' ');
        Some(Self {
            interface: words.next()?.to_owned(),
            source: words.next()?.to_owned(),
            builder: words.next()?.to_owned(),
            architectures: architectures(file),
            bytes: u64::try_from(file.len()).unwrap_or(u64::MAX),
        })
    }

    /// Whether the library was built from the sources that this program was built with; otherwise
    /// why not.
    pub fn check(&self) -> Result<(), String> {
        if self.interface != INTERFACE {
            return Err(format!(
                "it has version {} of the calls, not {INTERFACE}",
                self.interface
            ));
        }
        let expected = source_hash();
        if self.source != expected {
            return Err(format!(
                "it was built from other sources ({}, not {expected})",
                self.source
            ));
        }
        Ok(())
    }

    /// Whether a GPU of this compute capability (10 times the major plus the minor version) can run
    /// it.
    pub fn runs_on(&self, capability: u32) -> bool {
        self.architectures.iter().any(|built| built.runs_on(capability))
    }
}

/// The architectures of the largest container of device code; the others hold the runtime's own few
/// functions.
fn architectures(file: &[u8]) -> Vec<Architecture> {
    let mut largest = (0, Vec::new());
    let mut from = 0;
    while let Some(at) = file.get(from..).and_then(|rest| {
        rest.windows(FATBIN_MAGIC.len())
            .position(|window| window == FATBIN_MAGIC)
    }) {
        let container = from + at;
        from = container + FATBIN_MAGIC.len();
        if let Some((size, found)) = container_of(file, container)
            && size > largest.0
        {
            largest = (size, found);
        }
    }
    let mut found = largest.1;
    found.sort_unstable();
    found.dedup();
    found
}

/// Size and architectures of the container at `at`: a header (magic, version, length of the header,
/// length of what follows), then entries (kind, version, length of the header, length of the code,
/// ..., architecture at 28).
fn container_of(file: &[u8], at: usize) -> Option<(usize, Vec<Architecture>)> {
    let header = usize::from(u16::from_le_bytes(bytes(file, at + 6)?));
    let size = usize::try_from(u64::from_le_bytes(bytes(file, at + 8)?)).ok()?;
    let mut entry = at.checked_add(header)?;
    let end = entry.checked_add(size).filter(|end| *end <= file.len())?;
    let mut found = Vec::new();
    while entry < end {
        let kind = u16::from_le_bytes(bytes(file, entry)?);
        let entry_header = usize::try_from(u32::from_le_bytes(bytes(file, entry + 4)?)).ok()?;
        let code = usize::try_from(u64::from_le_bytes(bytes(file, entry + 8)?)).ok()?;
        let architecture = u32::from_le_bytes(bytes(file, entry + 28)?);
        match kind {
            1 => found.push(Architecture::Ptx(architecture)),
            2 => found.push(Architecture::Machine(architecture)),
            _ => {}
        }
        let step = entry_header.checked_add(code).filter(|step| *step > 0)?;
        entry = entry.checked_add(step)?;
    }
    Some((size, found))
}

fn bytes<const N: usize>(file: &[u8], at: usize) -> Option<[u8; N]> {
    file.get(at..at.checked_add(N)?)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn container(entries: &[(u16, u32)]) -> Vec<u8> {
        let mut body = Vec::new();
        for (kind, architecture) in entries {
            let mut entry = vec![0_u8; 64];
            entry[..2].copy_from_slice(&kind.to_le_bytes());
            entry[4..8].copy_from_slice(&64_u32.to_le_bytes());
            entry[8..16].copy_from_slice(&8_u64.to_le_bytes());
            entry[28..32].copy_from_slice(&architecture.to_le_bytes());
            body.extend(entry);
            body.extend([0xff; 8]);
        }
        let mut file = FATBIN_MAGIC.to_vec();
        file.extend([1, 0, 16, 0]);
        file.extend(u64::try_from(body.len()).unwrap().to_le_bytes());
        file.extend(body);
        file
    }

    #[test]
    fn the_largest_container_names_the_architectures() {
        let mut file = b"ELF flopwatch-kernels 1 00112233 cuda 13.0\0".to_vec();
        file.extend(container(&[(2, 75)]));
        file.extend(container(&[(2, 90), (2, 80), (1, 100)]));
        let inventory = Inventory::parse(&file).unwrap();
        let expected = [
            Architecture::Machine(80),
            Architecture::Machine(90),
            Architecture::Ptx(100),
        ];
        assert_eq!(inventory.architectures, expected);
        assert_eq!(
            (inventory.source.as_str(), inventory.builder.as_str()),
            ("00112233", "cuda 13.0")
        );
        assert!(inventory.check().unwrap_err().contains("other sources"));
    }

    #[test]
    fn machine_code_runs_on_its_own_generation_and_ptx_on_every_later_one() {
        let cases = [
            (Architecture::Machine(80), 80, true),
            (Architecture::Machine(80), 89, true),
            (Architecture::Machine(86), 80, false),
            (Architecture::Machine(80), 90, false),
            (Architecture::Ptx(100), 120, true),
            (Architecture::Ptx(100), 90, false),
        ];
        for (built, capability, expected) in cases {
            assert_eq!(built.runs_on(capability), expected, "{built} on {capability}");
        }
    }

    #[test]
    fn damaged_containers_are_passed_over() {
        let whole = container(&[(2, 90), (1, 100)]);
        for length in 0..whole.len() {
            assert_eq!(architectures(&whole[..length]), []);
        }
        let mut endless = whole.clone();
        endless[20..32].fill(0);
        assert_eq!(architectures(&endless), []);
    }
}
