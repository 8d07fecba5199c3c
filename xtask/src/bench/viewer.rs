//! The viewer in a headless Chromium, on a usual capture and on a large one, served by
//! `flopwatch serve`. Graphics are a GPU's where there is one, otherwise software.

use super::load;
use crate::web;
use anyhow::{Context as _, Result, bail};
use clap::Args;
use flopwatch_toolchain::cache::Cache;
use flopwatch_toolchain::command::Run;
use flopwatch_toolchain::progress::{say, step};
use flopwatch_toolchain::{debian, project};
use serde_json::Value;
use std::path::Path;

const PROGRAM: &str = "flopwatch";

/// How it is measured.
#[derive(Debug, Args)]
pub(crate) struct ViewerOptions {
    /// How often each file is opened; the best of each figure counts.
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Fail when a budget is missed.
    #[arg(long)]
    strict: bool,
}

/// A file, and what is asked of the figures.
struct File {
    name: &'static str,
    what: &'static str,
    /// How many kernels, copies and ranges.
    events: [&'static str; 3],
    budgets: &'static [Budget],
}

/// A figure of the measuring script, and the most that it may be.
struct Budget {
    what: &'static str,
    figure: &'static str,
    unit: Unit,
    most: Option<f64>,
}

#[derive(Clone, Copy)]
enum Unit {
    Milliseconds,
    Kilobytes,
    Plain,
}

impl Unit {
    fn text(self, value: f64) -> String {
        match self {
            Self::Milliseconds => format!("{value:.1} ms"),
            Self::Kilobytes => format!("{:.1} kB", value / 1000.0),
            Self::Plain => format!("{value}"),
        }
    }
}

const fn asked(what: &'static str, figure: &'static str, unit: Unit, most: f64) -> Budget {
    Budget {
        what,
        figure,
        unit,
        most: Some(most),
    }
}

const fn told(what: &'static str, figure: &'static str, unit: Unit) -> Budget {
    Budget {
        what,
        figure,
        unit,
        most: None,
    }
}

const fn told_ms(what: &'static str, figure: &'static str) -> Budget {
    told(what, figure, Unit::Milliseconds)
}

const SCRIPTS: Budget = asked("scripts, gzip", "scriptBytes", Unit::Kilobytes, 60_000.0);
const FRAME: Budget = asked(
    "script per frame of zooming and moving, 95th percentile, the page's thread",
    "frameScriptCpuP95",
    Unit::Milliseconds,
    4.0,
);
const FRAME_MEDIAN: Budget = told_ms("the same, median", "frameScriptCpuMedian");
const DRAWS: Budget = asked("draws per frame", "draws", Unit::Plain, 2.0);
const OPENED: Budget = told_ms(
    "from the page's opening to the first picture, by the wall",
    "firstPaint",
);
const OPEN_CPU: Budget = told_ms("script until then, the page's thread", "openScriptCpu");
/// Where the time goes, each by the wall; the parts run side by side.
const PARTS: [Budget; 6] = [
    told_ms("of that: fetching", "fetch"),
    told_ms("of that: inflating", "unpack"),
    told_ms("of that: making the view's rectangles", "view"),
    told_ms("of that: graphics, the page's context", "context"),
    told_ms("of that: graphics, the program", "program"),
    told_ms("from the first picture's drawing until it is seen", "paintToSeen"),
];
/// The same in a browser whose graphics only start, and what these take without the viewer.
const COLD: [Budget; 5] = [
    told_ms(
        "graphics of a browser that was just started, a context on an empty page",
        "bareContext",
    ),
    told_ms("graphics of such a browser, until it is seen", "bareSeen"),
    told_ms(
        "in such a browser: from opening the file to the first picture",
        "coldOpenToPaint",
    ),
    told_ms(
        "in such a browser: first picture after the bytes are there",
        "coldBytesToPaint",
    ),
    told_ms("in such a browser: the page's context", "coldContext"),
];
/// Opened once more.
const SECOND_OPENING_BUDGETS: [Budget; 4] = [
    asked("opened again: chunks inflated", "againUnpacked", Unit::Plain, 0.0),
    told("opened again: fetched", "againBytesAtFirstPaint", Unit::Kilobytes),
    told("opened again: requests", "againRequestsAtFirstPaint", Unit::Plain),
    told_ms(
        "opened again: from opening the file to the first picture, by the wall",
        "againOpenToPaint",
    ),
];
/// Measured where a GPU draws.
const FRAMES: [Budget; 2] = [
    told("frames per second of zooming", "framesPerSecond", Unit::Plain),
    told_ms("between two of these frames, 95th percentile", "frameGapP95"),
];
const HEAP: Budget = asked("heap of page and worker", "heapBytes", Unit::Kilobytes, 300e6);
const BUFFERS: Budget = told("buffers of page and worker", "bufferBytes", Unit::Kilobytes);
const FETCHED: Budget = asked("fetched for the first view", "bytesAtFirstPaint", Unit::Kilobytes, 3e6);
const REQUESTS: Budget = told("requests for it", "requestsAtFirstPaint", Unit::Plain);
const AFTER_BYTES: Budget = asked(
    "first picture after the bytes are there, by the wall",
    "bytesToPaint",
    Unit::Milliseconds,
    200.0,
);
const FIRST: Budget = asked(
    "from opening the file to the first picture, by the wall",
    "openToPaint",
    Unit::Milliseconds,
    500.0,
);

const FILES: [File; 2] = [
    File {
        name: "236k",
        what: "236 k events (120 k kernels, 60 k copies, 56 k NVTX ranges)",
        events: ["120000", "60000", "56000"],
        budgets: &[
            SCRIPTS,
            AFTER_BYTES,
            OPENED,
            OPEN_CPU,
            FETCHED,
            FRAME,
            FRAME_MEDIAN,
            DRAWS,
            HEAP,
            BUFFERS,
        ],
    },
    File {
        name: "10m",
        what: "10 M events (6 M kernels, 2 M copies, 2 M NVTX ranges)",
        events: ["6000000", "2000000", "2000000"],
        budgets: &[
            FIRST,
            OPENED,
            OPEN_CPU,
            FETCHED,
            REQUESTS,
            FRAME,
            FRAME_MEDIAN,
            DRAWS,
            HEAP,
            BUFFERS,
        ],
    },
];

/// Makes the files, and measures the viewer on each.
pub(crate) fn run(cache: &Cache, options: &ViewerOptions) -> Result<()> {
    debian::install(debian::BROWSER)?;
    step("building the viewer", || web::build(cache))?;
    let bench = step("building the bench program", super::build)?;
    let binaries = step("building flopwatch", || project::build_binaries(&[PROGRAM]))?;
    let program = binaries.get(PROGRAM).context("cargo built no flopwatch")?;
    let folder = cache.root().join("bench/viewer");
    std::fs::create_dir_all(&folder)?;
    let mut missed = Vec::new();
    for file in &FILES {
        let [export, timeline] = ["export.h5", "timeline.h5"].map(|end| folder.join(format!("{}.{end}", file.name)));
        if !timeline.exists() {
            step(&format!("{}: input", file.name), || {
                let part = folder.join(format!("{}.part.h5", file.name));
                let [kernels, copies, ranges] = file.events;
                let make = Run::new(&bench).arg("make-export").arg(&export);
                make.args(["--kernels", kernels, "--copies", copies, "--ranges", ranges])
                    .quiet()?;
                Run::new(&bench).arg("convert").arg(&export).arg(&part).quiet()?;
                std::fs::remove_file(&export)?;
                Ok(std::fs::rename(&part, &timeline)?)
            })?;
        }
        // What an earlier round made may have an earlier layout.
        let fresh = folder.join(format!("{}.h5", file.name));
        Run::new(program)
            .args(["convert", "--quiet", "--force"])
            .arg(&timeline)
            .arg(&fresh)
            .quiet()?;
        missed.extend(one(cache, program, file, &fresh, options.rounds)?);
    }
    if options.strict && !missed.is_empty() {
        bail!("budgets missed: {}", missed.join(", "));
    }
    Ok(())
}

fn one(cache: &Cache, program: &Path, file: &File, timeline: &Path, rounds: u32) -> Result<Vec<String>> {
    let mut runs = Vec::new();
    for _ in 0..rounds.max(1) {
        let line = web::measure(cache, program, timeline)?;
        let figures: Value = serde_json::from_str(line.trim()).with_context(|| format!("the viewer said {line:?}"))?;
        runs.push(figures);
    }
    let renderer = runs.last().and_then(|run| run.get("renderer")?.as_str());
    let renderer = renderer.context("the viewer does not say what drew it")?;
    say(format_args!(
        "\nviewer, drawn by {renderer}, {} ({})",
        file.what,
        load()
    ));
    let least = |budget: &Budget| {
        let values = runs.iter().filter_map(|run| run.get(budget.figure)?.as_f64());
        values.min_by(f64::total_cmp)
    };
    // Software tells nothing of how many frames a GPU draws.
    let frames = FRAMES.iter().filter(|budget| least(budget).is_some());
    let mut missed = Vec::new();
    for budget in file
        .budgets
        .iter()
        .chain(&PARTS)
        .chain(&COLD)
        .chain(&SECOND_OPENING_BUDGETS)
        .chain(frames)
    {
        let value = least(budget).with_context(|| format!("the figure {:?} is missing", budget.figure))?;
        let text = budget.unit.text(value);
        let Some(most) = budget.most else {
            say(format_args!("  {}: {text}", budget.what));
            continue;
        };
        let met = value <= most;
        let word = if met { "met" } else { "MISSED" };
        let most = budget.unit.text(most);
        say(format_args!("  {}: {text} (budget {most}: {word})", budget.what));
        if !met {
            missed.push(format!("{} {}", file.name, budget.what));
        }
    }
    Ok(missed)
}
