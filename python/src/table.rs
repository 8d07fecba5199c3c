//! A table that other libraries take as it is, by Arrow's C interface in a capsule.

use arrow_array::cast::AsArray as _;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch, RecordBatchIterator};
use arrow_schema::{ArrowError, DataType};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::errors::FlopwatchError;

/// Columns of equal length, which nobody changes.
#[pyclass(frozen, module = "flopwatch._native")]
pub(crate) struct Table {
    batch: RecordBatch,
}

impl Table {
    pub(crate) fn new(batch: RecordBatch) -> Self {
        Self { batch }
    }

    /// The table that was made, or the exception.
    pub(crate) fn of(made: Result<RecordBatch, ArrowError>) -> PyResult<Self> {
        made.map(Self::new)
            .map_err(|error| FlopwatchError::new_err(error.to_string()))
    }
}

#[pymethods]
impl Table {
    /// The table as a stream of Arrow's C interface: `polars.DataFrame(table)`,
    /// `pyarrow.table(table)`, DuckDB and pandas call it. They share its memory.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // Another schema is a wish, which the protocol allows to leave.
        drop(requested_schema);
        let batches = RecordBatchIterator::new([Ok(self.batch.clone())], self.batch.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// How many rows.
    #[getter]
    fn num_rows(&self) -> usize {
        self.batch.num_rows()
    }

    /// Names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.batch
            .schema()
            .fields()
            .iter()
            .map(|field| field.name().clone())
            .collect()
    }

    /// Types of the columns, as Arrow writes them.
    #[getter]
    fn column_types(&self) -> Vec<String> {
        self.batch
            .schema()
            .fields()
            .iter()
            .map(|field| field.data_type().to_string())
            .collect()
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    /// The first rows, each value as a text; `None` where there is none.
    fn first(&self, rows: usize) -> Vec<Vec<Option<String>>> {
        let shown = 0..self.batch.num_rows().min(rows);
        let of = |row| {
            self.batch
                .columns()
                .iter()
                .map(move |column| text(column, row))
                .collect()
        };
        shown.map(of).collect()
    }

    fn __repr__(&self) -> String {
        let (rows, columns) = (self.batch.num_rows(), self.column_names().join(", "));
        format!("<Table of {rows} rows: {columns}>")
    }

    /// What a notebook shows.
    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let shown = slf.py().import("flopwatch.notebook.tables")?;
        shown.call_method1("html", (slf,))
    }
}

/// A value as people read it, of the types that tables have.
fn text(column: &dyn Array, row: usize) -> Option<String> {
    if column.is_null(row) {
        return None;
    }
    Some(match column.data_type() {
        DataType::UInt32 => column.as_primitive_opt::<UInt32Type>()?.value(row).to_string(),
        DataType::UInt64 => column.as_primitive_opt::<UInt64Type>()?.value(row).to_string(),
        DataType::Int64 => column.as_primitive_opt::<Int64Type>()?.value(row).to_string(),
        DataType::Float64 => column.as_primitive_opt::<Float64Type>()?.value(row).to_string(),
        DataType::Boolean => column.as_boolean_opt()?.value(row).to_string(),
        DataType::Utf8 => column.as_string_opt::<i32>()?.value(row).to_owned(),
        DataType::Dictionary(..) => {
            let dictionary = column.as_dictionary_opt::<UInt32Type>()?;
            return text(dictionary.values(), dictionary.key(row)?);
        }
        _ => return None,
    })
}
