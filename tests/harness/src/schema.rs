//! What of a custom resource's schema is held against objects: the bounds of numbers.

use serde_json::Value;

/// The first number that is out of the bounds of its schema, in the words of an API server. `path`
/// leads to `value`.
pub(crate) fn out_of_bounds(schema: &Value, value: &Value, path: &str) -> Option<String> {
    match value {
        Value::Number(number) => {
            let number = number.as_f64()?;
            let least = schema["minimum"].as_f64().filter(|least| number < *least);
            let most = schema["maximum"].as_f64().filter(|most| number > *most);
            let bound = least.map(|least| format!("greater than or equal to {least}"));
            let bound = bound.or_else(|| most.map(|most| format!("less than or equal to {most}")))?;
            Some(format!("{path}: Invalid value: {value}: should be {bound}"))
        }
        Value::Object(fields) => fields.iter().find_map(|(name, field)| {
            let path = format!("{path}.{name}");
            out_of_bounds(&schema["properties"][name], field, path.trim_start_matches('.'))
        }),
        Value::Array(items) => {
            let mut items = items.iter().enumerate();
            items.find_map(|(at, item)| out_of_bounds(&schema["items"], item, &format!("{path}[{at}]")))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_number_is_held_against_the_bounds_of_its_own_field() {
        let seconds = json!({"minimum": 1.0, "maximum": 300.0});
        let schema = json!({"properties": {"spec": {"properties": {
            "seconds": seconds, "list": {"items": {"properties": {"seconds": seconds}}}
        }}}});
        for (spec, expected) in [
            (json!({"seconds": 1}), None),
            (json!({"seconds": 300, "other": 301, "list": [{}]}), None),
            (
                json!({"seconds": 301}),
                Some("spec.seconds: Invalid value: 301: should be less than or equal to 300"),
            ),
            (
                json!({"list": [{"seconds": 5}, {"seconds": 0}]}),
                Some("spec.list[1].seconds: Invalid value: 0: should be greater than or equal to 1"),
            ),
        ] {
            assert_eq!(
                out_of_bounds(&schema, &json!({"spec": spec}), "").as_deref(),
                expected,
                "{spec}"
            );
        }
    }
}
