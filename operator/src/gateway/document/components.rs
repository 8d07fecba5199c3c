//! Parameters and answers that several operations have stand in the document once, with references to them.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// Parts of one kind.
#[derive(Default)]
struct Parts {
    found: BTreeMap<String, Found>,
}

/// A part, and where it was found.
struct Found {
    part: Value,
    times: usize,
    first: usize,
    /// What it is called if no other has that name, and what else.
    names: [String; 2],
}

impl Parts {
    fn see(&mut self, part: &Value, names: [String; 2]) {
        let first = self.found.len();
        let found = self.found.entry(part.to_string()).or_insert_with(|| Found {
            part: part.clone(),
            times: 0,
            first,
            names,
        });
        found.times += 1;
    }

    /// Those that were found more than once, by name, and their names by their texts. The most frequent one of a short name has it.
    fn named(self) -> (Map<String, Value>, BTreeMap<String, String>) {
        let mut several: Vec<_> = self.found.into_iter().filter(|(_, found)| found.times > 1).collect();
        several.sort_by_key(|(_, found)| (Reverse(found.times), found.first));
        let (mut parts, mut names) = (Map::new(), BTreeMap::new());
        for (text, found) in several {
            let free = found.names.into_iter().find(|name| !parts.contains_key(name));
            if let Some(name) = free {
                parts.insert(name.clone(), found.part);
                names.insert(text, name);
            }
        }
        (parts, names)
    }
}

/// Moves them out of `paths`; gives the responses and the parameters.
pub(super) fn take(paths: &mut Map<String, Value>) -> (Map<String, Value>, Map<String, Value>) {
    let (mut responses, mut parameters) = (Parts::default(), Parts::default());
    each(paths, |kind, id, name, part| {
        let letters = name.chars().filter(char::is_ascii_alphanumeric).collect::<String>();
        match kind {
            Kind::Response => responses.see(part, [format!("Status{letters}"), format!("{id}_{letters}")]),
            Kind::Parameter => parameters.see(part, [letters.clone(), format!("{id}_{letters}")]),
        }
    });
    let ((responses, of_responses), (parameters, of_parameters)) = (responses.named(), parameters.named());
    each(paths, |kind, _, _, part| {
        let (place, names) = match kind {
            Kind::Response => ("responses", &of_responses),
            Kind::Parameter => ("parameters", &of_parameters),
        };
        if let Some(name) = names.get(&part.to_string()) {
            *part = json!({"$ref": format!("#/components/{place}/{name}")});
        }
    });
    (responses, parameters)
}

#[derive(Clone, Copy)]
enum Kind {
    Response,
    Parameter,
}

/// Visits the parts of every operation: its kind, the operation's id, the status or the parameter's name, and the part.
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
        let (responses, parameters) = take(&mut paths);
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
