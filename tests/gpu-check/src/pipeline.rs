//! The CuPy pipeline of the same job, on the same columns.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};
use flopwatch_trace::transform::Cpu;
use flopwatch_trace::transform::device::sample;
use flopwatch_trace::transform::engine::{Columns, Engine};
use serde::{Deserialize, Serialize};

/// The script's own line, and whether it gave the same order.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct CupyResult {
    /// Why it could not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) unavailable: Option<String>,
    /// Seconds of each round, transfers included.
    #[serde(default)]
    pub(crate) seconds: Vec<f64>,
    /// Version of CuPy.
    #[serde(default)]
    pub(crate) cupy: String,
    #[serde(default)]
    checksum: String,
    /// Whether it came to the order that the processor came to.
    #[serde(default)]
    pub(crate) same_order: bool,
}

/// Writes the columns and runs the script over them.
pub(crate) fn run(python: &Path, script: Option<&Path>, events: u64) -> Result<CupyResult> {
    let script = match script {
        Some(script) => script.to_owned(),
        None => std::env::current_exe()?.with_file_name("cupy_pipeline.py"),
    };
    let folder = tempfile::tempdir()?;
    let input = sample(events);
    let columns = input.categories.values().next().context("the sample is empty")?;
    write(columns, folder.path()).context("cannot write the columns for CuPy")?;
    let expected = Cpu.run(input.clone());
    let sorted = expected.categories.values().next().context("the sample is empty")?;
    // About the width of the finest level, so that both make a similar number of entries.
    let shift = sorted.lod.levels.first().map_or(16, |level| level.shift);
    let message = Command::new(python)
        .arg(&script)
        .arg(folder.path())
        .arg(shift.to_string())
        .output();
    let message = match message {
        Ok(message) => message,
        Err(error) => {
            return Ok(CupyResult {
                unavailable: Some(format!("{}: {error}", python.display())),
                ..CupyResult::default()
            });
        }
    };
    let line = String::from_utf8_lossy(&message.stdout);
    let parsed = serde_json::from_str(line.trim());
    let mut result: CupyResult = parsed.unwrap_or_else(|_| CupyResult {
        unavailable: Some(
            String::from_utf8_lossy(&message.stderr)
                .lines()
                .last()
                .unwrap_or("no result")
                .to_owned(),
        ),
        ..CupyResult::default()
    });
    result.same_order = result.checksum == checksum(&sorted.columns.start_ns).to_string();
    Ok(result)
}

fn checksum(start_ns: &[u64]) -> u64 {
    let weighted = start_ns
        .iter()
        .zip(1_u64..)
        .map(|(start, place)| start.wrapping_mul(place));
    weighted.fold(0, u64::wrapping_add)
}

fn write(columns: &Columns, folder: &Path) -> std::io::Result<()> {
    for (name, values) in [("start_ns", &columns.start_ns), ("duration_ns", &columns.duration_ns)] {
        let mut file = BufWriter::new(File::create(folder.join(format!("{name}.bin")))?);
        values
            .iter()
            .try_for_each(|value| file.write_all(&value.to_le_bytes()))?;
        file.flush()?;
    }
    for (name, values) in [("row", &columns.row), ("name", &columns.name)] {
        let mut file = BufWriter::new(File::create(folder.join(format!("{name}.bin")))?);
        values
            .iter()
            .try_for_each(|value| file.write_all(&value.to_le_bytes()))?;
        file.flush()?;
    }
    Ok(())
}
