//! A report of Nsight Systems that is recorded here, beside an export of it by nsys and our reading
//! of that.

use super::recorder::{ranges_program, recording_ranges};
use super::{Figures, Verdict, agree, best, hold, measure, speed, tell};
use anyhow::{Context as _, Result, bail};
use flopwatch_toolchain::cache::Cache;
use flopwatch_toolchain::command::{Run, interrupted};
use flopwatch_toolchain::nsys::{self, Nsys};
use flopwatch_toolchain::progress::{say, step};
use std::path::{Path, PathBuf};

/// Name of the bench on the command line.
pub(super) const NAME: &str = "nsys-report";

/// NVTX ranges of the report.
const RANGES: &str = "540000";

/// Reads a report by turns as it is and through an export, and gives what was missed.
pub(super) fn run(cache: &Cache, program: &Path, rounds: u32) -> Result<Vec<String>> {
    let Some(nsys) = nsys::find(cache)? else {
        say(format_args!(
            "{NAME}: skipped, no Nsight Systems is installed (cargo xtask setup fetches one)"
        ));
        return Ok(Vec::new());
    };
    let folder = cache.root().join("bench").join(NAME);
    std::fs::create_dir_all(&folder)?;
    let report = step(&format!("{NAME}: input"), || record(&nsys, &folder))?;
    let mut ours: Option<Figures> = None;
    let mut theirs: Option<Figures> = None;
    for _ in 0..rounds.max(1) {
        if interrupted() {
            bail!("interrupted");
        }
        let run = Run::new(program).arg("read").arg(&report);
        best(&mut ours, measure("ours", run)?);
        let run = Run::new(program).arg("read-exported").arg(&report);
        let run = run.arg(folder.join("report.h5")).arg("--nsys").arg(nsys.program());
        best(&mut theirs, measure("nsys export to HDF5, ours of that", run)?);
    }
    let ours = ours.context("no run of ours")?;
    let theirs = theirs.context("no run through an export")?;
    agree(NAME, &ours, &theirs)?;
    tell(
        "A report of Nsight Systems with 540,000 NVTX ranges: to columns",
        [&ours, &theirs],
    );
    let peak = |figures: &Figures| figures.peak_bytes / 1_000_000;
    let mut verdicts = Vec::from(speed(&ours, &theirs, "10", 10.0));
    verdicts.push(Verdict {
        what: "peak of memory, beside that through an export",
        value: format!("{} MB, {} MB", peak(&ours), peak(&theirs)),
        budget: Some(("no more", ours.peak_bytes <= theirs.peak_bytes)),
    });
    Ok(hold(NAME, verdicts))
}

/// Records a program with so many ranges.
fn record(nsys: &Nsys, folder: &Path) -> Result<PathBuf> {
    let program = ranges_program(nsys, folder)?;
    let report = folder.join("report.nsys-rep");
    recording_ranges(&nsys.program(), &report)
        .arg(program)
        .args(["1", RANGES])
        .quiet()?;
    Ok(report)
}
