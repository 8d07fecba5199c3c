//! `cargo xtask bench`: our side of a job and the rival's, in turns, in one run on one machine.
//!
//! A bench is a file in `bench/`: how its input is made, what is run, what is asked of the figures.
//! Every run is a process of its own that prints a line of JSON with its `seconds` (the job,
//! without starting the process) and `peak_bytes`.

mod analyses;
mod convert;
mod corpus;
mod diagnose;
mod figures;
mod fleet;
mod graft;
mod idle;
mod ingest;
mod kineto;
mod metrics_ring;
mod nsys_report;
mod overhead;
mod profiled;
mod python;
mod recorder;
pub(crate) mod short;
mod stages;
mod tracer;
mod transform;
mod viewer;

use anyhow::{Context as _, Result, bail};
use figures::{Figures, best, measure, ratios, spread};
use flopwatch_toolchain::cache::Cache;
use flopwatch_toolchain::command::{Run, interrupted};
use flopwatch_toolchain::progress::{say, step};
use flopwatch_toolchain::project;
use flopwatch_toolchain::wheel::Requirements;
use std::path::{Path, PathBuf};

/// The program that does our side of the jobs.
const PROGRAM: &str = "flopwatch-trace-bench";

/// Options of the recipe.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct BenchOptions {
    #[command(subcommand)]
    other: Option<Other>,
    /// Only the benches of these names.
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(names()))]
    names: Vec<String>,
    /// How often each side runs, in turns; the fastest counts, and the median and the slowest are
    /// told.
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// Fail when a budget is missed.
    #[arg(long)]
    strict: bool,
}

/// What is measured in another way than a job with a rival.
#[derive(Debug, clap::Subcommand)]
enum Other {
    /// Measure a fleet of simulated nodes at the real API server, controller, gateway and
    /// admission, in the local cluster.
    Fleet(fleet::FleetOptions),
    /// Measure what a prepared container costs: its start, and its pace without and with a capture.
    Graft(graft::GraftOptions),
    /// Measure what an agent costs that has nothing to do: processor time, memory, and how often it
    /// wakes up.
    Idle(idle::IdleOptions),
    /// Measure what the metrics ring costs with eight GPUs, and its longest gap.
    MetricsRing(metrics_ring::MetricsRingOptions),
    /// Measure how near to the truth is what windows are said to cost, and how soon harm is ended,
    /// with programs whose pace is known.
    Overhead(overhead::OverheadOptions),
    /// Measure what a region costs in a Python program, and how soon a file's events are frames of
    /// polars, beside the engine alone.
    Python(python::PythonOptions),
    /// Measure what an empty NVTX range costs with the flight recorder, with Nsight Systems, and
    /// with both.
    Recorder(recorder::RecorderOptions),
    /// Measure a few jobs beside their rivals, and fail where one became slower than was written
    /// down. The tests do it.
    Short(short::ShortOptions),
    /// Measure sessions in the local cluster stage by stage, from their creation to the first bytes
    /// of their picture, with Nsight Systems and with the CUDA tracer by turns, and how much later
    /// prepared pods are ready.
    Stages(stages::StagesOptions),
    /// Measure what the CUDA tracer costs, how soon it begins and ends, and what it keeps, with
    /// stand-ins for NVIDIA's libraries.
    Tracer(tracer::TracerOptions),
    /// Measure the viewer in a browser, on a usual capture and on one of ten million events.
    Viewer(viewer::ViewerOptions),
}

/// A bench that can be run.
struct Bench {
    /// Name of the bench on the command line.
    name: &'static str,
    /// What is done, for people.
    what: &'static str,
    input: Source,
    /// Arguments of the bench program that do the job, less the input's and the output's file.
    ours: &'static [&'static str],
    /// Whether a side writes a file, whose place is then its last argument.
    writes: bool,
    /// What the rivals need of PyPI, pinned.
    python: Requirements,
    /// The rivals; the fastest counts.
    rivals: &'static [Rival],
    /// What is asked of the figures of both sides.
    judge: fn(&Figures, &Figures) -> Vec<Verdict>,
}

/// Where the input of a bench comes from.
#[derive(Clone, Copy)]
enum Source {
    /// The name of its file, and the arguments of the bench program that make it, less the file.
    Made(&'static str, &'static [&'static str]),
    /// The name of its file, an export as SQLite of the shared corpus, and how often it holds that
    /// one's events.
    Longer(&'static str, &'static str, &'static str),
}

impl Source {
    /// The file, made in `folder` where that is its way; `None` without a corpus.
    fn file(self, program: &Path, folder: &Path) -> Result<Option<PathBuf>> {
        match self {
            Self::Made(name, make) => {
                let (verb, rest) = make.split_first().context("no way to make the input")?;
                let file = folder.join(name);
                Run::new(program).arg(verb).arg(&file).args(rest).quiet()?;
                Ok(Some(file))
            }
            Self::Longer(name, of, times) => {
                let Some(corpus) = project::corpus()? else {
                    return Ok(None);
                };
                let file = folder.join(name);
                let run = Run::new(program).arg("make-longer").arg(&file);
                run.args(["--times", times, "--of"]).arg(corpus.join(of)).quiet()?;
                Ok(Some(file))
            }
        }
    }
}

/// A program in `trace/bench/rivals`.
struct Rival {
    what: &'static str,
    script: &'static str,
    /// Arguments behind the files.
    args: &'static [&'static str],
}

/// One demand and whether it is met.
struct Verdict {
    what: &'static str,
    value: String,
    /// `None` for a figure that is told and not asked for.
    budget: Option<(&'static str, bool)>,
}

fn all() -> [Bench; 10] {
    [
        convert::usual(),
        convert::large(),
        ingest::bench(),
        transform::bench(),
        kineto::beside_orjson(),
        kineto::beside_hta(),
        analyses::beside_polars(),
        diagnose::of_a_new_file(),
        diagnose::of_a_known_file(),
        profiled::bench(),
    ]
}

fn names() -> impl Iterator<Item = &'static str> {
    all()
        .into_iter()
        .map(|bench| bench.name)
        .chain([corpus::NAME, nsys_report::NAME, analyses::NAME])
}

/// Runs the benches and prints a table of each.
pub(crate) fn run(cache: &Cache, options: &BenchOptions) -> Result<()> {
    match &options.other {
        Some(Other::Fleet(options)) => return fleet::run(cache, options),
        Some(Other::Graft(options)) => return graft::run(cache, options),
        Some(Other::Idle(options)) => return idle::run(cache, options),
        Some(Other::MetricsRing(options)) => return metrics_ring::run(cache, options),
        Some(Other::Overhead(options)) => return overhead::run(cache, options),
        Some(Other::Python(options)) => return python::run(cache, options),
        Some(Other::Recorder(options)) => return recorder::run(cache, options),
        Some(Other::Short(options)) => return short::run(cache, options),
        Some(Other::Stages(options)) => return stages::run(cache, options),
        Some(Other::Tracer(options)) => return tracer::run(cache, options),
        Some(Other::Viewer(options)) => return viewer::run(cache, options),
        None => {}
    }
    let program = step("building the bench program", build)?;
    let wanted = |name: &str| options.names.is_empty() || options.names.iter().any(|wanted| wanted == name);
    let mut missed = Vec::new();
    for bench in all().iter().filter(|bench| wanted(bench.name)) {
        missed.extend(one(cache, &program, bench, options.rounds)?);
    }
    if wanted(corpus::NAME) {
        missed.extend(corpus::run(&program, options.rounds)?);
    }
    if wanted(nsys_report::NAME) {
        missed.extend(nsys_report::run(cache, &program, options.rounds)?);
    }
    if wanted(analyses::NAME) {
        missed.extend(analyses::run(&program, options.rounds)?);
    }
    if options.strict && !missed.is_empty() {
        bail!("budgets missed: {}", missed.join(", "));
    }
    Ok(())
}

/// The bench program as it is measured: a release.
fn build() -> Result<PathBuf> {
    project::cargo()?
        .args(["build", "--quiet", "--release", "-p", PROGRAM])
        .quiet()?;
    Ok(project::target_directory()?.join("release").join(PROGRAM))
}

/// Both sides of a bench.
struct Sides {
    ours: Figures,
    /// Figures of the rival that was fastest by the wall.
    fastest: Figures,
    /// Figures of all rivals.
    theirs: Vec<Figures>,
}

impl Sides {
    /// Runs each side so many times, in turns; `None` where the input cannot be made here.
    fn measure(cache: &Cache, program: &Path, bench: &Bench, rounds: u32) -> Result<Option<Self>> {
        let python = bench.python.environment(cache)?.join("bin/python3");
        let rivals = project::root()?.join("trace/bench/rivals");
        let folder = cache.root().join("bench").join(bench.name);
        std::fs::create_dir_all(&folder)?;
        let input = step(&format!("{}: input", bench.name), || bench.input.file(program, &folder))?;
        let Some(input) = input else {
            say(format_args!(
                "{}: skipped, there is no ../shared/corpus beside the repository",
                bench.name
            ));
            return Ok(None);
        };
        let out = |side: &str| bench.writes.then(|| folder.join(format!("{side}.out.h5")));
        let mut ours: Option<Figures> = None;
        let mut theirs: Vec<Option<Figures>> = bench.rivals.iter().map(|_| None).collect();
        for _ in 0..rounds.max(1) {
            if interrupted() {
                bail!("interrupted");
            }
            let run = our_side(program, bench.ours).arg(&input);
            best(&mut ours, measure("ours", files(run, out("ours")))?);
            for (rival, figures) in bench.rivals.iter().zip(&mut theirs) {
                let run = Run::new(&python).arg(rivals.join(rival.script)).arg(&input);
                let run = files(run, out("theirs")).args(rival.args);
                best(figures, measure(rival.what, run)?);
            }
        }
        let ours = ours.context("no run of ours")?;
        let theirs: Vec<Figures> = theirs.into_iter().flatten().collect();
        let fastest = theirs.iter().min_by(|a, b| a.seconds.total_cmp(&b.seconds));
        let fastest = fastest.context("no run of a rival")?.clone();
        let sides = Self { ours, fastest, theirs };
        agree(bench.name, &sides.ours, &sides.fastest)?;
        Ok(Some(sides))
    }

    /// Says the figures of each side.
    fn tell(&self, bench: &Bench) {
        tell(bench.what, std::iter::once(&self.ours).chain(&self.theirs));
    }
}

/// Says the figures of the sides of a bench.
fn tell<'a>(what: &str, sides: impl IntoIterator<Item = &'a Figures>) {
    say(format_args!("\n{what} ({})", load()));
    for side in sides {
        let megabytes = side.peak_bytes / 1_000_000;
        let rounds = spread(&side.rounds);
        say(format_args!(
            "  {:<40} {:>9.3} s (median {:.3}, slowest {:.3}), {:>8.3} s of processors, peak {megabytes:>5} MB  {}",
            side.what,
            side.seconds,
            rounds.median,
            rounds.most,
            side.cpu_seconds(),
            side.counts
        ));
    }
}

/// Fails where two sides did not do the same work.
fn agree(name: &str, ours: &Figures, theirs: &Figures) -> Result<()> {
    for (what, count) in [
        ("events", "/events"),
        ("sum of lengths", "/total_ns"),
        ("launches", "/launches"),
        ("values", "/values"),
    ] {
        let (a, b) = (ours.counts.pointer(count), theirs.counts.pointer(count));
        if a.is_some() && b.is_some() && a != b {
            bail!("{name}: the sides differ in {what}: {a:?} and {b:?}");
        }
    }
    Ok(())
}

/// Runs a bench; gives what it missed.
fn one(cache: &Cache, program: &Path, bench: &Bench, rounds: u32) -> Result<Vec<String>> {
    let Some(sides) = Sides::measure(cache, program, bench, rounds)? else {
        return Ok(Vec::new());
    };
    sides.tell(bench);
    Ok(hold(bench.name, (bench.judge)(&sides.ours, &sides.fastest)))
}

/// Says what is asked of the bench of that name; gives what it missed.
fn hold(name: &str, verdicts: Vec<Verdict>) -> Vec<String> {
    let mut missed = Vec::new();
    for verdict in verdicts {
        match verdict.budget {
            None => say(format_args!("  {}: {}", verdict.what, verdict.value)),
            Some((budget, met)) => {
                let word = if met { "met" } else { "MISSED" };
                say(format_args!(
                    "  {}: {} (budget {budget}: {word})",
                    verdict.what, verdict.value
                ));
                if !met {
                    missed.push(format!("{name} {}", verdict.what));
                }
            }
        }
    }
    missed
}

/// Our side of a job. An analysis gets the setting of the allocator that the agent's children have
/// (`agent/pipeline/src/steps.rs`).
fn our_side(program: &Path, arguments: &[&str]) -> Run {
    let run = Run::new(program).args(arguments);
    if arguments.first() == Some(&"analyze") {
        run.env("_RJEM_MALLOC_CONF", "dirty_decay_ms:-1")
    } else {
        run
    }
}

fn files(run: Run, out: Option<PathBuf>) -> Run {
    match out {
        Some(out) => run.arg(out),
        None => run,
    }
}

/// What else the machine has to do: figures that were taken beside other work say less.
fn load() -> String {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let minute = load.split(' ').next().unwrap_or("unknown");
    format!("{cores} cores, load {minute}")
}

/// How many times as fast, and whether that is enough; and what is told beside: the same round by
/// round, and of processor time.
fn speed(ours: &Figures, rival: &Figures, budget: &'static str, least: f64) -> [Verdict; 3] {
    let ratio = rival.seconds / ours.seconds;
    let cpu = rival.cpu_seconds() / ours.cpu_seconds();
    let rounds = ratios(&rival.rounds, &ours.rounds);
    [
        Verdict {
            what: "times as fast as the fastest rival",
            value: format!("{ratio:.1}"),
            budget: Some((budget, ratio >= least)),
        },
        Verdict {
            what: "the same round by round",
            value: format!("{:.1} to {:.1}, median {:.1}", rounds.least, rounds.most, rounds.median),
            budget: None,
        },
        Verdict {
            what: "times less processor time than the fastest rival",
            value: format!("{cpu:.1}"),
            budget: None,
        },
    ]
}
