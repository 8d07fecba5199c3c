//! What flight recorders held: timelines of captures, and what was kept of a container that ended.

use anyhow::{Context as _, Result, ensure};
use flopwatch_api::artifact::{CUDA_TRACE, TIMELINE};
use flopwatch_api::capture::Capture;
use flopwatch_model::{Capture as Events, Category};
use flopwatch_trace::ReadLimits;
use kube::Client;
use tempfile::NamedTempFile;

use crate::cluster::TestNamespace;
use crate::fetch::ArtifactClient;
use crate::simulated_gpu::records;

impl TestNamespace {
    /// What a capture published under that name, as a reader fetches it.
    ///
    /// # Errors
    /// When it is not published or cannot be read.
    pub async fn artifact(&self, capture: &Capture, name: &str) -> Result<Vec<u8>> {
        published(&self.client, &self.reader().await?, capture, name).await
    }

    /// A timeline file of a capture.
    ///
    /// # Errors
    /// When it is not published or cannot be read.
    pub async fn timeline(&self, capture: &Capture, name: &str) -> Result<Events> {
        let file = written(&self.artifact(capture, name).await?)?;
        Ok(flopwatch_trace::timeline_file::read(file.path(), &ReadLimits::default())?.capture)
    }

    /// Holds a timeline file of a capture against the kernels and calls that a program counted.
    ///
    /// # Errors
    /// When it has more or fewer.
    pub async fn holds(&self, capture: &Capture, name: &str, counted: u64) -> Result<()> {
        let found = records(&self.timeline(capture, name).await?);
        ensure!(found == counted, "{found} in {name}, {counted} by the program");
        Ok(())
    }
}

/// All that the CUDA tracer recorded, in its window and in the moments until its programs heard of
/// the end of it, of a capture that publishes Raw.
///
/// # Errors
/// When the capture has no such file, or it cannot be read.
pub async fn traced(client: &Client, token: &str, capture: &Capture) -> Result<Events> {
    let file = written(&published(client, token, capture, CUDA_TRACE).await?)?;
    Ok(flopwatch_trace::tracer::read(file.path(), &ReadLimits::default())?)
}

/// What a capture published under that name.
async fn published(client: &Client, token: &str, capture: &Capture, name: &str) -> Result<Vec<u8>> {
    let status = capture.status.as_ref().context("no status")?;
    let listed = status.artifacts.iter().any(|artifact| artifact.name == name);
    ensure!(listed, "no {name} among {:?}", status.artifacts);
    let url = status.url.as_ref().context("no URL")?;
    let client = ArtifactClient::new(client).await?;
    let answer = client.request(&format!("{url}/{name}"), Some(token), &[]).await?;
    ensure!(answer.status == 200, "{name}: {answer:?}");
    Ok(answer.body)
}

fn written(bytes: &[u8]) -> Result<NamedTempFile> {
    let file = NamedTempFile::new()?;
    std::fs::write(file.path(), bytes)?;
    Ok(file)
}

/// Values of the heartbeat of a range's name.
///
/// # Errors
/// When there is none.
pub fn heartbeat<'a>(capture: &'a Events, name: &str) -> Result<&'a [f64]> {
    let mut series = capture.counters.iter();
    let found = series.find(|series| series.source == "recorder" && series.metric == name);
    Ok(&found.with_context(|| format!("no heartbeat of {name}"))?.value)
}

/// Begin and end of the NVTX ranges of a timeline, in ns since the Unix epoch, and how many there
/// are.
///
/// # Errors
/// When there are no ranges.
pub fn ranges(capture: &Events) -> Result<(u64, u64, u64)> {
    let start = capture.session_start_utc_ns.context("no start")?;
    let events = capture.events.get(&Category::NvtxRange).context("no ranges")?;
    let ends = (0..events.len()).map(|at| events.start_ns[at] + events.duration_ns[at]);
    let first = events.start_ns.iter().min().context("no range")?;
    let last = ends.max().context("no range")?;
    Ok((start + first, start + last, events.count()))
}

/// When the NVTX ranges of a timeline begin, in ns since the Unix epoch, in that order.
///
/// # Errors
/// When there are no ranges.
pub fn begins(capture: &Events) -> Result<Vec<u64>> {
    let start = capture.session_start_utc_ns.context("no start")?;
    let events = capture.events.get(&Category::NvtxRange).context("no ranges")?;
    let mut begins: Vec<u64> = events.start_ns.iter().map(|at| start + at).collect();
    begins.sort_unstable();
    Ok(begins)
}

/// Reads what was kept of the pod `trainer`: all its ranges, and the last one ends when its program
/// says so.
///
/// # Errors
/// When nothing is kept, or something else.
pub async fn ends_with_its_programs_last_line(namespace: &TestNamespace) -> Result<()> {
    let logs = namespace.logs("trainer").await?;
    let said = logs
        .lines()
        .find_map(|line| line.strip_prefix("last t=")?.split_once(" ranges="));
    let (time, total) = said.with_context(|| format!("no last line in {logs:?}"))?;
    let (time, total): (u64, u64) = (time.parse()?, total.parse()?);
    namespace.event("trainer", "RecordingKept").await?;
    namespace.profile_main("after", "trainer", 120, "Recorder").await?;
    namespace.finished("after").await?;
    let capture = namespace.only_capture("after").await?;
    let recorded = namespace.timeline(&capture, TIMELINE).await?;
    let (_, last, count) = ranges(&recorded)?;
    ensure!(
        count == total,
        "the ring has {count} ranges, and the program had {total}"
    );
    ensure!(last.abs_diff(time) < 1_000_000, "{} ns apart", last.abs_diff(time));
    Ok(())
}
