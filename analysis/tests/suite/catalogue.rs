//! The catalogue as its clients find it.

use std::collections::BTreeSet;

use flopwatch_analysis::catalogue::{CATALOGUE, artifact, artifacts, find};
use flopwatch_analysis::{Definition, Group, Input, Request, RequestError, ResultType};
use flopwatch_model::Timeline;
use flopwatch_report::{CellType, Format};
use proptest::prelude::*;
use serde_json::{Value, json};

fn request(name: &str, parameters: &Value) -> Result<Request, RequestError> {
    Request::parse(name, parameters)
}

#[test]
fn names_are_short_unique_and_kebab_case_unless_they_are_those_of_nsys() {
    let names: BTreeSet<&str> = CATALOGUE.iter().map(|definition| definition.name).collect();
    assert_eq!(names.len(), CATALOGUE.len());
    for name in names {
        let is_kebab = name
            .split(if name.contains('_') { '_' } else { '-' })
            .all(|word| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit()));
        assert!(is_kebab && name.len() <= Definition::LONGEST_NAME, "{name}");
        assert_eq!(find(name).map(|definition| definition.name), Some(name));
    }
}

#[test]
fn every_analysis_has_a_title_of_its_own_and_tables_of_nsys_are_called_as_there() {
    let titles: BTreeSet<&str> = CATALOGUE.iter().map(|definition| definition.title).collect();
    assert_eq!(titles.len(), CATALOGUE.len());
    for definition in CATALOGUE {
        let is_nsys_table = definition.group == Group::NsysTables;
        assert_eq!(
            definition.title == definition.name,
            is_nsys_table,
            "{}",
            definition.name
        );
        let is_file = matches!(definition.result, ResultType::File { .. });
        assert_eq!(definition.group == Group::Exports, is_file, "{}", definition.name);
    }
    for group in Group::ALL {
        assert!(
            CATALOGUE.iter().any(|definition| definition.group == *group),
            "{group:?}"
        );
    }
}

#[test]
fn a_page_is_headed_by_the_title_of_its_analysis() {
    let nothing = Timeline::default();
    let inputs = [Input::whole(&nothing)];
    for definition in CATALOGUE {
        let is_json = matches!(definition.result, ResultType::Json { .. });
        // That of a profile of operations is the dashboard of `operations`.
        if !is_json || !definition.inputs.accepts(inputs.len()) || definition.name == "operations-profile" {
            continue;
        }
        let asked = request(definition.name, &Value::Null).unwrap();
        let mut made = Vec::new();
        asked.written_as(Format::Page).unwrap().run(&inputs, &mut made).unwrap();
        let document: Value = serde_json::from_slice(&made).unwrap();
        assert_eq!(document["page"]["title"], definition.title, "{}", definition.name);
    }
}

#[test]
fn older_file_names_are_requests_and_no_stored_artifact_is_one() {
    let older = [
        ("timeline.csv", "text/csv; charset=utf-8"),
        ("timeline.parquet", "application/vnd.apache.parquet"),
        ("samples.csv", "text/csv; charset=utf-8"),
        ("samples.parquet", "application/vnd.apache.parquet"),
        ("timeline.json.gz", "application/gzip"),
        ("timeline.pftrace", "application/vnd.perfetto.trace"),
    ];
    assert_eq!(
        artifacts().map(|(name, _)| name).collect::<Vec<_>>(),
        older.map(|(name, _)| name)
    );
    for (name, media_type) in older {
        let definition = artifact(name).unwrap().definition();
        assert_eq!(
            (definition.file_name().as_str(), definition.media_type()),
            (name, media_type)
        );
        assert!(!definition.is_absent(0), "{name}");
    }
    // The counters of kernels say by a file of no bytes that there are none.
    let counters = find("kernel-counters").unwrap();
    assert!(counters.is_absent(0) && !counters.is_absent(1));
    for name in [
        "timeline.h5",
        "summary.json",
        "capture.nsys-rep",
        "timeline.xml",
        "events.json",
        "kernels.json",
        "kernels-per-stream.json",
    ] {
        assert!(artifact(name).is_none(), "{name}");
    }
}

#[test]
fn every_parameter_has_a_default_a_plain_type_and_a_description() {
    for definition in CATALOGUE {
        let schema = definition.parameter_schema();
        assert_eq!(
            schema.get("additionalProperties"),
            Some(&json!(false)),
            "{}",
            definition.name
        );
        assert_eq!(schema.get("required"), None, "{}", definition.name);
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, property) in properties.into_iter().flatten() {
            assert!(property.get("description").is_some(), "{}: {name}", definition.name);
            assert!(property.get("properties").is_none(), "{}: {name}", definition.name);
            // Queries name captures by these.
            assert!(
                !["capture", "uid", "with"].contains(&name.as_str()),
                "{}: {name}",
                definition.name
            );
        }
        let request = request(definition.name, &Value::Null).unwrap();
        assert_eq!(request.key(), format!("{}@{}", definition.name, definition.version));
    }
}

#[test]
fn an_unknown_analysis_is_refused_with_those_that_there_are() {
    let error = request("kernel-per-stream", &Value::Null).unwrap_err().to_string();
    assert!(
        error.contains("kernel-per-stream") && error.contains("kernels-per-stream"),
        "{error}"
    );
}

#[test]
fn a_parameter_is_refused_with_what_is_possible() {
    let cases = [
        ("kernel-changes", json!({"most": 3}), "it has limit, name_contains"),
        ("kernels-per-stream", json!({"limit": 3}), "it has none"),
        ("kernel-changes", json!({"limit": 0}), "a whole number from 1 to 100000"),
        (
            "kernel-changes",
            json!({"limit": 1.5}),
            "a whole number from 1 to 100000",
        ),
        (
            "kernel-changes",
            json!({"limit": "many"}),
            "a whole number from 1 to 100000",
        ),
        ("kernel-changes", json!({"name_contains": 7}), "a text"),
        ("kernel-changes", json!({"name_contains": "x".repeat(1025)}), "1024"),
        ("kernel-changes", json!([1]), "must be a JSON object"),
    ];
    for (name, parameters, expected) in cases {
        let error = request(name, &parameters).unwrap_err().to_string();
        assert!(
            error.contains(expected) && error.contains(name),
            "{parameters}: {error}"
        );
    }
}

#[test]
fn words_of_a_command_line_are_read_by_the_parameters_types() {
    let words = Request::from_words("kernel-changes", ["limit=20", "name_contains=7=7"]).unwrap();
    assert_eq!(words.parameters(), json!({"limit": 20, "name_contains": "7=7"}));
    let cases = [
        ("limit", "NAME=VALUE"),
        ("limit=x", "a whole number"),
        ("most=1", "no parameter"),
    ];
    for (word, expected) in cases {
        let error = Request::from_words("kernel-changes", [word]).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let twice = Request::from_words("kernel-changes", ["limit=1", "limit=2"]).unwrap_err();
    assert!(matches!(twice, RequestError::Repeated { .. }), "{twice}");
}

#[test]
fn a_key_tells_versions_and_parameters_apart() {
    let plain = request("kernel-changes", &json!({})).unwrap();
    let same = request("kernel-changes", &json!({"name_contains": "", "limit": 1000})).unwrap();
    let other = request("kernel-changes", &json!({"limit": 20})).unwrap();
    assert_eq!(plain, same);
    assert_ne!(plain, other);
    assert_eq!(plain.canonical_parameters(), r#"{"limit":1000,"name_contains":""}"#);
    // Kept results are found again: a key must not change without a new version.
    assert_eq!(other.key(), "kernel-changes@3-ba981a1797ed3b3af029729ecac54a68");
}

#[test]
fn a_format_is_part_of_a_request_and_of_its_key() {
    let asked = |format: &str| Request::from_pairs("kernel-changes", [("limit", "20"), ("format", format)]);
    let plain = asked("json").unwrap();
    assert_eq!(
        plain.key(),
        Request::from_words("kernel-changes", ["limit=20"]).unwrap().key()
    );
    let expected = [
        (
            "page",
            "application/vnd.flopwatch.page+json",
            "kernel-changes.page.json",
        ),
        ("html", "text/html; charset=utf-8", "kernel-changes.html"),
        ("csv", "text/csv; charset=utf-8", "kernel-changes.csv"),
        ("text", "text/plain; charset=utf-8", "kernel-changes.txt"),
    ];
    for (format, media_type, file_name) in expected {
        let request = asked(format).unwrap();
        assert_eq!(request.key(), format!("{}+{format}3", plain.key()));
        assert_eq!(
            (request.media_type(), request.file_name().as_str()),
            (media_type, file_name)
        );
        assert_eq!(request.parameters(), plain.parameters());
    }
    let refused = asked("pdf").unwrap_err().to_string();
    assert!(refused.contains("json, page, html, csv, text"), "{refused}");
    let file = Request::from_pairs("events-csv", [("format", "html")])
        .unwrap_err()
        .to_string();
    assert!(file.ends_with("it has json"), "{file}");
    let twice = Request::from_pairs("kernel-changes", [("format", "csv"), ("format", "csv")]);
    assert!(matches!(twice, Err(RequestError::Repeated { .. })));
}

#[test]
fn no_analysis_has_a_parameter_of_a_name_that_queries_use_otherwise() {
    for definition in CATALOGUE {
        let schema = definition.parameter_schema();
        let parameters = schema.get("properties").and_then(Value::as_object);
        for reserved in ["capture", "uid", "with", Format::PARAMETER] {
            let clashes = parameters.is_some_and(|parameters| parameters.contains_key(reserved));
            assert!(!clashes, "{} has a parameter {reserved}", definition.name);
        }
    }
}

#[test]
fn a_result_whose_rows_are_plain_is_a_table() {
    let columns = find("kernels-per-stream").unwrap().tabular().unwrap().columns;
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    let expected = [
        "process",
        "device",
        "context",
        "stream",
        "launches",
        "busy_ns",
        "distinct_kernels",
    ];
    assert_eq!(names, expected);
    assert!(
        columns
            .iter()
            .all(|column| column.cells == CellType::Integer && !column.about.is_empty())
    );
    let changes = find("kernel-changes").unwrap().tabular().unwrap();
    let cells = changes
        .cells(&json!({"rows": [{"name": "a", "presence": "both", "difference_ns": -3, "before_mean_ns": null}]}));
    assert!(cells[0].contains(&"-3".to_owned()) && cells[0].contains(&String::new()));
    assert!(find("summary").unwrap().tabular().is_none());
}

proptest! {
    #[test]
    fn any_parameters_give_a_key_that_is_a_safe_file_name(limit in 1_u32..=100_000, text in ".{0,200}") {
        let parameters = json!({"limit": limit, "name_contains": text});
        let request = request("kernel-changes", &parameters).unwrap();
        prop_assert_eq!(&request.parameters(), &parameters);
        let key = request.key();
        prop_assert!(key.len() <= 128, "{}", key);
        prop_assert!(key.chars().all(|c| c.is_ascii_alphanumeric() || "-@".contains(c)), "{}", key);
        let page = request.clone().written_as(Format::Page).unwrap();
        prop_assert!(page.key().len() <= 128, "{}", page.key());
        let plain = page.written_as(Format::Json).unwrap();
        prop_assert_eq!(plain.key(), key);
        // What was canonical is so again, whatever the order of keys.
        let again: Value = serde_json::from_str(&request.canonical_parameters()).unwrap();
        let again = Request::parse("kernel-changes", &again).unwrap();
        prop_assert_eq!(again.key(), key);
    }

    #[test]
    fn no_parameters_make_a_request_panic(name in "[a-z@/-]{0,30}", key in ".{0,20}", text in ".{0,20}", number in any::<f64>()) {
        for value in [json!(text), json!(number), json!([text]), json!({ "a": text })] {
            for name in [name.as_str(), "kernel-changes", "events-csv"] {
                drop(Request::parse(name, &json!({ key.as_str(): value, "limit": value })));
            }
        }
        drop(Request::from_pairs("kernel-changes", [(key.as_str(), text.as_str())]));
    }
}
