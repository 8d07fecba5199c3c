//! `compare`: two sessions, before and after a change. The gateway has them compared; what is
//! printed here is its result.

use flopwatch_report::{Layout, Tone};
use serde::Deserialize;
use serde_json::Value;

use crate::analysis::{CaptureAddress, path, result};
use crate::arguments::{CaptureName, CompareArguments, FailOn, Format};
use crate::cluster::Cluster;
use crate::error::Error;
use crate::follow::interrupted;
use crate::gateway::Gateway;
use crate::print::{Cell, line, object, say, table_of_names};

/// Kernels that are printed.
const MAX_KERNELS: usize = 15;

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
pub async fn run(cluster: &Cluster, arguments: &CompareArguments, layout: Layout) -> Result<(), Error> {
    let named = |capture: &Option<CaptureName>| capture.as_ref().map(|capture| capture.0.clone());
    let before = CaptureAddress::find(cluster, &arguments.before.0, named(&arguments.before_capture)).await?;
    let after = CaptureAddress::find(cluster, &arguments.after.0, named(&arguments.after_capture)).await?;
    let threshold = arguments.threshold_percent.map(|percent| percent.to_string());
    let parameters = threshold.as_deref().map(|percent| ("threshold_percent", percent));
    let path = path(&before, "compare", &[after], parameters);
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
        Some(Format::Wide) => render(&found, layout.wide(true)),
        None => render(&found, layout),
    })?;
    if fails(&found.verdict, arguments.fail_on) {
        return Err(Error::Changed(line(&found.verdict)));
    }
    Ok(())
}

/// Whether the verdict is what ends with an exit code of its own; the same rule as
/// `flopwatch compare`.
fn fails(verdict: &str, on: FailOn) -> bool {
    match on {
        FailOn::Regression => verdict == "regression_likely",
        FailOn::AnyChange => verdict != "neutral",
        FailOn::Never => false,
    }
}

fn render(found: &Comparison, layout: Layout) -> String {
    let tone = match found.verdict.as_str() {
        "regression_likely" => Tone::Bad,
        "improvement_likely" => Tone::Good,
        "neutral" => Tone::Plain,
        _ => Tone::Note,
    };
    let verdict = layout.paint(tone, &line(&found.verdict.replace('_', " ")));
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
    let rows: Vec<Vec<Cell>> = changed.iter().take(MAX_KERNELS).map(|kernel| row(kernel)).collect();
    let header = ["DIFFERENCE", "BY CALLS", "BY LENGTH", "BEFORE", "AFTER", "IN", "KERNEL"];
    let more = format!("\nTimes per {}:\n", line(&found.unit));
    text.push_str(&more);
    text.push_str(&table_of_names(&header, &rows, layout));
    let left_out = changed.len().saturating_sub(MAX_KERNELS);
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
