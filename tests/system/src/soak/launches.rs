//! What a program that launches kernels counted itself of a window of the CUDA tracer, beside the
//! trace of that window.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, ensure};
use flopwatch_model::{Capture, Category};

use crate::cluster::{Cluster, eventually};
use crate::fetch::token;
use crate::recordings::traced;
use crate::simulated_gpu::records;
use crate::soak::cycle::Lane;
use crate::trainer::Trainer;
use crate::workload::field;

/// The account of a namespace by which traces are read.
pub(super) const READER: &str = "reader";

/// A window as the program saw it: its launches were recorded from then until then, in ns since the
/// Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Window {
    from_ns: u64,
    to_ns: u64,
    /// Records that came of these launches.
    records: u64,
}

impl Window {
    /// Reads a line of the program.
    fn of(line: &str) -> Option<Self> {
        let words = line.strip_prefix("window ")?;
        Some(Self {
            from_ns: field(words, "from")?,
            to_ns: field(words, "to")?,
            records: field(words, "records")?,
        })
    }

    /// How far a time lies outside of it.
    fn distance_ns(self, time_ns: u64) -> u64 {
        let (before, after) = (self.from_ns.saturating_sub(time_ns), time_ns.saturating_sub(self.to_ns));
        before.max(after)
    }
}

/// The windows that a program has told of; none before it says that it is not recorded, at a time
/// later than this one.
fn told(log: &str, time_ns: u64) -> Option<Vec<Window>> {
    let is_over = log.lines().any(|line| {
        let is_later = field(line, "t").is_some_and(|time| time > time_ns);
        is_later && field(line, "recording") == Some(0)
    });
    is_over.then(|| log.lines().filter_map(Window::of).collect())
}

/// Holds a trace with so many records around `time_ns` against the window of that time. An
/// agent that is killed as it begins a window may begin another: that is a window of its own.
fn alike(found: u64, time_ns: u64, windows: &[Window]) -> Result<u64> {
    let closest = windows.iter().min_by_key(|window| window.distance_ns(time_ns));
    let counted = closest.context("the program was recorded in no window")?.records;
    ensure!(
        found == counted,
        "the trace holds {found} kernels and calls, the program counted {counted}"
    );
    Ok(found)
}

/// When the first and the last kernel of a trace begin, in ns since the Unix epoch.
fn span(capture: &Capture) -> Result<(u64, u64)> {
    let start = capture.session_start_utc_ns.context("no start")?;
    let kernels = capture.events.get(&Category::CudaKernel).context("no kernels")?;
    let first = kernels.start_ns.iter().min().context("no kernel")?;
    let last = kernels.start_ns.iter().max().context("no kernel")?;
    Ok((start + first, start + last))
}

impl Lane {
    /// Holds what a session with the CUDA tracer recorded against the program's own count, and
    /// gives how many kernels and calls that are. It is Raw that is held: the timeline ends with
    /// the window, a moment before programs hear of its end.
    pub(super) async fn has_every_launch(&self, cluster: &Cluster, trainer: &Trainer, session: &str) -> Result<u64> {
        let namespace = &self.namespace;
        // The API server and the agent may be away for a while.
        let recorded = eventually("the trace of the CUDA tracer", || async {
            let token = token(&namespace.name, READER).await?;
            let capture = namespace.only_capture(session).await?;
            Ok(Some(traced(&cluster.client, &token, &capture).await?))
        })
        .await?;
        let (first, last) = span(&recorded)?;
        let windows = eventually("the program to tell of its window", || async {
            Ok(told(&namespace.logs(&trainer.name).await?, last))
        })
        .await?;
        alike(records(&recorded), first.midpoint(last), &windows)
    }

    /// Waits until no window records the workload.
    pub(super) async fn is_left_alone(&self, trainer: &Trainer) -> Result<()> {
        let now = u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos())?;
        eventually("no window to record the workload", || async {
            Ok(told(&self.namespace.logs(&trainer.name).await?, now).map(drop))
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "init 0\n\
        pid=1 t=100 ranges=20 recording=0 wait=ECHILD\n\
        pid=1 t=200 ranges=40 recording=1 wait=ECHILD\n\
        window from=150 to=250 records=60\n\
        window from=280 to=290 records=6\n\
        pid=1 t=300 ranges=60 recording=0 wait=ECHILD\n";

    #[test]
    fn a_window_is_told_once_the_program_says_that_it_is_over() {
        assert_eq!(told(LOG, 300), None);
        let windows = told(LOG, 290).unwrap();
        assert_eq!(windows.iter().map(|one| one.records).collect::<Vec<_>>(), [60, 6]);
        let recording = LOG.replace("t=300 ranges=60 recording=0", "t=300 ranges=60 recording=1");
        assert_eq!(told(&recording, 290), None);
    }

    #[test]
    fn a_trace_with_a_record_less_or_more_than_its_own_window_is_found() {
        let windows = told(LOG, 290).unwrap();
        assert_eq!(alike(60, 200, &windows).unwrap(), 60);
        assert_eq!(alike(6, 295, &windows).unwrap(), 6);
        for (found, time_ns) in [(59, 200), (61, 200), (60, 285), (66, 200)] {
            assert!(alike(found, time_ns, &windows).is_err(), "{found} at {time_ns}");
        }
        assert!(alike(60, 200, &[]).is_err());
    }
}
