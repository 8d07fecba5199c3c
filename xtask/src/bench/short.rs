//! The short form of the benches, which the tests run: a job that takes half as much processor time
//! again, beside its rival's, as when the ratios were written down fails it. It asks for ratios
//! alone, never for times, for processor time, which other work changes least, and for the median
//! of rounds, since a rival's fastest run was a third faster than its usual one, and ours of
//! another round was not. Of processor time it takes that outside of the kernel: what the kernel
//! took to give a rival its 600 MB was 0.06 s or 0.8 s of a run of 0.6 s, by what else the machine
//! held in memory.

use super::{Bench, PROGRAM, Sides, convert, figures, ingest, kineto, transform};
use anyhow::{Context as _, Result, bail};
use flopwatch_toolchain::cache::Cache;
use flopwatch_toolchain::progress::{say, step};
use flopwatch_toolchain::project;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Where the ratios are written down, below the project's root: how many times the processor time
/// of ours, outside of the kernel, the rival takes.
const RATIOS: &str = "xtask/src/bench/ratios.json";
/// Of the ratio that was written down, what must be left.
const LEFT: f64 = 2.0 / 3.0;
/// Options of the short form.
#[derive(Debug, clap::Args)]
pub(crate) struct ShortOptions {
    /// How often each side runs, in turns; the median of the rounds' ratios counts.
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// Write the ratios down instead of holding them against those that were.
    #[arg(long)]
    record: bool,
}

impl ShortOptions {
    /// What the tests ask for.
    pub(crate) const TESTS: Self = Self {
        rounds: 5,
        record: false,
    };
}

fn benches() -> [Bench; 4] {
    [convert::usual(), ingest::bench(), transform::bench(), kineto::small()]
}

/// Compiles what the short form runs as the tests' build has it, which optimizes the engine a
/// little: as good for a comparison with itself as a release, and there already in a round.
fn compile(cache: &Cache) -> Result<PathBuf> {
    let mut built = project::build_beside_tests(cache, &[PROGRAM])?;
    built.programs.remove(PROGRAM).context("cargo built no bench program")
}

/// Fetches the rivals, unless the cache has them.
pub(crate) fn fetch(cache: &Cache) -> Result<()> {
    let mut benches = benches().into_iter();
    benches.try_for_each(|bench| bench.python.environment(cache).map(drop))
}

/// Runs the short form.
pub(crate) fn run(cache: &Cache, options: &ShortOptions) -> Result<()> {
    let program = step("building the bench program", || compile(cache))?;
    let mut ratios = BTreeMap::new();
    for bench in benches() {
        let sides = Sides::measure(cache, &program, &bench, options.rounds)?;
        let sides = sides.with_context(|| format!("{}: no input", bench.name))?;
        sides.tell(&bench);
        let of_rounds = figures::ratios(&sides.fastest.user_rounds, &sides.ours.user_rounds);
        ratios.insert(bench.name.to_owned(), of_rounds.median);
    }
    let file = project::root()?.join(RATIOS);
    if options.record {
        // Two digits: more of them say nothing.
        let rounded: BTreeMap<&String, f64> = ratios
            .iter()
            .map(|(name, ratio)| (name, (ratio * 10.0).round() / 10.0))
            .collect();
        std::fs::write(&file, serde_json::to_string_pretty(&rounded)? + "\n")?;
        say(format_args!("wrote {RATIOS}"));
        return Ok(());
    }
    let recorded = std::fs::read_to_string(&file).with_context(|| format!("reading {RATIOS}"))?;
    let recorded = serde_json::from_str(&recorded).with_context(|| format!("reading {RATIOS}"))?;
    let (lines, fallen) = judge(&ratios, &recorded);
    for line in lines {
        say(line);
    }
    if fallen.is_empty() {
        return Ok(());
    }
    bail!(
        "slower than was written down: {}; find what made it so, or where it is meant, write the ratios down anew with `cargo xtask bench short --record`",
        fallen.join(", ")
    )
}

/// A line per job, and those whose ratio fell too far or was never written down.
fn judge(ratios: &BTreeMap<String, f64>, recorded: &BTreeMap<String, f64>) -> (Vec<String>, Vec<String>) {
    let mut lines = Vec::new();
    let mut fallen = Vec::new();
    for (name, ratio) in ratios {
        let Some(before) = recorded.get(name) else {
            lines.push(format!(
                "{name}: {ratio:.1} times less processor time than its rival, and no ratio was written down"
            ));
            fallen.push(name.clone());
            continue;
        };
        lines.push(format!(
            "{name}: {ratio:.1} times less processor time than its rival ({before:.1} was written down)"
        ));
        if *ratio < before * LEFT {
            fallen.push(format!("{name} {ratio:.1} of {before:.1}"));
        }
    }
    (lines, fallen)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratios(of: &[(&str, f64)]) -> BTreeMap<String, f64> {
        of.iter().map(|(name, ratio)| ((*name).to_owned(), *ratio)).collect()
    }

    #[test]
    fn a_ratio_that_fell_by_more_than_a_third_is_told() {
        let recorded = ratios(&[("convert", 3.0), ("ingest", 6.0)]);
        let fallen = |convert| judge(&ratios(&[("convert", convert), ("ingest", 9.0)]), &recorded).1;
        assert_eq!(fallen(2.1), Vec::<String>::new());
        assert_eq!(fallen(1.9), ["convert 1.9 of 3.0"]);
    }

    #[test]
    fn a_job_without_a_ratio_is_told() {
        assert_eq!(judge(&ratios(&[("convert", 3.0)]), &ratios(&[])).1, ["convert"]);
    }

    #[test]
    fn every_job_of_the_short_form_has_a_ratio() {
        let recorded: BTreeMap<String, f64> = serde_json::from_str(include_str!("ratios.json")).unwrap();
        let names: Vec<String> = benches().iter().map(|bench| bench.name.to_owned()).collect();
        let mut sorted = names.clone();
        sorted.sort();
        assert_eq!(recorded.into_keys().collect::<Vec<_>>(), sorted);
    }
}
