//! Reads reports of Nsight Systems (`.nsys-rep`, `.qdrep`) of 2020.3 and later, without Nsight
//! Systems; of a raw capture (`.qdstrm`), of which its importer makes a report, the version alone.
//!
//! A report gives the capture that its export gives. Environments, standard output and command
//! lines in it are passed over. Memory grows with the events that are kept, not with the file.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::LazyLock;

use regex::bytes::Regex;

#[cfg(feature = "hdf5")]
pub use crate::limits::ReadLimits;
#[cfg(feature = "hdf5")]
use crate::nsys::{self, Report, Tables};
#[cfg(feature = "hdf5")]
pub use crate::nsys::{Failure, ReadError, ReportError};
use crate::version::Version;
#[cfg(feature = "hdf5")]
use flopwatch_model::Capture;

/// First bytes of every report.
pub const MAGIC: &[u8] = b"NVIDIA Tegra Profiler Report ";

/// First bytes of every raw capture, of which a report is made.
pub const STREAM_MAGIC: &[u8] = b"U3w[END]NVIDIA Nsight Systems Stream ";

/// Bytes read at once, and those that two pieces share so that nothing is cut between them.
const PIECE_BYTES: usize = 1 << 20;
const OVERLAP_BYTES: usize = 64;

static RECORDED: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"20[0-9]{2}(?:\.[0-9]{1,4}){3}-[0-9a-f]{6,}").ok());

/// Reads the report at `path`.
#[cfg(feature = "hdf5")]
pub fn read(path: &Path, limits: &ReadLimits) -> Result<Capture, ReadError> {
    let report = Report::open(path, limits).map_err(ReadError::at(path))?;
    nsys::read(&Tables::Report(report), limits).map_err(ReadError::at(path))
}

/// The version that made the report at `path`; `None` where it does not tell. The report is
/// searched, not decoded: since 2024 the version stands in the first line, before that beside the
/// components that took part.
pub fn version(path: &Path) -> io::Result<Option<Version>> {
    let mut file = File::open(path)?;
    let mut buffer = Vec::with_capacity(PIECE_BYTES);
    let mut found = None;
    let mut first = true;
    loop {
        let read = file.by_ref().take(1 << 20).read_to_end(&mut buffer)?;
        if first {
            if let Some(version) = first_line(&buffer) {
                return Ok(Some(version));
            }
            first = false;
        }
        for hit in RECORDED.iter().flat_map(|recorded| recorded.find_iter(&buffer)) {
            found = std::str::from_utf8(hit.as_bytes())
                .ok()
                .and_then(Version::parse)
                .max(found);
        }
        if read == 0 {
            return Ok(found);
        }
        let keep = buffer.len().saturating_sub(OVERLAP_BYTES);
        buffer.drain(..keep);
    }
}

/// `NVIDIA Tegra Profiler Report 2024@4@1@61-...`; older reports say `1` there, which is no
/// version. Raw captures are like it.
fn first_line(head: &[u8]) -> Option<Version> {
    let line = head.strip_prefix(MAGIC).or_else(|| head.strip_prefix(STREAM_MAGIC))?;
    let end = line
        .iter()
        .position(|byte| *byte == b'\n')
        .filter(|end| *end < OVERLAP_BYTES)?;
    let text = std::str::from_utf8(line.get(..end)?).ok()?;
    Version::parse(&text.replace('@', "."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version_of(bytes: &[u8]) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.nsys-rep");
        std::fs::write(&path, bytes).unwrap();
        version(&path).unwrap().map(|version| version.to_string())
    }

    #[test]
    fn the_version_stands_in_the_first_line_or_anywhere() {
        let new = b"NVIDIA Tegra Profiler Report 2024@4@1@61-244134315967v0.\n\x0bLocal 2030.1.1.1-abcdef0";
        assert_eq!(version_of(new).as_deref(), Some("2024.4.1.61"));
        let stream = b"U3w[END]NVIDIA Nsight Systems Stream 2022.4.2.1-df9881f!\n";
        assert_eq!(version_of(stream).as_deref(), Some("2022.4.2.1"));
        // Across the border of two pieces.
        let mut old = b"NVIDIA Tegra Profiler Report 1.\n/opt/nsight-systems-2019.1.1/bin".to_vec();
        old.resize(PIECE_BYTES - 9, 0);
        old.extend(b"2020.5.1.85-5ee086b\0more");
        assert_eq!(version_of(&old).as_deref(), Some("2020.5.1.85"));
        assert_eq!(version_of(b"NVIDIA Tegra Profiler Report 1.\nnothing"), None);
        assert_eq!(version_of(b""), None);
    }
}
