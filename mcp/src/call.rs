//! A call of a tool, as the program that serves gets it.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::error::ToolError;

/// A call of a tool. Its arguments are of the names that its description lists.
#[derive(Debug)]
pub struct Call {
    /// Name of the tool.
    pub tool: String,
    /// Canceled when nobody waits for the answer any more.
    pub until: CancellationToken,
    pub(crate) arguments: Map<String, Value>,
}

impl Call {
    /// Takes the arguments of these names out of the call, those that are there.
    pub fn take<'a>(&mut self, names: impl IntoIterator<Item = &'a String>) -> Map<String, Value> {
        let taken = names.into_iter();
        taken.filter_map(|name| self.arguments.remove_entry(name)).collect()
    }

    /// The arguments that are left, as `A` reads them.
    pub fn arguments<A: DeserializeOwned>(self) -> Result<A, ToolError> {
        serde_json::from_value(Value::Object(self.arguments)).map_err(|source| ToolError::Arguments {
            tool: self.tool,
            source,
        })
    }
}
