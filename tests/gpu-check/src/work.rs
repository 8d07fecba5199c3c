//! A small CUDA program: the transform's own kernels in a loop, with a count of what it did.

use std::io::Write as _;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use flopwatch_trace::transform::device::{on_gpu, sample};

/// Time between two lines of progress.
const REPORT_INTERVAL: Duration = Duration::from_millis(100);

/// Runs for `seconds`, or until a signal ends it; a line of its output is
/// `t=<Unix ns> steps=<count>`.
pub(crate) fn run(events: u64, seconds: u64) -> Result<()> {
    let input = sample(events);
    let mut output = std::io::stdout();
    let mut steps = 0_u64;
    let begin = Instant::now();
    let mut reported = None;
    while begin.elapsed() < Duration::from_secs(seconds) {
        drop(on_gpu(&input)?);
        steps += 1;
        if reported.is_none_or(|last: Instant| last.elapsed() >= REPORT_INTERVAL) {
            let now = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .context("a clock before 1970")?;
            writeln!(output, "t={} steps={steps}", now.as_nanos())?;
            reported = Some(Instant::now());
        }
    }
    Ok(())
}
