//! Other people's captures, each of which is read within a second.

use super::{Figures, best, measure, spread};
use anyhow::{Result, bail};
use flopwatch_toolchain::command::{Run, interrupted};
use flopwatch_toolchain::progress::say;
use flopwatch_toolchain::project;
use std::path::{Path, PathBuf};

/// Name of the bench on the command line.
pub(super) const NAME: &str = "corpus";

/// How the names of files end that are read.
const READ: [&str; 6] = [".json", ".json.gz", ".xplane.pb", ".sqlite", ".qdrep", ".nsys-rep"];

const BUDGET_SECONDS: f64 = 1.0;

/// Reads every file, and gives the names of those that took too long.
pub(super) fn run(program: &Path, rounds: u32) -> Result<Vec<String>> {
    let Some(corpus) = project::corpus()? else {
        say("corpus: skipped, there is no ../shared/corpus beside the repository");
        return Ok(Vec::new());
    };
    let mut files = Vec::new();
    collect(&corpus, &mut files)?;
    files.sort();
    say("\nnsys, Kineto and XPlane files of the corpus: to columns");
    let mut missed = Vec::new();
    for file in files {
        let name = file.strip_prefix(&corpus).unwrap_or(&file).display().to_string();
        if !READ.iter().any(|ending| name.ends_with(ending)) {
            continue;
        }
        let mut figures: Option<Figures> = None;
        for _ in 0..rounds.max(1) {
            if interrupted() {
                bail!("interrupted");
            }
            best(&mut figures, measure(&name, Run::new(program).arg("read").arg(&file))?);
        }
        let Some(figures) = figures else { continue };
        let met = figures.seconds < BUDGET_SECONDS;
        let word = if met { "met" } else { "MISSED" };
        let (seconds, events) = (figures.seconds, figures.count("/events"));
        say(format_args!(
            "  {name:<58} {events:>7} events {seconds:>7.3} s, slowest {:.3} s (budget 1 s: {word})",
            spread(&figures.rounds).most
        ));
        if !met {
            missed.push(format!("{NAME} {name}"));
        }
    }
    Ok(missed)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
