//! Parameters of an analysis: checked against its schema, in one canonical text.

use std::collections::BTreeMap;

use schemars::Schema;
use serde_json::{Map, Value};

/// Parameters by name, every one of the analysis.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Parameters(pub(crate) BTreeMap<String, Value>);

impl Parameters {
    pub(crate) fn to_value(&self) -> Value {
        Value::Object(self.0.clone().into_iter().collect())
    }

    /// JSON with sorted keys and no white space.
    pub(crate) fn canonical(&self) -> String {
        self.to_value().to_string()
    }
}

impl From<Value> for Parameters {
    fn from(value: Value) -> Self {
        match value {
            Value::Object(map) => Self(map.into_iter().collect()),
            _ => Self::default(),
        }
    }
}

/// The properties of a schema of parameters, each with its references resolved.
pub(crate) struct Properties {
    list: Map<String, Value>,
    definitions: Map<String, Value>,
}

impl Properties {
    pub(crate) fn of(schema: &Schema) -> Self {
        let part = |name| match schema.get(name) {
            Some(Value::Object(map)) => map.clone(),
            _ => Map::new(),
        };
        Self {
            list: part("properties"),
            definitions: part("$defs"),
        }
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.list.keys().cloned().collect()
    }

    /// The schema of a parameter. A reference to a definition gives what it refers to, with the
    /// description and default of the parameter itself.
    pub(crate) fn find(&self, name: &str) -> Option<Property> {
        let given = self.list.get(name)?;
        let target = given.get("$ref").and_then(Value::as_str);
        let target = target.and_then(|target| self.definitions.get(target.strip_prefix("#/$defs/")?));
        let Some(Value::Object(target)) = target else {
            return Some(Property(given.clone()));
        };
        let mut whole = target.clone();
        for (key, value) in given
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(key, _)| *key != "$ref")
        {
            whole.insert(key.clone(), value.clone());
        }
        Some(Property(Value::Object(whole)))
    }
}

/// The schema of one parameter.
pub(crate) struct Property(Value);

impl Property {
    pub(crate) const fn schema(&self) -> &Value {
        &self.0
    }

    fn is(&self, wanted: &str) -> bool {
        match self.0.get("type") {
            Some(Value::String(found)) => found == wanted,
            Some(Value::Array(found)) => found.iter().any(|found| found == wanted),
            _ => false,
        }
    }

    /// The words that are possible, where it is one of a closed set.
    fn words(&self) -> Option<Vec<&str>> {
        if let Some(Value::Array(words)) = self.0.get("enum") {
            return Some(words.iter().filter_map(Value::as_str).collect());
        }
        let Some(Value::Array(choices)) = self.0.get("oneOf") else {
            return None;
        };
        let words = choices.iter().filter_map(|choice| choice.get("const")?.as_str());
        Some(words.collect())
    }

    fn number(&self, name: &str) -> Option<f64> {
        self.0.get(name).and_then(Value::as_f64)
    }

    /// What is possible, for people.
    pub(crate) fn possible(&self) -> String {
        if let Some(words) = self.words() {
            return format!("one of {}", words.join(", "));
        }
        let kinds = [
            ("integer", "a whole number"),
            ("number", "a number"),
            ("boolean", "true or false"),
            ("array", "a list"),
            ("string", "a text"),
        ];
        let kind = kinds
            .iter()
            .find(|(kind, _)| self.is(kind))
            .map_or("a value", |(_, text)| text);
        let length = self.0.get("maxLength").and_then(Value::as_u64);
        match (self.number("minimum"), self.number("maximum"), length) {
            (Some(min), Some(max), _) => format!("{kind} from {min} to {max}"),
            (Some(min), None, _) => format!("{kind} of at least {min}"),
            (None, Some(max), _) => format!("{kind} of at most {max}"),
            (None, None, Some(length)) => format!("{kind} of at most {length} characters"),
            (None, None, None) => kind.to_owned(),
        }
    }

    /// Whether `value` is within the bounds; its type is checked by the analysis's own.
    pub(crate) fn allows(&self, value: &Value) -> bool {
        let number = value.as_f64();
        let below = self
            .number("minimum")
            .zip(number)
            .is_some_and(|(min, value)| value < min);
        let above = self
            .number("maximum")
            .zip(number)
            .is_some_and(|(max, value)| value > max);
        let longest = self.0.get("maxLength").and_then(Value::as_u64);
        let length = value.as_str().and_then(|text| u64::try_from(text.chars().count()).ok());
        let long = longest.zip(length).is_some_and(|(longest, length)| length > longest);
        !(below || above || long)
    }

    /// The value that a text of a command line or an address stands for.
    pub(crate) fn read(&self, text: &str) -> Value {
        let number = || serde_json::from_str::<serde_json::Number>(text).ok().map(Value::Number);
        let flag = || text.parse::<bool>().ok().map(Value::Bool);
        let plain = self.is("integer") || self.is("number");
        let read = if plain { number() } else { None };
        let read = read.or_else(|| if self.is("boolean") { flag() } else { None });
        read.unwrap_or_else(|| Value::String(text.to_owned()))
    }
}
