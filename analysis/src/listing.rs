//! The catalogue for clients: what `analyze --list --format json` prints and the services list.

use flopwatch_report::{Column, Format};
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde_json::Value;

use crate::catalogue::CATALOGUE;
use crate::definition::{Definition, InputCount};
use crate::group::Group;

/// An entry of the catalogue.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Listing {
    /// Name of the analysis.
    pub name: &'static str,
    /// Its version: results of different versions may differ.
    pub version: u32,
    /// What people call it.
    pub title: &'static str,
    /// What it tells, in a sentence.
    pub about: &'static str,
    /// Which question it answers.
    pub group: Group,
    /// How many captures it is made of.
    pub inputs: InputCount,
    /// JSON schema of the parameters (draft 2020-12).
    pub parameters: Value,
    /// Media type of the result.
    pub media_type: &'static str,
    /// What a file of the result is called.
    pub file_name: String,
    /// Formats that the result can be written in; the first is that of the media type and the file
    /// name.
    pub formats: &'static [Format],
    /// JSON schema of the result (draft 2020-12); null of a result that is not JSON of a type.
    pub result: Option<Value>,
    /// Columns of the result's list `rows`; null where the result is no table.
    pub columns: Option<Vec<Column>>,
}

impl Listing {
    /// Of one definition.
    pub fn of(definition: &Definition) -> Self {
        Self {
            name: definition.name,
            version: definition.version,
            title: definition.title,
            about: definition.about,
            group: definition.group,
            inputs: definition.inputs,
            parameters: definition.parameter_schema().to_value(),
            media_type: definition.media_type(),
            file_name: definition.file_name(),
            formats: definition.formats(),
            result: definition.result_schema().map(Schema::to_value),
            columns: definition.tabular().map(|table| table.columns),
        }
    }

    /// Of every analysis, in published order.
    pub fn all() -> Vec<Self> {
        CATALOGUE.iter().map(|definition| Self::of(definition)).collect()
    }
}
