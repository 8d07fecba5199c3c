//! What reading a file takes, in a process of its own: the most memory that it had, less what it
//! had before.

use std::fs;
use std::path::Path;
use std::process::Command;

use bytes::Bytes;
use parquet::basic::{Compression, GzipLevel};

use super::read::read;
use super::write::encode;
use crate::table::Record;
use crate::{CaptureRow, Limits, Row, Sketch, name_hash};

/// Names the file that a child reads.
const FILE: &str = "FLOPWATCH_FLEET_TEST_FILE";

/// A quarter of what is read by default: the files that exceed it are made sooner.
const LIMITS: Limits = Limits {
    file_bytes: 2 << 20,
    rows: 6_000,
    text_bytes: 4_096,
    elements: 250_000,
    inflated_bytes: 8 << 20,
};

/// The process's peak of resident memory in KiB.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_child_reads_one_file() {
    let Some(path) = std::env::var_os(FILE) else { return };
    let bytes = Bytes::from(fs::read(path).unwrap());
    let before = peak();
    let rows = read::<Row>(&bytes, &LIMITS).map(|rows| rows.len());
    let captures = read::<CaptureRow>(&bytes, &LIMITS).map(|captures| captures.len());
    println!("read {} KiB: {} {}", peak() - before, outcome(rows), outcome(captures));
}

fn outcome(found: Result<usize, super::ReadError>) -> String {
    found.map_or_else(|refused| format!("[{refused}]"), |count| count.to_string())
}

/// What a child takes to read that file, in KiB, and what it says.
fn child(folder: &Path, bytes: &[u8]) -> (u64, String) {
    let path = folder.join("file.parquet");
    fs::write(&path, bytes).unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["file::memory::a_child_reads_one_file", "--exact", "--nocapture"])
        .env(FILE, &path)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text
        .lines()
        .find_map(|line| line.split_once("read "))
        .unwrap_or_else(|| panic!("{text}"))
        .1;
    let (kib, outcome) = line.split_once(" KiB: ").unwrap();
    (kib.parse().unwrap(), outcome.to_owned())
}

fn packed<T: Record>(records: &[T]) -> Vec<u8> {
    encode(records, Compression::GZIP(GzipLevel::default())).unwrap()
}

#[test]
fn no_file_takes_more_memory_than_the_limits_allow() {
    let folder = tempfile::tempdir().unwrap();
    let long = "n".repeat(4_000);
    let distinct: Vec<CaptureRow> = (0..4_000)
        .map(|number| CaptureRow {
            cluster: format!("{long}{number}"),
            ..CaptureRow::default()
        })
        .collect();
    let (texts, maybe) = (long.clone(), Some(long.clone()));
    let same = CaptureRow {
        cluster: texts.clone(),
        namespace: texts.clone(),
        session: texts.clone(),
        node: texts.clone(),
        pod: texts.clone(),
        image: texts,
        version: maybe.clone(),
        workload: maybe,
        ..CaptureRow::default()
    };
    let mut sketch = Sketch::default();
    for bits in 0..60_000_u64 {
        sketch.add((1_u64 << (bits % 64)) | bits);
    }
    let row = |sketch: &Sketch| Row {
        name_hash: name_hash(""),
        probability_per_billion: 1,
        calls: i64::try_from(sketch.count()).unwrap(),
        sketch: Some(sketch.clone()),
        ..Row::default()
    };
    let buckets = sketch.buckets().count();
    let wide = vec![row(&sketch); LIMITS.elements / buckets + 1];
    let max = (LIMITS.elements / buckets).to_string();
    let files = [
        ("texts that inflate", packed(&distinct), "the size of its pages"),
        (
            "one text in every row",
            packed(&vec![same; 2_000]),
            "more bytes of text",
        ),
        ("buckets", packed(&wide), "a page is not as Flopwatch writes it"),
        ("rows", packed(&vec![CaptureRow::default(); 6_001]), "more rows"),
        (
            "as much as may be",
            packed(&vec![row(&sketch); LIMITS.elements / buckets]),
            max.as_str(),
        ),
    ];
    for (what, bytes, says) in files {
        let (kib, outcome) = child(folder.path(), &bytes);
        println!("{what}: {} bytes, {} MiB, {outcome}", bytes.len(), kib / 1_024);
        assert!(outcome.contains(says), "{what}: {outcome}");
        assert!(kib < 40 << 10, "{what}: {kib} KiB");
    }
}
