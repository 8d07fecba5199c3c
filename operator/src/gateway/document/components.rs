//! Moves parameters and responses that several operations share into the components of the OpenAPI
//! document, and refers to them from the operations.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// The components of one kind, with how often each occurs.
#[derive(Default)]
struct ComponentCounts {
    /// The components by their JSON text.
    by_text: BTreeMap<String, Component>,
}

/// A parameter or response of at least one operation.
struct Component {
    part: Value,
    /// Number of operations that have it.
    times: usize,
    /// Position of its first occurrence among those of all components.
    first: usize,
    /// Its short name, and the name that it gets where another component has the short one.
    names: [String; 2],
}

impl ComponentCounts {
    fn count(&mut self, part: &Value, names: [String; 2]) {
        let first = self.by_text.len();
        let component = self.by_text.entry(part.to_string()).or_insert_with(|| Component {
            part: part.clone(),
            times: 0,
            first,
            names,
        });
        component.times += 1;
    }

    /// The components that occur more than once, by name, and the names by the components' texts.
    /// Of those with the same short name the most frequent one gets it.
    fn into_shared(self) -> (Map<String, Value>, BTreeMap<String, String>) {
        let components = self.by_text.into_iter();
        let mut shared: Vec<_> = components.filter(|(_, component)| component.times > 1).collect();
        shared.sort_by_key(|(_, component)| (Reverse(component.times), component.first));
        let (mut parts, mut names) = (Map::new(), BTreeMap::new());
        for (text, component) in shared {
            let free = component.names.into_iter().find(|name| !parts.contains_key(name));
            if let Some(name) = free {
                parts.insert(name.clone(), component.part);
                names.insert(text, name);
            }
        }
        (parts, names)
    }
}

/// Replaces shared parts in `paths` by references, and gives the shared responses and parameters,
/// each by name.
pub(super) fn extract_shared(paths: &mut Map<String, Value>) -> (Map<String, Value>, Map<String, Value>) {
    let (mut responses, mut parameters) = (ComponentCounts::default(), ComponentCounts::default());
    each(paths, |kind, id, name, part| {
        let letters = name.chars().filter(char::is_ascii_alphanumeric).collect::<String>();
        match kind {
            Kind::Response => responses.count(part, [format!("Status{letters}"), format!("{id}_{letters}")]),
            Kind::Parameter => parameters.count(part, [letters.clone(), format!("{id}_{letters}")]),
        }
    });
    let ((responses, of_responses), (parameters, of_parameters)) = (responses.into_shared(), parameters.into_shared());
    each(paths, |kind, _, _, part| {
        let (section, names) = match kind {
            Kind::Response => ("responses", &of_responses),
            Kind::Parameter => ("parameters", &of_parameters),
        };
        if let Some(name) = names.get(&part.to_string()) {
            *part = json!({"$ref": format!("#/components/{section}/{name}")});
        }
    });
    (responses, parameters)
}

#[derive(Clone, Copy)]
enum Kind {
    Response,
    Parameter,
}

/// Visits the parts of every operation: its kind, the operation's id, the status or the parameter's
/// name, and the part.
fn each(paths: &mut Map<String, Value>, mut visit: impl FnMut(Kind, &str, &str, &mut Value)) {
    let operations = paths.values_mut().filter_map(Value::as_object_mut);
    for operation in operations.flat_map(Map::values_mut) {
        let id = operation.get("operationId").and_then(Value::as_str);
        let id = id.unwrap_or_default().to_owned();
        if let Some(Value::Object(responses)) = operation.get_mut("responses") {
            for (status, response) in responses.iter_mut() {
                visit(Kind::Response, &id, status, response);
            }
        }
        if let Some(Value::Array(parameters)) = operation.get_mut("parameters") {
            for parameter in parameters {
                let name = parameter.get("name").and_then(Value::as_str);
                let name = name.unwrap_or_default().to_owned();
                visit(Kind::Parameter, &id, &name, parameter);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_several_times_stands_once_and_the_most_frequent_has_the_short_name() {
        let operation = |id: &str, limit: u32, answer: &str| json!({"operationId": id, "parameters": [{"name": "If-Range", "n": limit}], "responses": {"200": {"is": answer}}});
        let mut paths = Map::new();
        paths.insert(
            "/a".to_owned(),
            json!({"get": operation("a", 1, "a"), "head": operation("head_a", 1, "a")}),
        );
        paths.insert(
            "/b".to_owned(),
            json!({"get": operation("b", 2, "b"), "head": operation("head_b", 2, "b")}),
        );
        paths.insert("/c".to_owned(), json!({"get": operation("c", 2, "c")}));
        let (responses, parameters) = extract_shared(&mut paths);
        let expected = json!({"IfRange": {"name": "If-Range", "n": 2}, "a_IfRange": {"name": "If-Range", "n": 1}});
        assert_eq!(Value::from(parameters), expected);
        assert_eq!(
            Value::from(responses),
            json!({"Status200": {"is": "a"}, "b_200": {"is": "b"}})
        );
        assert_eq!(paths["/c"]["get"]["responses"], json!({"200": {"is": "c"}}));
        assert_eq!(
            paths["/c"]["get"]["parameters"],
            json!([{"$ref": "#/components/parameters/IfRange"}])
        );
        assert_eq!(
            paths["/a"]["head"]["responses"]["200"],
            json!({"$ref": "#/components/responses/Status200"})
        );
    }
}
