//! The result of an analysis whose type is no longer named: writing it is compiled once, and not
//! for each analysis.

use std::io::{self, Write};

use flopwatch_report::page::{self, Document, Heading, Page};
use flopwatch_report::{Format, Layout};
use serde_json::Value;

use crate::definition::{Analysis, AnalysisError};

/// A result and what its analysis says of it.
pub(crate) trait Outcome {
    /// [`Analysis::NAME`] and [`Analysis::VERSION`].
    fn made_by(&self) -> (&'static str, u32);
    /// [`Analysis::verdict`].
    fn verdict(&self) -> Option<&'static str>;
    /// [`Analysis::page`].
    fn page(&self) -> Result<Page, AnalysisError>;
    /// [`Analysis::text`].
    fn text(&self, layout: Layout) -> Result<String, AnalysisError>;
    /// [`Analysis::csv`].
    fn csv(&self) -> Result<String, AnalysisError>;
    /// [`Analysis::write`].
    fn write(&self, out: &mut dyn Write) -> Result<(), AnalysisError>;
}

/// The result of the analysis `A`.
pub(crate) struct AnalysisOutcome<A: Analysis>(pub(crate) A::Output);

impl<A: Analysis> Outcome for AnalysisOutcome<A> {
    fn made_by(&self) -> (&'static str, u32) {
        (A::NAME, A::VERSION)
    }

    fn verdict(&self) -> Option<&'static str> {
        A::verdict(&self.0)
    }

    fn page(&self) -> Result<Page, AnalysisError> {
        A::page(&self.0)
    }

    fn text(&self, layout: Layout) -> Result<String, AnalysisError> {
        A::text(&self.0, layout)
    }

    fn csv(&self) -> Result<String, AnalysisError> {
        A::csv(&self.0)
    }

    fn write(&self, out: &mut dyn Write) -> Result<(), AnalysisError> {
        A::write(&self.0, out)
    }
}

/// Writes a result on the captures `inputs` in a format; a text for what it is written on.
pub(crate) fn write_as(
    outcome: &dyn Outcome,
    parameters: &Value,
    inputs: Vec<Heading>,
    format: Format,
    layout: Layout,
    out: &mut dyn Write,
) -> Result<(), AnalysisError> {
    let document = || -> Result<Document, AnalysisError> {
        let (analysis, version) = outcome.made_by();
        Ok(Document {
            analysis: analysis.to_owned(),
            version,
            parameters: page::settings(parameters),
            inputs,
            page: outcome.page()?,
        })
    };
    let mut out = io::BufWriter::new(out);
    match format {
        Format::Json => outcome.write(&mut out)?,
        Format::Page => serde_json::to_writer(&mut out, &document()?).map_err(AnalysisError::Json)?,
        Format::Html => out.write_all(page::html::render(&document()?).as_bytes())?,
        Format::Csv => out.write_all(outcome.csv()?.as_bytes())?,
        Format::Text => out.write_all(outcome.text(layout)?.as_bytes())?,
    }
    out.flush()?;
    Ok(())
}
