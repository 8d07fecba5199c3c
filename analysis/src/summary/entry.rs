//! The summary as an entry of the catalogue.

use std::io::Write;

use flopwatch_model::{ColumnId, Needs, Selection};
use serde_json::{Map, Value};

use super::{Summary, VERSION, page, summarise};
use crate::definition::{Analysis, AnalysisError, InputCount, NoParameters, write_as};
use crate::format::Format;
use crate::input::Inputs;
use crate::page::{Heading, Page};

/// Rows per table of a summary that is printed for people.
const TOP: usize = 10;

/// The tables of a capture: [`summarise`].
#[derive(Debug)]
pub(crate) struct SummaryAnalysis;

impl Analysis for SummaryAnalysis {
    const NAME: &'static str = super::NAME;
    const VERSION: u32 = VERSION;
    const ABOUT: &'static str = "Tables per name, GPU busy time, and what is missing.";
    const INPUTS: InputCount = InputCount::One;
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

    fn text(output: &Summary) -> Result<String, AnalysisError> {
        Ok(output.render(TOP))
    }

    fn csv(output: &Summary) -> Result<String, AnalysisError> {
        Ok(output.to_csv(usize::MAX))
    }

    /// As the artifact is written.
    fn write(output: &Summary, out: &mut dyn Write) -> Result<(), AnalysisError> {
        serde_json::to_writer_pretty(out, output).map_err(AnalysisError::Json)
    }
}

impl Summary {
    /// Writes a summary that was read as the analysis writes one that it makes.
    pub fn write_as(&self, format: Format, out: &mut dyn Write) -> Result<(), AnalysisError> {
        let heading = Heading {
            session: self.session_id.clone(),
            tool: self.source.tool.clone(),
            tool_version: self.source.tool_version.clone(),
            gpus: self.gpus.iter().map(|gpu| gpu.name.clone()).collect(),
            window_ns: self.window_ns,
            session_start_utc_ns: self.session_start_utc_ns,
            events: self.total_events,
            drops: self.drops.clone(),
            redactions: self.redactions,
        };
        write_as::<SummaryAnalysis>(self, &Value::Object(Map::new()), vec![heading], format, out)
    }
}
