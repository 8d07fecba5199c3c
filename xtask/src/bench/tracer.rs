//! What the CUDA tracer costs, how soon it begins and ends, and what it keeps, with stand-ins for
//! NVIDIA's libraries; and how soon its records are a timeline file, beside an export of Nsight
//! Systems.

use super::{Figures, Verdict, best, build, hold, load, measure, tell};
use anyhow::{Context as _, Result, bail};
use clap::Args;
use flopwatch_toolchain::cache::Cache;
use flopwatch_toolchain::command::Run;
use flopwatch_toolchain::progress::{say, step};
use flopwatch_toolchain::project;
use serde::Deserialize;
use std::path::Path;
use std::time::Duration;

/// Name of the bench in what it missed.
const NAME: &str = "tracer";
/// Time that the program takes beside the long window.
const EXTRA_TIMEOUT: Duration = Duration::from_mins(10);
/// Work of the export that stands beside the file: as many events, half of them kernels.
const EXPORT: [&str; 4] = ["--kernels", "500000", "--ranges", "500000"];

/// How it is measured.
#[derive(Debug, Args)]
pub(crate) struct TracerOptions {
    /// Seconds of the window of 100,000 launches a second.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=3000))]
    seconds: u32,
    /// How often launches without a window, and the timeline file, are timed; the fastest counts.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Fail when a budget is missed.
    #[arg(long)]
    strict: bool,
}

/// The figures of the bench program.
#[derive(Debug, Deserialize)]
struct Said {
    off: Off,
    continuous: Continuous,
    windows: Windows,
    kernels: Rate,
    kernels_and_calls: Rate,
    kernels_on_disk: Rate,
    sustained: Sustained,
    kills: Kills,
}

/// Launches while nobody asks.
#[derive(Debug, Deserialize)]
struct Off {
    bare_ns: f64,
    loaded_ns: f64,
    callbacks: u64,
    is_mapped: bool,
}

/// Kernels that are recorded all the time.
#[derive(Debug, Deserialize)]
struct Continuous {
    bare_ns: f64,
    recorded_ns: f64,
    /// While the file goes round for the first time.
    first: Paced,
    /// From then on.
    later: Paced,
    lost: u64,
    /// Windows that ended, of which an order that goes on ends none.
    windows: u64,
}

/// Some seconds of kernels that are recorded all the time.
#[derive(Debug, Deserialize)]
struct Paced {
    records: f64,
    seconds: f64,
    /// Processor time of both threads.
    spent_ns: f64,
    /// That of the library's own one.
    own_ns: f64,
    /// Pages that were mapped when they were first touched, or ahead of that.
    page_faults: f64,
}

/// Two hundred windows, behind a first one.
#[derive(Debug, Deserialize)]
struct Windows {
    first_begin_ms: f64,
    begin: Spread,
    end: Spread,
}

/// How far times lie apart, in ms.
#[derive(Debug, Deserialize)]
struct Spread {
    median: f64,
    p95: f64,
    longest: f64,
}

/// Two million records a second.
#[derive(Debug, Deserialize)]
struct Rate {
    /// Processor time of both threads.
    spent_ns: f64,
    /// That of the library's own one.
    own_ns: f64,
    /// Pages that were touched for the first time.
    page_faults: f64,
    /// Time of both threads in the program and in the kernel, of which the kernel has hundredths of
    /// a second.
    user_ticks: f64,
    kernel_ticks: f64,
    records: f64,
    /// Records and buffers that the process counts as lost.
    lost: u64,
    /// Records of libcupti.
    recorded: f64,
    took_ns: f64,
}

/// Launches with their calls, drained meanwhile.
#[derive(Debug, Deserialize)]
struct Sustained {
    launches: f64,
    recorded: f64,
    read: f64,
    took_ns: f64,
    overwritten: u64,
    lost: u64,
}

/// Programs that were killed in a window.
#[derive(Debug, Deserialize)]
struct Kills {
    programs: u64,
    tagged: u64,
    read: u64,
    unequal: u64,
}

/// Runs the bench program and the timeline file's, and prints a line for each budget.
pub(crate) fn run(cache: &Cache, options: &TracerOptions) -> Result<()> {
    let converter = step("building the bench program", build)?;
    let bench = || -> Result<Run> {
        Ok(project::cargo()?.args(["bench", "--quiet", "-p", "flopwatch-tracer", "--bench", "tracer"]))
    };
    step("building the tracer's bench program", || {
        bench()?.arg("--no-run").quiet()
    })?;
    let folder = cache.root().join("bench").join(NAME);
    std::fs::create_dir_all(&folder)?;
    let trace = folder.join("cuda.trace");
    let said = bench()?
        .arg("--")
        .arg(&trace)
        .args([options.seconds, options.rounds].map(|number| number.to_string()))
        .deadline(Duration::from_secs(options.seconds.into()) + EXTRA_TIMEOUT)
        .output()?;
    let line = said.lines().find(|line| line.starts_with('{'));
    let said: Said = serde_json::from_str(line.with_context(|| format!("no figures in {said:?}"))?)?;
    say(format_args!(
        "the CUDA tracer with stand-ins for NVIDIA's libraries ({})",
        load()
    ));
    let mut missed = hold(NAME, said.verdicts());
    missed.extend(timeline(&converter, &folder, &trace, options.rounds)?);
    if options.strict && !missed.is_empty() {
        bail!("budgets missed: {}", missed.join(", "));
    }
    Ok(())
}

impl Said {
    fn verdicts(&self) -> Vec<Verdict> {
        let mut verdicts = Vec::from(self.off.verdicts());
        verdicts.extend(self.continuous.verdicts());
        verdicts.extend(self.windows.verdicts());
        verdicts.push(self.kernels.verdict("the threads' time per record, kernels"));
        verdicts.push(
            self.kernels_and_calls
                .verdict("the threads' time per record, with both calls of each"),
        );
        verdicts.push(Verdict {
            what: "the threads' time per record, kernels, with the file on a disk",
            value: self.kernels_on_disk.value(),
            budget: None,
        });
        verdicts.extend(self.sustained.verdicts());
        verdicts.push(self.kills.verdict());
        verdicts
    }
}

impl Off {
    fn verdicts(&self) -> [Verdict; 2] {
        let more = self.loaded_ns - self.bare_ns;
        let (callbacks, is_mapped) = (self.callbacks, self.is_mapped);
        let mapped = if is_mapped {
            "libcupti mapped"
        } else {
            "no libcupti mapped"
        };
        [
            Verdict {
                what: "a launch while nobody asks, beside the program alone",
                value: format!("{more:+.2} ns ({:.2} beside {:.2})", self.loaded_ns, self.bare_ns),
                // What is below half a nanosecond is the machine's.
                budget: Some(("0 ns", more < 0.5)),
            },
            Verdict {
                what: "what is called while nobody asks",
                value: format!("{callbacks} calls of libcupti, {mapped}"),
                budget: Some(("nothing", callbacks == 0 && !is_mapped)),
            },
        ]
    }
}

impl Continuous {
    fn verdicts(&self) -> [Verdict; 3] {
        let more = self.recorded_ns - self.bare_ns;
        let (lost, windows) = (self.lost, self.windows);
        let is_met = self.later.percent() <= 1.0 && windows == 0;
        [
            Verdict {
                what: "a launch while kernels are recorded all the time, beside the program alone",
                value: format!("{more:+.2} ns ({:.2} beside {:.2})", self.recorded_ns, self.bare_ns),
                // The stand-in's own work is the most of it.
                budget: None,
            },
            Verdict {
                what: "the threads' time, kernels all the time at 100,000 a second",
                value: format!("{}, {lost} lost, {windows} windows ended", self.later.value()),
                budget: Some(("1 % of a core", is_met)),
            },
            Verdict {
                what: "the same in the first five seconds, in which each page of the file is mapped",
                value: self.first.value(),
                budget: None,
            },
        ]
    }
}

impl Paced {
    /// Processor time in hundredths of a core's.
    fn percent(&self) -> f64 {
        self.spent_ns / self.seconds / 1e7
    }

    /// That, and where it goes.
    fn value(&self) -> String {
        let (percent, rate) = (self.percent(), self.records / self.seconds);
        let own = self.own_ns / self.seconds / 1e7;
        let faults = self.page_faults;
        format!("{percent:.2} % of a core at {rate:.0} a second ({own:.2} on our own thread, {faults:.0} page faults)")
    }
}

impl Windows {
    fn verdicts(&self) -> [Verdict; 3] {
        let of = |spread: &Spread| {
            format!(
                "{:.2} ms (median {:.2}, longest {:.2})",
                spread.p95, spread.median, spread.longest
            )
        };
        [
            Verdict {
                what: "the first begin, which opens libcupti",
                value: format!("{:.2} ms", self.first_begin_ms),
                budget: None,
            },
            Verdict {
                what: "from an order to the begin, 95th percentile of 200",
                value: of(&self.begin),
                budget: Some(("5 ms", self.begin.p95 <= 5.0)),
            },
            Verdict {
                what: "from an order to the end, 95th percentile of 200",
                value: of(&self.end),
                budget: Some(("50 ms", self.end.p95 <= 50.0)),
            },
        ]
    }
}

impl Rate {
    fn verdict(&self, what: &'static str) -> Verdict {
        let is_met = self.each() <= 40.0 && self.millions() >= 1.9;
        Verdict {
            what,
            value: self.value(),
            budget: Some(("40 ns at 2 million", is_met)),
        }
    }

    /// Time of a record in ns.
    fn each(&self) -> f64 {
        self.spent_ns / self.records
    }

    /// Millions of records a second.
    fn millions(&self) -> f64 {
        1e3 * self.recorded / self.took_ns
    }

    /// The time of a record, and where it goes.
    fn value(&self) -> String {
        let (each, millions) = (self.each(), self.millions());
        // A run of less than a hundredth of a second has no ticks.
        let kernel = each * self.kernel_ticks / (self.user_ticks + self.kernel_ticks).max(1.0);
        let own = self.own_ns / self.records;
        let faults = 1e6 * self.page_faults / self.records;
        format!(
            "{each:.1} ns at {millions:.2} million a second, {} lost ({kernel:.1} ns in the kernel, \
             {own:.1} on our own thread, {faults:.0} page faults per million)",
            self.lost
        )
    }
}

impl Sustained {
    fn verdicts(&self) -> [Verdict; 2] {
        let seconds = self.took_ns / 1e9;
        let rate = self.launches / seconds;
        let lost = self.recorded - self.read;
        // Each launch is a kernel and two calls.
        let is_whole = self.recorded >= 3.0 * self.launches && self.read >= self.recorded;
        [
            Verdict {
                what: "launches a second",
                value: format!("{rate:.0} for {seconds:.1} s"),
                budget: Some(("100,000", rate >= 99_000.0)),
            },
            Verdict {
                what: "their records that were lost",
                value: format!(
                    "{lost:.0} of {:.0} ({} overwritten, {} counted by the process)",
                    self.recorded, self.overwritten, self.lost
                ),
                budget: Some(("0", is_whole && self.overwritten == 0 && self.lost == 0)),
            },
        ]
    }
}

impl Kills {
    fn verdict(&self) -> Verdict {
        Verdict {
            what: "records whose tag was written, read of programs that were killed",
            value: format!("{} of {} of {} programs", self.read, self.tagged, self.programs),
            budget: Some(("all", self.unequal == 0 && self.read == self.tagged)),
        }
    }
}

/// Makes the tracer's file a timeline file, and by turns an export of Nsight Systems with as many
/// events; gives what was missed.
fn timeline(program: &Path, folder: &Path, trace: &Path, rounds: u32) -> Result<Vec<String>> {
    let export = folder.join("export.h5");
    step("making an export", || {
        Run::new(program).arg("make-export").arg(&export).args(EXPORT).quiet()
    })?;
    let convert = |input: &Path, name: &str| Run::new(program).arg("convert").arg(input).arg(folder.join(name));
    let (mut ours, mut theirs) = (None, None);
    for _ in 0..rounds {
        best(&mut ours, measure("the tracer's file", convert(trace, "ours.out.h5"))?);
        let rival = "an export of Nsight Systems, by our reader";
        best(&mut theirs, measure(rival, convert(&export, "theirs.out.h5"))?);
    }
    let sides: [Figures; 2] = [ours.context("no run")?, theirs.context("no run")?];
    tell("1 M records to a timeline file", &sides);
    let [ours, _] = &sides;
    let (events, seconds) = (ours.count("/events"), ours.seconds);
    let is_whole = events >= 1e6;
    let verdict = Verdict {
        what: "1 M records to a timeline file",
        value: format!("{seconds:.3} s, {events:.0} events"),
        budget: Some(("0.5 s", is_whole && seconds <= 0.5)),
    };
    Ok(hold(NAME, vec![verdict]))
}
