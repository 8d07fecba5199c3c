//! Flame graphs of real captures: their totals against other analyses and a count of their own, and
//! `go tool pprof` on their profiles.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use flopwatch_model::{Category, Timeline};
use serde_json::{Value, json};

use crate::captures::{analyze, bytes, timeline};
use crate::result::{list, numbers};

const NSYS: &str = "nsys-ai/mfu_2gpu_before.sqlite";
const RESNET: &str = "kineto-samples/resnet50_w0_span1.pt.trace.json.gz";
const RANK_0: &str = "hta/trace_filter-sampled_rank-0.json.gz";
const RANK_1: &str = "hta/trace_filter-sampled_rank-1.json.gz";
const CAPTURES: &[&str] = &[
    NSYS,
    RESNET,
    RANK_0,
    "hta/trace_diff-control-control.json.gz",
    "hta/nccl_parser_config-nccl_data.json.gz",
    "nsightful/power_iteration__baseline.sqlite",
    "tracelens-jax/jax_conv_minimal_08.xplane.pb",
];

/// Children never exceed their frame, and with its own time they are it.
fn adds_up(frame: &Value) -> u64 {
    let value = frame["value"].as_u64().unwrap();
    let own = frame["self_ns"].as_u64().unwrap_or(0);
    let children = frame["children"].as_array().map(Vec::as_slice).unwrap_or_default();
    assert_eq!(
        children.iter().map(adds_up).sum::<u64>() + own,
        value,
        "{}",
        frame["name"]
    );
    value
}

/// Time of each thread inside anything that `categories` hold, added up, one nanosecond after the
/// other.
fn covered_ns(timeline: &Timeline, categories: &[Category]) -> u64 {
    let mut threads: BTreeMap<_, Vec<(u64, u64)>> = BTreeMap::new();
    for category in categories {
        let Some(events) = timeline.capture.events.get(category) else {
            continue;
        };
        for at in 0..events.len() {
            let row = &timeline.capture.rows[events.row[at].index()];
            // Threads whose numbers overflowed have a label alone.
            let label = row.thread.is_none().then_some(&row.label);
            let thread = (row.capture, row.machine, row.process, row.thread, label);
            threads
                .entry(thread)
                .or_default()
                .push((events.start_ns[at], events.end_ns(at)));
        }
    }
    let covered = threads.into_values().map(|mut times| {
        times.sort_unstable();
        let (mut until, mut sum) = (0, 0);
        for (start, end) in times {
            sum += end.saturating_sub(start.max(until));
            until = until.max(end);
        }
        sum
    });
    covered.sum()
}

#[test]
fn totals_are_the_time_that_they_claim() {
    for name in CAPTURES {
        let Some(timeline) = timeline(name) else {
            continue;
        };
        let gpu = analyze("flame-graph", &Value::Null, &[&timeline]);
        let operations = analyze("cuda_gpu_sum", &json!({"limit": 100_000}), &[&timeline]);
        let total: u64 = numbers(&operations["rows"], "total_ns").iter().sum();
        assert_eq!(adds_up(&gpu), total, "{name}");
        let cpu = json!({"weight": "cpu", "min_duration_us": 0});
        for (stacks, categories) in [
            (
                "all",
                [
                    Category::Step,
                    Category::NvtxRange,
                    Category::Annotation,
                    Category::PythonFunction,
                    Category::CpuOp,
                    Category::CudaApi,
                ]
                .as_slice(),
            ),
            ("operators", &[Category::Step, Category::Annotation, Category::CpuOp]),
            ("python", &[Category::PythonFunction]),
        ] {
            let mut asked = cpu.clone();
            asked["stacks"] = stacks.into();
            let found = analyze("flame-graph", &asked, &[&timeline]);
            // Ranges of start/end style are no frames: without them alone the count is comparable.
            if found["start_end_ranges"] == 0 {
                assert_eq!(adds_up(&found), covered_ns(&timeline, categories), "{name}: {stacks}");
            }
        }
    }
}

/// `go tool pprof -top` of profiles: time in ns by function, of its own and with what it calls.
fn top(arguments: &[&Path], base: bool) -> Option<BTreeMap<String, (i64, i64)>> {
    let mut go = Command::new(std::env::var_os("FLOPWATCH_GO").unwrap_or_else(|| "go".into()));
    go.args([
        "tool",
        "pprof",
        "-top",
        "-unit=ns",
        "-nodecount=1000000",
        "-nodefraction=0",
        "-edgefraction=0",
    ]);
    if base {
        go.arg("-base");
    }
    let Ok(output) = go.args(arguments).stdin(Stdio::null()).output() else {
        println!("skipped: no Go on this machine (set FLOPWATCH_GO to one)");
        return None;
    };
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success(),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let ns = |word: &str| word.trim_end_matches("ns").parse::<i64>().unwrap();
    let line = |line: &str| {
        let (mut rest, mut figures) = (line, [0; 5]);
        for (at, figure) in figures.iter_mut().enumerate() {
            let (word, behind) = rest.trim_start().split_once(' ').unwrap();
            *figure = if at == 0 || at == 3 { ns(word) } else { 0 };
            rest = behind;
        }
        (rest.trim().to_owned(), (figures[0], figures[3]))
    };
    let lines = text.lines().skip_while(|line| !line.contains("flat%")).skip(1);
    Some(lines.map(line).collect())
}

fn write(analysis: &str, parameters: &Value, timelines: &[&Timeline], to: &Path) {
    std::fs::write(to, bytes(analysis, parameters, timelines)).unwrap();
}

/// Says what differs first; whole profiles are long.
fn same(told: &BTreeMap<String, (i64, i64)>, ours: &BTreeMap<String, (i64, i64)>, what: &str) {
    let names = told.keys().chain(ours.keys());
    let mut differ = names.filter(|name| told.get(*name) != ours.get(*name));
    if let Some(name) = differ.next() {
        panic!(
            "{what}: {name}: {:?} where we have {:?}",
            told.get(name),
            ours.get(name)
        );
    }
}

/// Time in ns by name of a result, of its own and with the frames inside it; inside itself it
/// counts once.
fn by_name(frame: &Value, own: &str, with: &str, around: &mut Vec<String>, into: &mut BTreeMap<String, (i64, i64)>) {
    for child in frame["children"].as_array().map(Vec::as_slice).unwrap_or_default() {
        let name = child["name"].as_str().unwrap().to_owned();
        let sums = into.entry(name.clone()).or_default();
        sums.0 += child[own].as_i64().unwrap();
        if !around.contains(&name) {
            sums.1 += child[with].as_i64().unwrap();
        }
        around.push(name);
        by_name(child, own, with, around, into);
        around.pop();
    }
}

#[test]
fn go_tool_pprof_reads_our_profiles_and_their_difference_is_ours() {
    let folder = tempfile::tempdir().unwrap();
    let (before, after, difference) = (
        folder.path().join("before.pb.gz"),
        folder.path().join("after.pb.gz"),
        folder.path().join("difference.pb.gz"),
    );
    for weight in ["gpu", "cpu"] {
        // Each profile is cut by itself: what is summed would be another frame in each.
        let parameters = json!({"weight": weight, "min_duration_us": 0, "max_depth": 500, "limit": 1_000_000});
        let (Some(one), Some(other)) = (timeline(RANK_0), timeline(RANK_1)) else {
            return;
        };
        write("flame-pprof", &parameters, &[&one], &before);
        write("flame-pprof", &parameters, &[&other], &after);
        write("flame-difference-pprof", &parameters, &[&one, &other], &difference);
        let Some(told) = top(&[&before], false) else { return };
        let mut ours = BTreeMap::new();
        by_name(
            &analyze("flame-graph", &parameters, &[&one]),
            "self_ns",
            "value",
            &mut Vec::new(),
            &mut ours,
        );
        same(&told, &ours, weight);
        assert!(
            weight == "cpu" || told.keys().any(|name| name.contains('<')),
            "pprof shortened the kernels' names"
        );

        let mut ours = BTreeMap::new();
        let found = analyze("flame-difference", &parameters, &[&one, &other]);
        by_name(&found, "self_delta", "delta", &mut Vec::new(), &mut ours);
        ours.retain(|_, (own, with)| (*own, *with) != (0, 0));
        for told in [top(&[&before, &after], true), top(&[&difference], false)] {
            let mut told = told.unwrap();
            told.retain(|_, (own, with)| (*own, *with) != (0, 0));
            same(&told, &ours, weight);
        }
    }
}

#[test]
fn speedscope_and_folded_stacks_hold_the_same_time() {
    let Some(timeline) = timeline(RESNET) else { return };
    let graph = analyze("flame-graph", &Value::Null, &[&timeline]);
    let speedscope = analyze("flame-speedscope", &Value::Null, &[&timeline]);
    let profile = &speedscope["profiles"][0];
    let weights = list(&profile["weights"]).map(|weight| weight.as_u64().unwrap());
    assert_eq!(weights.sum::<u64>(), graph["value"].as_u64().unwrap());
    let folded = String::from_utf8(bytes("flame-folded", &Value::Null, &[&timeline])).unwrap();
    let weight = |line: &str| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap();
    assert_eq!(graph["value"], folded.lines().map(weight).sum::<u64>());
    assert_eq!(folded.lines().count(), list(&profile["samples"]).len());
}
