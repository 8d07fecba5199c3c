//! `compare`: two sessions, before and after a change. The gateway has them compared; what is printed here is its result.

use std::time::Duration;

use flopwatch_api::session::ProfilingSession;
use http::HeaderMap;
use http_body_util::{BodyExt as _, Limited};
use kube::ResourceExt as _;
use kube::api::Api;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::arguments::{CompareArguments, FailOn, Format};
use crate::cluster::Cluster;
use crate::error::Error;
use crate::follow::interrupted;
use crate::gateway::{Gateway, GatewayError};
use crate::print::{Cell, Paint, Tone, line, object, say, table};

/// Largest result that is read.
const LARGEST: usize = 64 << 20;
/// Longest wait for it: an agent may have to fetch a timeline from another node first.
const LONGEST: Duration = Duration::from_mins(15);
/// Between two requests for what is not there yet.
const PAUSE: Duration = Duration::from_secs(2);
/// Kernels that are printed.
const KERNELS: usize = 15;

/// The result as far as it is printed.
#[derive(Debug, Deserialize)]
struct Comparison {
    verdict: String,
    verdict_reason: String,
    speedup: Option<f64>,
    unit: String,
    comparability: Comparability,
    kernels: Vec<Kernel>,
}

#[derive(Debug, Deserialize)]
struct Comparability {
    score_ratio: f64,
    factors: Vec<Factor>,
}

#[derive(Debug, Deserialize)]
struct Factor {
    ratio: f64,
    about: String,
}

#[derive(Debug, Deserialize)]
struct Kernel {
    name: String,
    presence: String,
    before_ns: u64,
    after_ns: u64,
    difference_ns: i64,
    count_part_ns: i64,
    duration_part_ns: i64,
}

/// Runs `compare`.
pub async fn run(cluster: &Cluster, arguments: &CompareArguments, paint: Paint) -> Result<(), Error> {
    let (before, after) = (
        id(cluster, &arguments.before.0).await?,
        id(cluster, &arguments.after.0).await?,
    );
    let path = path(&before, &after, arguments);
    let gateway = Gateway::find(cluster, &arguments.gateway).await?;
    let body = tokio::select! {
        body = result(&gateway, &path) => body?,
        () = interrupted() => return Err(Error::Cancelled),
    };
    let unreadable =
        |error: serde_json::Error| Error::Render(format!("the gateway's result is no comparison: {error}"));
    let whole: Value = serde_json::from_slice(&body).map_err(unreadable)?;
    let found = Comparison::deserialize(&whole).map_err(unreadable)?;
    say(&match arguments.format.output {
        Some(format @ (Format::Json | Format::Yaml)) => object(&whole, format)?,
        Some(Format::Name) => format!("{}\n", line(&found.verdict)),
        Some(Format::Wide) | None => render(&found, paint),
    })?;
    if fails(&found.verdict, arguments.fail_on) {
        return Err(Error::Changed(line(&found.verdict)));
    }
    Ok(())
}

/// Whether the verdict is what ends with an exit code of its own; the same rule as `flopwatch-agent compare`.
fn fails(verdict: &str, on: FailOn) -> bool {
    match on {
        FailOn::Regression => verdict == "regression_likely",
        FailOn::AnyChange => verdict != "neutral",
        FailOn::Never => false,
    }
}

/// The identifier by which the gateway knows a session.
async fn id(cluster: &Cluster, name: &str) -> Result<String, Error> {
    let sessions: Api<ProfilingSession> = cluster.api();
    let session = cluster
        .asked(&format!("read session {name}"), sessions.get(name))
        .await?;
    let id = session
        .status
        .as_ref()
        .and_then(|status| status.id.clone())
        .unwrap_or_default();
    let plain = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    plain.then_some(id).ok_or_else(|| {
        let name = session.name_any();
        Error::Usage(format!("session {name} has not begun: kubectl flopwatch watch {name}"))
    })
}

/// Names of captures and sessions are letters, digits, `-` and `.` alone, so that nothing is to be escaped.
fn path(before: &str, after: &str, arguments: &CompareArguments) -> String {
    let mut path = format!("/api/profiling/session/{before}/analyses/compare?with={after}");
    if let Some(capture) = &arguments.after_capture {
        path.push('/');
        path.push_str(&capture.0);
    }
    if let Some(capture) = &arguments.before_capture {
        path.push_str("&capture=");
        path.push_str(&capture.0);
    }
    if let Some(threshold) = arguments.threshold_percent {
        let more = format!("&threshold_percent={threshold}");
        path.push_str(&more);
    }
    path
}

/// The gateway's result, which may have to be made first.
async fn result(gateway: &Gateway, path: &str) -> Result<Vec<u8>, Error> {
    let until = Instant::now() + LONGEST;
    loop {
        match gateway.get(path, HeaderMap::new()).await {
            Ok(answer) => {
                let body = Limited::new(answer.into_body(), LARGEST).collect().await;
                let body = body.map_err(|error| Error::Render(format!("the gateway's result broke off: {error}")))?;
                return Ok(body.to_bytes().to_vec());
            }
            Err(error @ GatewayError::Refused { .. }) if error.may_pass() && Instant::now() < until => {
                sleep(PAUSE).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

fn render(found: &Comparison, paint: Paint) -> String {
    let tone = match found.verdict.as_str() {
        "regression_likely" => Tone::Bad,
        "improvement_likely" => Tone::Good,
        "neutral" => Tone::Plain,
        _ => Tone::Note,
    };
    let verdict = paint.tone(tone, &line(&found.verdict.replace('_', " ")));
    let mut text = format!(
        "Verdict:        {verdict}\n                {}\n",
        line(&found.verdict_reason)
    );
    if let Some(speedup) = found.speedup {
        let more = format!("Speed-up:       {speedup:.3}\n");
        text.push_str(&more);
    }
    let more = format!("Comparability:  {:.2}\n", found.comparability.score_ratio);
    text.push_str(&more);
    for factor in found.comparability.factors.iter().filter(|factor| factor.ratio < 1.0) {
        let more = format!("                {}\n", line(&factor.about));
        text.push_str(&more);
    }
    let changed: Vec<&Kernel> = found
        .kernels
        .iter()
        .filter(|kernel| kernel.difference_ns != 0)
        .collect();
    if changed.is_empty() {
        text.push_str("\nNo kernel changed.\n");
        return text;
    }
    let rows: Vec<Vec<Cell>> = changed.iter().take(KERNELS).map(|kernel| row(kernel)).collect();
    let header = ["DIFFERENCE", "BY CALLS", "BY LENGTH", "BEFORE", "AFTER", "IN", "KERNEL"];
    let more = format!("\nTimes per {}:\n", line(&found.unit));
    text.push_str(&more);
    text.push_str(&table(&header, &rows, paint));
    let left_out = changed.len().saturating_sub(KERNELS);
    if left_out > 0 {
        let more = format!("... and {left_out} more: -o json\n");
        text.push_str(&more);
    }
    text
}

fn row(kernel: &Kernel) -> Vec<Cell> {
    let tone = if kernel.difference_ns > 0 {
        Tone::Bad
    } else {
        Tone::Good
    };
    let time = |ns: u64| microseconds(ns, "");
    let change = |ns: i64| microseconds(ns.unsigned_abs(), if ns < 0 { "-" } else { "+" });
    vec![
        Cell::toned(change(kernel.difference_ns), tone),
        change(kernel.count_part_ns).into(),
        change(kernel.duration_part_ns).into(),
        time(kernel.before_ns).into(),
        time(kernel.after_ns).into(),
        kernel.presence.as_str().into(),
        kernel.name.as_str().into(),
    ]
}

/// Exact: a nanosecond is the last digit.
fn microseconds(ns: u64, sign: &str) -> String {
    format!("{sign}{}.{:03}us", ns / 1000, ns % 1000)
}
