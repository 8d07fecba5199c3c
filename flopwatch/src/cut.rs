//! What is told of files that end before their end, and are read all the same. Every figure of them
//! is of a part, so nothing, not even `--quiet`, hides it.

use std::io::Write as _;

use flopwatch_model::Loss;
use flopwatch_pipeline::analysis::Report;
use flopwatch_summary::Summary;

use crate::source::Source;

/// What is told of a file with this summary; `None` of a whole one.
pub(crate) fn of_summary(source: &Source, summary: &Summary) -> Option<String> {
    let is_cut = summary.drops.iter().any(Loss::is_of_a_cut_file);
    is_cut.then(|| warning(source, summary.total_events))
}

/// What is told of those of an analysis' files that were cut.
pub(crate) fn of_report(sources: &[Source], report: &Report) -> Vec<String> {
    let cut = report.cut.iter();
    let told = cut.filter_map(|cut| Some(warning(sources.get(cut.input)?, cut.events)));
    told.collect()
}

/// Says it on standard error; with that closed there is nobody to tell.
pub(crate) fn tell(warnings: impl IntoIterator<Item = String>) {
    let mut out = std::io::stderr().lock();
    for warning in warnings {
        drop(writeln!(out, "flopwatch: {warning}"));
    }
}

fn warning(source: &Source, events: u64) -> String {
    format!(
        "{}: ends before its end (events read: {events}): how many are missing cannot be told; take the whole file, or capture again",
        source.file.display()
    )
}
