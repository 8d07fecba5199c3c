//! Looks into the JSON of results.

use serde_json::Value;

/// The entries of a list.
pub(crate) fn list(value: &Value) -> std::slice::Iter<'_, Value> {
    value.as_array().unwrap().iter()
}

/// The first entry of a list that has this `value` in a field.
#[track_caller]
pub(crate) fn find<'a>(entries: &'a Value, field: &str, value: &str) -> &'a Value {
    let found = list(entries).find(|entry| entry[field] == value);
    found.unwrap_or_else(|| panic!("no {field} {value} in {entries}"))
}

/// What a result says in its fields of these names, as a list.
pub(crate) fn said(result: &Value, fields: &[&str]) -> Value {
    fields.iter().map(|field| result[*field].clone()).collect()
}

/// The whole numbers in a field of each entry of a list.
pub(crate) fn numbers(entries: &Value, field: &str) -> Vec<u64> {
    list(entries).map(|entry| entry[field].as_u64().unwrap()).collect()
}

/// The texts in a field of each entry of a list.
pub(crate) fn texts<'a>(entries: &'a Value, field: &str) -> Vec<&'a str> {
    list(entries).map(|entry| entry[field].as_str().unwrap()).collect()
}

#[track_caller]
pub(crate) fn assert_near(value: &Value, expected: f64, tolerance: f64) {
    let value = value.as_f64().unwrap();
    assert!((value - expected).abs() < tolerance, "{value} is not {expected}");
}
