//! What a job says of itself.

use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

/// Prints the job's line: its time, the peak of this process's memory, and `counts`.
#[allow(clippy::print_stdout, reason = "the line is what the recipe reads")]
pub(crate) fn print(took: Duration, counts: Value) -> Result<()> {
    let mut line = json!({"seconds": took.as_secs_f64(), "peak_bytes": peak_bytes()?});
    if let (Some(line), Value::Object(counts)) = (line.as_object_mut(), counts) {
        line.extend(counts);
    }
    println!("{line}");
    Ok(())
}

/// The most memory that this process has held so far.
fn peak_bytes() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
    let kilobytes: u64 = kilobytes
        .context("the kernel does not say the peak of memory")?
        .trim()
        .parse()?;
    Ok(kilobytes * 1024)
}
