//! Truncated files: an error that names the file. Damage of other kinds is what `fuzz` does.

use std::path::Path;

use flopwatch_trace::{ReadLimits, nsys_hdf, timeline_file};

use crate::export::Schema;
use crate::sample::sample;

/// What a reader says of a file: its error, if it has one.
type Read = fn(&Path) -> Result<(), String>;

fn read_export(path: &Path) -> Result<(), String> {
    nsys_hdf::read(path, &ReadLimits::default())
        .map(drop)
        .map_err(|error| error.to_string())
}

fn read_timeline(path: &Path) -> Result<(), String> {
    timeline_file::read(path, &ReadLimits::default())
        .map(drop)
        .map_err(|error| error.to_string())
}

/// Both formats, whole.
fn whole() -> [(&'static str, Vec<u8>, Read); 2] {
    let export = sample(Schema::V2023, false);
    let timeline = export.beside("timeline.h5");
    timeline_file::write(&export.timeline(), &timeline).unwrap();
    [
        ("export", std::fs::read(export.path()).unwrap(), read_export),
        ("timeline", std::fs::read(timeline).unwrap(), read_timeline),
    ]
}

#[test]
fn a_truncated_file_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.h5");
    for (format, bytes, read) in whole() {
        std::fs::write(&path, &bytes).unwrap();
        read(&path).unwrap();
        for part in 0..64 {
            std::fs::write(&path, &bytes[..bytes.len() * part / 64]).unwrap();
            let error = read(&path).expect_err("a part of a file is no file");
            assert!(error.contains("damaged.h5"), "{format}: {error}");
        }
    }
}

#[test]
fn other_bytes_are_no_hdf5_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.h5");
    for bytes in [&b""[..], b"SQLite format 3\0", b"\x89HDF\r\n\x1a\n", &[0xFF; 4096]] {
        std::fs::write(&path, bytes).unwrap();
        for read in [read_export, read_timeline] {
            assert!(read(&path).unwrap_err().contains("other.h5"));
        }
    }
}
