//! Analyses of ten million events: each alone, and figures per kernel beside polars.

use super::{Bench, Figures, Rival, Source, measure, our_side, speed, spread};
use anyhow::{Result, bail};
use flopwatch_toolchain::command::interrupted;
use flopwatch_toolchain::progress::say;
use flopwatch_toolchain::wheel::Requirements;
use std::path::Path;

/// Name of the bench on the command line.
pub(super) const NAME: &str = "analyses";

const EVENTS: &str = "10000000";
/// Seconds that one analysis may take beyond reading.
const BUDGET_SECONDS: f64 = 2.0;
/// Length of its page as a file, in bytes.
const BUDGET_BYTES: f64 = 5_000_000.0;

pub(super) fn beside_polars() -> Bench {
    Bench {
        name: "kernel-sum",
        what: "Figures per name of 10 M kernels, beside polars",
        input: Source::Made("kernels.raw", &["make-columns", "--events", EVENTS]),
        ours: &["analyze", "--only", "cuda_gpu_kern_sum", "--kernels"],
        writes: false,
        python: Requirements::BenchPolars,
        rivals: &[Rival {
            what: "polars, group by name",
            script: "group.py",
            args: &[],
        }],
        judge: |ours, rival| Vec::from(speed(ours, rival, "1/1.5", 1.0 / 1.5)),
    }
}

/// Times every analysis, and gives the names of those that took too long.
pub(super) fn run(program: &Path, rounds: u32) -> Result<Vec<String>> {
    let mut all: Vec<Figures> = Vec::new();
    for _ in 0..rounds.max(1) {
        if interrupted() {
            bail!("interrupted");
        }
        all.push(measure("ours", our_side(program, &["analyze", "--events", EVENTS]))?);
    }
    say(format_args!(
        "\nEvery analysis of one capture of {EVENTS} events, beyond reading"
    ));
    let mut missed = Vec::new();
    let Some(first) = all.first() else { return Ok(missed) };
    let names = first.counts.pointer("/each").and_then(serde_json::Value::as_object);
    for name in names.into_iter().flat_map(serde_json::Map::keys) {
        let of = |what: &str| {
            let pointer = format!("/each/{name}/{what}");
            let rounds: Vec<f64> = all.iter().map(|figures| figures.count(&pointer)).collect();
            spread(&rounds)
        };
        let rounds = of("seconds");
        let (seconds, bytes) = (rounds.least, of("html_bytes").least);
        let met = seconds < BUDGET_SECONDS && bytes < BUDGET_BYTES;
        let word = if met { "met" } else { "MISSED" };
        say(format_args!(
            "  {name:<32} {seconds:>7.3} s (slowest {:.3}), HTML {:>5.0} kB (budgets {BUDGET_SECONDS} s, 5 MB: {word})",
            rounds.most,
            bytes / 1000.0
        ));
        if !met {
            missed.push(format!("{NAME} {name}"));
        }
    }
    let peak = all.iter().map(|figures| figures.peak_bytes).max().unwrap_or(0) / 1_000_000;
    let total = spread(&all.iter().map(|figures| figures.seconds).collect::<Vec<f64>>());
    say(format_args!(
        "  all of them {:.3} s (median {:.3}, slowest {:.3}), peak {peak} MB with the capture",
        total.least, total.median, total.most
    ));
    Ok(missed)
}
