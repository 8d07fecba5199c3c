//! The chart's dashboards and rules, checked against the series that the programs export and by
//! Prometheus' own tool.

use flopwatch_toolchain::command::{Run, find_program};
use flopwatch_toolchain::project;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// What Grafana puts in place of its variables, or something like it.
const VARIABLES: [(&str, &str); 6] = [
    ("$__rate_interval", "1m"),
    ("$node", ".*"),
    ("$namespace", ".*"),
    ("$schedule", ".*"),
    ("$pod", ".*"),
    ("${datasource}", "prometheus"),
];
/// The page of a session in the viewer.
const SESSION: &str = "${viewer:raw}/#page=sessions&session=${__field.labels.id}";
/// Of a histogram's name, those of its series.
const HISTOGRAM: [&str; 3] = ["_bucket", "_sum", "_count"];

fn root() -> PathBuf {
    project::root().unwrap()
}

fn chart(path: &str) -> PathBuf {
    root().join("charts/flopwatch/files").join(path)
}

fn boards() -> BTreeMap<String, Value> {
    let files = fs::read_dir(chart("dashboards")).unwrap();
    let boards: BTreeMap<_, _> = files
        .map(|file| {
            let path = file.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap())
        })
        .collect();
    assert_eq!(
        boards.keys().collect::<Vec<_>>(),
        ["fleet", "node", "schedules", "sessions"]
    );
    boards
}

fn panels(board: &Value) -> &[Value] {
    board["panels"].as_array().unwrap()
}

fn variables(board: &Value) -> Vec<&str> {
    let variables = board["templating"]["list"].as_array().unwrap();
    variables
        .iter()
        .filter_map(|variable| variable["name"].as_str())
        .collect()
}

/// Every query of a dashboard as Prometheus gets it, with the panel that asks it.
fn queries(board: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for panel in panels(board) {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let mut query = target["expr"].as_str().unwrap().to_owned();
            for (variable, value) in VARIABLES {
                query = query.replace(variable, value);
            }
            assert!(
                !query.contains('$'),
                "{query}: a variable that the dashboard does not have"
            );
            found.push((panel["title"].as_str().unwrap().to_owned(), query));
        }
    }
    found
}

/// The words of a text that are names of our series.
fn series(text: &str) -> BTreeSet<String> {
    text.split(|letter: char| !(letter.is_ascii_alphanumeric() || matches!(letter, '_' | ':')))
        .filter(|word| word.starts_with("flopwatch_") && !word.ends_with('_'))
        .map(str::to_owned)
        .collect()
}

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|end| end == "rs") {
            into.push(path);
        }
    }
}

/// The names that the programs give their series, and the histograms among them.
fn exported() -> BTreeSet<String> {
    let mut files = Vec::new();
    for folder in ["agent/src", "artifacts/src", "agent/nvml/src", "operator/src"] {
        sources(&root().join(folder), &mut files);
    }
    let mut names: BTreeSet<String> = files
        .iter()
        .flat_map(|file| series(&fs::read_to_string(file).unwrap()))
        .collect();
    let histograms: Vec<String> = names
        .iter()
        .filter(|name| name.ends_with("_seconds"))
        .cloned()
        .collect();
    names.extend(
        histograms
            .iter()
            .flat_map(|name| HISTOGRAM.map(|part| format!("{name}{part}"))),
    );
    assert!(names.len() > 40, "{names:?}");
    names
}

#[allow(
    clippy::print_stdout,
    reason = "a skip is told on standard output, where the recipe counts it"
)]
fn promtool() -> Option<PathBuf> {
    let found = find_program("promtool");
    if found.is_none() {
        println!("skipped: promtool is not installed (Debian: prometheus)");
    }
    found
}

#[test]
fn every_series_of_a_dashboard_or_rule_is_one_that_the_programs_export() {
    let exported = exported();
    let rules = fs::read_to_string(chart("rules.yaml")).unwrap();
    let mut asked: Vec<(String, BTreeSet<String>)> = vec![("rules".to_owned(), series(&rules))];
    for (name, board) in boards() {
        for (panel, query) in queries(&board) {
            asked.push((format!("{name}: {panel}"), series(&query)));
        }
        for variable in board["templating"]["list"].as_array().unwrap() {
            asked.push((name.clone(), series(&variable["query"]["query"].to_string())));
        }
    }
    for (place, names) in asked {
        for name in names {
            assert!(exported.contains(&name), "{place}: no program exports {name}");
        }
    }
}

#[test]
fn counters_are_asked_for_their_increase_and_gauges_are_not() {
    for (name, board) in boards() {
        for (panel, query) in queries(&board) {
            let rate = query.contains("rate(") || query.contains("increase(");
            let counter = series(&query)
                .iter()
                .any(|name| name.ends_with("_total") || name.ends_with("_bucket"));
            assert_eq!(rate, counter, "{name}: {panel}: {query}");
        }
    }
}

/// Tests that start promtool.
mod crate_tests {
    use super::*;

    #[test]
    fn prometheus_accepts_every_query() {
        let Some(promtool) = promtool() else { return };
        let mut rules = String::from("groups:\n  - name: queries\n    rules:\n");
        for (number, (panel, query)) in boards().values().flat_map(queries).enumerate() {
            let query = serde_json::to_string(&query).unwrap();
            writeln!(
                rules,
                "      # {panel}\n      - record: query:{number}\n        expr: {query}"
            )
            .unwrap();
        }
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("queries.yaml");
        fs::write(&file, rules).unwrap();
        Run::new(promtool).args(["check", "rules"]).arg(file).quiet().unwrap();
    }

    #[test]
    fn the_alerts_fire_when_they_should_and_not_before() {
        let Some(promtool) = promtool() else { return };
        let folder = tempfile::tempdir().unwrap();
        let tests = folder.path().join("tests.yaml");
        fs::write(&tests, include_str!("rules.test.yaml")).unwrap();
        fs::copy(chart("rules.yaml"), folder.path().join("rules.yaml")).unwrap();
        Run::new(promtool)
            .args(["test", "rules"])
            .arg(tests)
            .dir(folder.path())
            .quiet()
            .unwrap();
    }
}

#[test]
fn panels_have_places_of_their_own_and_links_lead_to_dashboards() {
    let boards = boards();
    let known: BTreeSet<String> = boards
        .values()
        .map(|board| format!("/d/{}", board["uid"].as_str().unwrap()))
        .collect();
    for (name, board) in &boards {
        let mut taken = BTreeMap::new();
        for panel in panels(board) {
            let place = |key: &str| panel["gridPos"][key].as_u64().unwrap();
            for x in place("x")..place("x") + place("w") {
                for y in place("y")..place("y") + place("h") {
                    assert!(x < 24, "{name}: {}", panel["title"]);
                    let before = taken.insert((x, y), &panel["title"]);
                    assert_eq!(before, None, "{name}: {}", panel["title"]);
                }
            }
            for link in panel["fieldConfig"]["defaults"]["links"]
                .as_array()
                .into_iter()
                .flatten()
            {
                let url = link["url"].as_str().unwrap();
                if url == SESSION {
                    assert!(variables(board).contains(&"viewer"), "{name}: {url}");
                    continue;
                }
                assert!(known.contains(url.split('?').next().unwrap()), "{name}: {url}");
            }
        }
        for link in board["links"].as_array().unwrap() {
            assert!(known.contains(link["url"].as_str().unwrap()), "{name}: {link}");
        }
    }
}
