//! What came of an analysis.

use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Float64Builder, Int64Builder, StringBuilder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::ArrowError;
use flopwatch_analysis::Report;
use flopwatch_report::{CellType, Tabular};
use pyo3::prelude::*;
use serde_json::Value;

use super::errors::AnalysisError;
use super::table::Table;

/// A result as it was written, and what of it is a table.
#[pyclass(frozen, module = "flopwatch._native")]
pub(crate) struct Outcome {
    content: Vec<u8>,
    report: Report,
    tabular: Option<Tabular>,
}

impl Outcome {
    pub(crate) fn new(content: Vec<u8>, report: Report, tabular: Option<Tabular>) -> Self {
        Self {
            content,
            report,
            tabular,
        }
    }
}

#[pymethods]
impl Outcome {
    /// The bytes of the result; none where it went into a file.
    #[getter]
    fn content(&self) -> &[u8] {
        &self.content
    }

    /// The one word of the result, of analyses that have one.
    #[getter]
    fn verdict(&self) -> Option<&str> {
        self.report.verdict.as_deref()
    }

    /// What the capture holds and the format does not, as JSON.
    #[getter]
    fn left_out(&self) -> PyResult<String> {
        serde_json::to_string(&self.report.left_out).map_err(|error| AnalysisError::new_err(error.to_string()))
    }

    /// The rows of the result; `None` where it is no table.
    fn table(&self) -> PyResult<Option<Table>> {
        let Some(tabular) = &self.tabular else { return Ok(None) };
        let result: Value =
            serde_json::from_slice(&self.content).map_err(|error| AnalysisError::new_err(error.to_string()))?;
        let made = batch(tabular, &result).map_err(|error| AnalysisError::new_err(error.to_string()))?;
        Ok(Some(Table::new(made)))
    }
}

fn batch(tabular: &Tabular, result: &Value) -> Result<RecordBatch, ArrowError> {
    let rows = result
        .get("rows")
        .and_then(Value::as_array)
        .map_or(&[][..], Vec::as_slice);
    let columns = tabular.columns.iter().map(|column| {
        let cells = || rows.iter().map(|row| row.get(&column.name));
        let array: ArrayRef = match column.cells {
            // Differences may be below 0, and identifiers of 64 bits too large for a sign.
            CellType::Integer if cells().flatten().all(|cell| cell.is_u64() || cell.is_null()) => {
                let mut builder = UInt64Builder::with_capacity(rows.len());
                cells().for_each(|cell| builder.append_option(cell.and_then(Value::as_u64)));
                Arc::new(builder.finish())
            }
            CellType::Integer => {
                let mut builder = Int64Builder::with_capacity(rows.len());
                cells().for_each(|cell| builder.append_option(cell.and_then(Value::as_i64)));
                Arc::new(builder.finish())
            }
            CellType::Number => {
                let mut builder = Float64Builder::with_capacity(rows.len());
                cells().for_each(|cell| builder.append_option(cell.and_then(Value::as_f64)));
                Arc::new(builder.finish())
            }
            CellType::Boolean => {
                let mut builder = BooleanBuilder::with_capacity(rows.len());
                cells().for_each(|cell| builder.append_option(cell.and_then(Value::as_bool)));
                Arc::new(builder.finish())
            }
            CellType::Text => {
                let mut builder = StringBuilder::new();
                cells().for_each(|cell| builder.append_option(cell.and_then(Value::as_str)));
                Arc::new(builder.finish())
            }
        };
        (column.name.as_str(), array, true)
    });
    RecordBatch::try_from_iter_with_nullable(columns)
}
