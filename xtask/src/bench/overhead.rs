//! What is measured of windows against what real programs count themselves: how near, how surely,
//! and how soon harm is ended.

use super::load;
use crate::setup;
use anyhow::{Context as _, Result, bail};
use clap::Args;
use flopwatch_toolchain::cache::Cache;
use flopwatch_toolchain::command::Run;
use flopwatch_toolchain::progress::{say, step};
use flopwatch_toolchain::project;
use serde_json::Value;
use std::time::Duration;

/// The program whose windows are measured.
const WORKLOAD: &str = "flopwatch-sample-workload";
/// Kinds of windows, where those without harm are counted twice, as so many are run.
const KINDS: u32 = 6;
/// Longest course: a minute before the window, its ends, and ten seconds after it.
const MAX_COURSE_DURATION: Duration = Duration::from_secs(75);
/// Time that the program takes beside what it measures.
const EXTRA_TIMEOUT: Duration = Duration::from_mins(2);

/// Options of the measurement of the overhead verdicts.
#[derive(Debug, Args)]
pub(crate) struct OverheadOptions {
    /// Windows of each kind: harm of 2, 5 and 20 %, and a load that changes; twice as many without
    /// harm.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(4..=10_000))]
    windows: u32,
    /// Length of a window in seconds.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(5..=60))]
    seconds: u32,
    /// Agents side by side, each with readings of its own.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=32))]
    nodes: u32,
    /// Programs of each agent.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=16))]
    programs: u32,
    /// Standard deviation of the programs' steps in percent, of 50 steps a second.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(0..=50))]
    variation: u32,
}

/// One bar.
struct Bar {
    what: &'static str,
    value: String,
    budget: &'static str,
    is_met: bool,
}

/// The figures of the windows of a kind.
struct Case<'a>(&'a Value);

impl Case<'_> {
    fn count(&self, name: &str) -> Result<u64> {
        let count = self.0.get(name).and_then(Value::as_u64);
        count.with_context(|| format!("{name}: the figure is missing"))
    }

    /// The part of its windows in percent.
    fn share(&self, name: &str) -> Result<f64> {
        Ok(percent(self.count(name)?, self.count("windows")?))
    }

    /// The harm in basis points; none where the load changed.
    fn harm(&self) -> Option<i64> {
        self.0.get("harm_basis_points").and_then(Value::as_i64)
    }
}

/// Builds the measuring program, runs all windows and prints the table.
pub(crate) fn run(cache: &Cache, options: &OverheadOptions) -> Result<()> {
    step("setting up", || setup::basic(cache))?;
    let built = step("building the sample workload", || project::build_binaries(&[WORKLOAD]))?;
    let workload = built.get(WORKLOAD).context("the sample workload was not built")?;
    let bench = || -> Result<Run> {
        let run = project::cargo()?.env("FLOPWATCH_WORKLOAD", workload);
        Ok(run.args(["bench", "--quiet", "-p", "flopwatch-agent", "--bench", "overhead"]))
    };
    step("building the program", || bench()?.arg("--no-run").quiet())?;
    let OverheadOptions {
        windows,
        seconds,
        nodes,
        programs,
        variation,
    } = *options;
    let each = MAX_COURSE_DURATION + Duration::from_secs(seconds.into());
    // The first windows are spread over a course.
    let time = each * (windows * KINDS).div_ceil(nodes * programs) + each * 2;
    let run = bench()?
        .arg("--")
        .args([windows, seconds, nodes, programs, variation].map(|number| number.to_string()));
    let said = run.deadline(time + EXTRA_TIMEOUT).output()?;
    let line = said.lines().find(|line| line.starts_with('{'));
    let line = line.with_context(|| format!("no figures in {said:?}"))?;
    say(line);
    let found: Value = serde_json::from_str(line)?;
    let cases = found.get("cases").and_then(Value::as_array).context("no cases")?;
    let cases: Vec<Case<'_>> = cases.iter().map(Case).collect();
    say(format_args!(
        "windows of {seconds} s, {} programs of 50 steps a second that vary by {variation} % ({})",
        nodes * programs,
        load()
    ));
    for case in &cases {
        say(format_args!("  {}", told(case)?));
    }
    let mut missed = Vec::new();
    for Bar {
        what,
        value,
        budget,
        is_met,
    } in bars(&cases, &found)?
    {
        let word = if is_met { "met" } else { "MISSED" };
        say(format_args!("  {what}: {value} (bar {budget}: {word})"));
        if !is_met {
            missed.push(what);
        }
    }
    if !missed.is_empty() {
        bail!("bars missed: {}", missed.join(", "));
    }
    Ok(())
}

/// One row of the table.
fn told(case: &Case<'_>) -> Result<String> {
    let figure = |name: &str| case.0.get(name).cloned().unwrap_or_default();
    let windows = case.count("windows")?;
    Ok(match case.harm() {
        None => format!(
            "load changes: {windows} windows, {} told as changed, verdicts {}",
            case.count("load_changed")?,
            figure("verdicts")
        ),
        Some(harm) => format!(
            "harm {:>2} %: {windows} windows, within a point of the own count {:.1} %, of the harm {:.1} %; interval holds the harm {:.1} %, is {} \
             basis points wide; ended {}, the last after {} ms; verdicts {}",
            harm / 100,
            case.share("near_own_count")?,
            case.share("near_planted")?,
            case.share("covered")?,
            figure("mean_width_basis_points"),
            case.count("ended")?,
            figure("slowest_end_ms"),
            figure("verdicts")
        ),
    })
}

/// What is asked of the figures.
fn bars(cases: &[Case<'_>], found: &Value) -> Result<Vec<Bar>> {
    let of = |harm: Option<i64>| {
        let case = cases.iter().find(|case| case.harm() == harm);
        case.with_context(|| format!("no windows of harm {harm:?}"))
    };
    let harmed = || cases.iter().filter(|case| case.harm().is_some());
    let sum = |name: &str| harmed().map(|case| case.count(name)).sum::<Result<u64>>();
    let mut least_near = 100.0_f64;
    for case in harmed() {
        least_near = least_near.min(case.share("near_own_count")?);
    }
    let covered = percent(sum("covered")?, sum("windows")?);
    let (unharmed, harmful, drift) = (of(Some(0))?, of(Some(2000))?, of(None)?);
    let (false_ends, of_windows) = (unharmed.count("ended")?, unharmed.count("windows")?);
    let (soon, all) = (harmful.count("ended_soon")?, harmful.count("windows")?);
    let changed = drift.share("load_changed")?;
    let reading = found.get("reading_percent_of_a_core").and_then(Value::as_f64);
    let reading = reading.context("the cost of reading is missing")?;
    Ok(vec![
        Bar {
            what: "estimates within a point of the program's own count, of the worst harm",
            value: format!("{least_near:.1} %"),
            budget: "95 %",
            is_met: least_near >= 95.0,
        },
        Bar {
            what: "intervals that hold the harm",
            value: format!("{covered:.1} %"),
            budget: "92 to 98 %",
            is_met: (92.0..=98.0).contains(&covered),
        },
        Bar {
            what: "windows without harm that were ended",
            value: format!("{false_ends} of {of_windows}"),
            budget: "1 of 200",
            is_met: false_ends * 200 <= of_windows,
        },
        Bar {
            what: "windows of 20 % harm that were ended within 5 s",
            value: format!("{soon} of {all}"),
            budget: "all",
            is_met: soon == all,
        },
        Bar {
            what: "windows told as inconclusive where the load changed",
            value: format!("{changed:.1} %"),
            budget: "95 %",
            is_met: changed >= 95.0,
        },
        Bar {
            what: "reading one program's counters",
            value: format!("{reading:.3} % of a core"),
            budget: "0.1 %",
            is_met: reading < 0.1,
        },
    ])
}

fn percent(part: u64, whole: u64) -> f64 {
    let float = |count: u64| u32::try_from(count).map_or(f64::MAX, f64::from);
    100.0 * float(part) / float(whole.max(1))
}
