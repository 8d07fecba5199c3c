//! The summary as an entry of the catalogue.

mod page;

use std::io::Write;

use flopwatch_model::{ColumnId, Needs, Selection};
use flopwatch_report::page::{Heading, Page};
use flopwatch_report::{Format, Layout};
use flopwatch_summary::{NAME, Summary, VERSION, summarise};
use serde_json::{Map, Value};

use crate::definition::{Analysis, AnalysisError, NoParameters};
use crate::input::Inputs;
use crate::outcome::{AnalysisOutcome, write_as};

/// Rows per table of a summary that is printed for people.
const MAX_TABLE_ROWS: usize = 10;

/// The tables of a capture: [`summarise`].
#[derive(Debug)]
pub struct SummaryAnalysis;

impl Analysis for SummaryAnalysis {
    const NAME: &'static str = NAME;
    const VERSION: u32 = VERSION;
    const ABOUT: &'static str = "Tables per name, GPU busy time, and what is missing.";
    const TITLE: &'static str = "Summary";
    const NEEDS: Needs = Needs {
        columns: Selection::Only(&[ColumnId::Bytes, ColumnId::RangeStyle, ColumnId::Launch]),
        name_details: false,
        allocations: false,
        programs: false,
        lanes: false,
        correlations: false,
        counters: false,
        ..Needs::EVERYTHING
    };
    type Params = NoParameters;
    type Output = Summary;

    fn run(inputs: &Inputs<'_>, _params: &NoParameters) -> Result<Summary, AnalysisError> {
        Ok(summarise(inputs.first()))
    }

    fn page(output: &Summary) -> Result<Page, AnalysisError> {
        Ok(page::page(output))
    }

    fn text(output: &Summary, layout: Layout) -> Result<String, AnalysisError> {
        Ok(output.render_on(MAX_TABLE_ROWS, layout))
    }

    fn csv(output: &Summary) -> Result<String, AnalysisError> {
        Ok(output.to_csv(usize::MAX))
    }

    /// As the artifact is written.
    fn write(output: &Summary, out: &mut dyn Write) -> Result<(), AnalysisError> {
        serde_json::to_writer_pretty(out, output).map_err(AnalysisError::Json)
    }
}

/// Writes a summary that was read as the analysis writes one that it makes.
pub fn write(summary: Summary, format: Format, layout: Layout, out: &mut dyn Write) -> Result<(), AnalysisError> {
    let heading = Heading {
        session: summary.session_id.clone(),
        tool: summary.source.tool.clone(),
        tool_version: summary.source.tool_version.clone(),
        gpus: summary.gpus.iter().map(|gpu| gpu.name.clone()).collect(),
        window_ns: summary.window_ns,
        session_start_utc_ns: summary.session_start_utc_ns,
        events: summary.total_events,
        drops: summary.drops.clone(),
        redactions: summary.redactions,
    };
    let made = AnalysisOutcome::<SummaryAnalysis>(summary);
    write_as(&made, &Value::Object(Map::new()), vec![heading], format, layout, out)
}
