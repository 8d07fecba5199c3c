//! What a tool says of itself.

use std::sync::Arc;

use rmcp::model::{Tool, ToolAnnotations};
use schemars::{JsonSchema, schema_for};
use serde_json::{Map, Value};

use crate::view::View;

/// A tool as clients are told of it. Each is read-only.
#[derive(Debug, Clone)]
pub struct Description {
    name: &'static str,
    title: &'static str,
    about: String,
    schema: Map<String, Value>,
}

impl Description {
    /// A tool whose arguments are those of `A`, and those of [`View`], which every tool has.
    pub fn of<A: JsonSchema>(name: &'static str, title: &'static str, about: impl Into<String>) -> Self {
        let mut schema = schema_for!(A);
        let mut schema = schema.as_object_mut().cloned().unwrap_or_default();
        // What the root is called in Rust tells clients nothing.
        for noise in ["$schema", "title", "description"] {
            schema.remove(noise);
        }
        let view = schema_for!(View).to_value();
        let view = view.get("properties").and_then(Value::as_object).cloned();
        let about = about.into();
        Self {
            name,
            title,
            about,
            schema,
        }
        .with_arguments(view.unwrap_or_default())
    }

    /// The same with these arguments too, each with its schema. One that is there already is
    /// replaced.
    #[must_use]
    pub fn with_arguments(mut self, arguments: Map<String, Value>) -> Self {
        let properties = self.schema.entry("properties").or_insert_with(|| Map::new().into());
        if let Value::Object(properties) = properties {
            properties.extend(arguments);
        }
        self
    }

    /// Name of the tool.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Names of its arguments.
    pub fn arguments(&self) -> Vec<String> {
        let properties = self.schema.get("properties").and_then(Value::as_object);
        properties.into_iter().flat_map(Map::keys).cloned().collect()
    }

    pub(crate) fn tool(&self, reads_a_network: bool) -> Tool {
        let hints = ToolAnnotations::with_title(self.title)
            .read_only(true)
            .destructive(false)
            .idempotent(true)
            .open_world(reads_a_network);
        Tool::new(self.name, self.about.clone(), Arc::new(self.schema.clone()))
            .with_title(self.title)
            .with_annotations(hints)
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "its schema is what is looked at")]
    struct Arguments {
        /// The capture.
        file: String,
    }

    #[test]
    fn a_tool_has_its_own_arguments_those_of_the_view_and_further_ones() {
        let limit = json!({"type": "integer"});
        let further = Map::from_iter([("limit".to_owned(), limit)]);
        let description = Description::of::<Arguments>("open", "Open", "Opens.").with_arguments(further);
        let mut names = description.arguments();
        names.sort();
        assert_eq!(names, ["at", "file", "from", "limit", "max_bytes"]);
        let tool = description.tool(false);
        assert_eq!(tool.input_schema.get("required"), Some(&json!(["file"])));
        assert_eq!(tool.input_schema["properties"]["file"]["description"], "The capture.");
        assert_eq!(tool.annotations.and_then(|hints| hints.read_only_hint), Some(true));
    }
}
