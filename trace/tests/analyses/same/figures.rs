//! The results of analyses, as what can be held against each other.

use flopwatch_model::Timeline;
use serde_json::{Map, Value, json};

use crate::captures::analyze;

/// Analyses of events: their times, places, names and launches.
const OF_EVENTS: [&str; 19] = [
    "gpu-time",
    "overlap",
    "kernel-types",
    "launches",
    "queue-length",
    "kernels-per-stream",
    "idle",
    "iterations",
    "critical-path",
    "host-sync",
    "launch-patterns",
    "threads",
    "cpu-gpu",
    "cuda_gpu_kern_sum",
    "cuda_gpu_mem_time_sum",
    "cuda_gpu_mem_size_sum",
    "cuda_api_sum",
    "cuda_kern_exec_sum",
    "nvtx_gpu_proj_sum",
];
/// Analyses that also read what a Chrome trace has no place for, such as allocations and devices.
const OF_MORE: [&str; 10] = [
    "advice",
    "allocations",
    "buffers",
    "collectives",
    "memory",
    "mfu",
    "module-loading",
    "precision",
    "stragglers",
    "start-up",
];
/// Fields that say a moment, beside those that [`is_moment`] tells by their ends.
const MOMENTS: [&str; 11] = [
    "bin_starts_ns",
    "end_ns",
    "first_gpu_work_ns",
    "first_ns",
    "given_ns",
    "last_ns",
    "peak_ns",
    "peak_reserved_ns",
    "start_ns",
    "steady_from_ns",
    "t_ns",
];
/// Fields that a Chrome trace does not keep: numbers of rows and machines, texts of rows, and what
/// was recorded without an event.
const NOT_KEPT: [&str; 6] = ["row", "longest_row", "machine", "label", "captured", "not_captured"];
/// Levels over the parts of the capture's time, which are others where it began earlier.
const BY_PART: &str = "over_time";

/// Whether a field of that name says a moment, in ns since the session's start.
pub(super) fn is_moment(field: &str) -> bool {
    MOMENTS.contains(&field) || field.ends_with("_start_ns") || field.ends_with("_end_ns")
}

/// What each analysis says of one capture.
#[derive(Debug)]
pub(super) struct Figures(Vec<(&'static str, Value)>);

impl Figures {
    /// Of every analysis that tells what a capture's time and memory went to. The tables over
    /// parts of the session's own time (`utilization`) and what is told of the session's window
    /// (`summary`) depend on when it began.
    pub(super) fn of(timeline: &Timeline) -> Self {
        let mut figures = Self::named(timeline, &OF_MORE);
        figures.0.extend(Self::of_events(timeline).0);
        for (_, value) in &mut figures.0 {
            remove(value, &|field| field == BY_PART);
        }
        figures
    }

    /// Of the analyses whose figures a trace of ours must keep, without moments, which such a
    /// trace may count from its first event.
    pub(super) fn of_exports(timeline: &Timeline) -> Self {
        let mut figures = Self::of_events(timeline);
        for (_, value) in &mut figures.0 {
            remove(value, &|field| NOT_KEPT.contains(&field) || is_moment(field));
        }
        figures
    }

    fn of_events(timeline: &Timeline) -> Self {
        let mut figures = Self::named(timeline, &OF_EVENTS);
        for weight in ["gpu", "cpu"] {
            let parameters = json!({
                "weight": weight,
                "min_duration_us": 0,
                "merge_numbered": false,
                "max_depth": 500,
                "limit": 1_000_000,
            });
            let graph = analyze("flame-graph", &parameters, &[timeline]);
            figures.0.push(("flame-graph", graph));
        }
        figures
    }

    fn named(timeline: &Timeline, names: &[&'static str]) -> Self {
        let answer = |name: &&'static str| (*name, analyze(name, &Value::Null, &[timeline]));
        Self(names.iter().map(answer).collect())
    }

    /// The same with other numbers: `new` gives that of a field's number, where it is to have
    /// another. Numbers of a list are of the field that the list is of.
    /// Of a capture without a critical path, the path's start and end are 0 and no moments.
    pub(super) fn renamed(self, new: impl Fn(&str, u64) -> Option<u64>) -> Self {
        let has_moments = |name: &str, value: &Value| name != "critical-path" || value["path_ns"] != 0;
        let figures = self.0.into_iter().map(|(name, value)| {
            if has_moments(name, &value) {
                (name, renamed(value, "", &new))
            } else {
                (name, value)
            }
        });
        Self(figures.collect())
    }

    /// The first place in which these differ from `expected`, with both values.
    pub(super) fn difference(&self, expected: &Self) -> Option<String> {
        assert_eq!(self.0.len(), expected.0.len());
        let mut both = self.0.iter().zip(&expected.0);
        both.find_map(|((name, found), (_, expected))| difference(name, found, expected))
    }
}

fn renamed(value: Value, field: &str, new: &impl Fn(&str, u64) -> Option<u64>) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(field, value)| {
                let value = renamed(value, &field, new);
                (field, value)
            });
            Value::Object(fields.collect())
        }
        Value::Array(list) => Value::Array(list.into_iter().map(|value| renamed(value, field, new)).collect()),
        Value::Number(number) => number
            .as_u64()
            .and_then(|number| new(field, number))
            .map_or(Value::Number(number), Value::from),
        other => other,
    }
}

/// Removes the fields that `is_gone` names, wherever they stand.
fn remove(value: &mut Value, is_gone: &impl Fn(&str) -> bool) {
    match value {
        Value::Object(fields) => {
            fields.retain(|field, _| !is_gone(field));
            fields.values_mut().for_each(|value| remove(value, is_gone));
        }
        Value::Array(list) => list.iter_mut().for_each(|value| remove(value, is_gone)),
        _ => {}
    }
}

fn difference(place: &str, found: &Value, expected: &Value) -> Option<String> {
    match (found, expected) {
        _ if found == expected => None,
        (Value::Object(found), Value::Object(expected)) => {
            let of = |fields: &Map<String, Value>, field: &str| fields.get(field).cloned().unwrap_or_default();
            let mut fields = found.keys().chain(expected.keys());
            fields.find_map(|field| difference(&format!("{place}.{field}"), &of(found, field), &of(expected, field)))
        }
        (Value::Array(found), Value::Array(expected)) if found.len() == expected.len() => {
            let mut both = found.iter().zip(expected).enumerate();
            both.find_map(|(at, (found, expected))| difference(&format!("{place}[{at}]"), found, expected))
        }
        _ => Some(format!("{place}: {found}, expected {expected}")),
    }
}

#[test]
fn what_is_renamed_removed_and_compared_is_told_by_its_field() {
    let figures = |start: u64, stream: u64| {
        let value =
            json!({"rows": [{"start_ns": start, "sum_ns": 7, "stream": stream, "row": 3}], "bin_starts_ns": [start]});
        Figures(vec![("test", value)])
    };
    let moved = figures(5, 1).renamed(|field, number| is_moment(field).then_some(number + 10));
    assert_eq!(moved.difference(&figures(15, 1)), None);
    let difference = figures(5, 2).difference(&figures(5, 1));
    assert_eq!(difference.as_deref(), Some("test.rows[0].stream: 2, expected 1"));
    let Figures(mut list) = figures(5, 1);
    remove(&mut list[0].1, &|field| field == "row" || is_moment(field));
    assert_eq!(list[0].1, json!({"rows": [{"sum_ns": 7, "stream": 1}]}));
}
