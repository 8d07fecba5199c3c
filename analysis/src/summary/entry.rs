//! The summary as an entry of the catalogue.

use std::io::Write;

use super::{Summary, VERSION, summarise};
use crate::definition::{Analysis, AnalysisError, InputCount, NoParameters};
use crate::input::Inputs;
use crate::model::ColumnId;
use crate::needs::{Needs, Selection};

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

    /// As the artifact is written.
    fn write(output: &Summary, out: &mut dyn Write) -> Result<(), AnalysisError> {
        serde_json::to_writer_pretty(out, output).map_err(AnalysisError::Json)
    }
}
