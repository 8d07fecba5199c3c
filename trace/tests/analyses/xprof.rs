//! Profiles of JAX beside the tools of XProf (PyPI), which read them while the tests run: its
//! operations (`hlo_stats`, `op_profile`, `framework_op_stats`), its allocators (`memory_profile`)
//! and its plans of memory (`memory_viewer`).

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use flopwatch_model::Timeline;
use serde_json::{Value, json};

use crate::captures::{analyze, timeline_at};
use crate::hlo::{mib, number};
use crate::jax::{fresh, script};
use crate::memory::pool;
use crate::nsys;
use crate::program::{python_with, stdout_of};
use crate::result::find;

const GPU: &str = "tracelens-jax/jax_conv_minimal_08.xplane.pb";
const TPU: &str = "xprof/tpu_inference_2.xplane.pb";

/// What XProf says of a profile; `None`, with the reason printed, where there is no XProf.
pub(crate) fn xprof(profile: &Path) -> Option<Value> {
    let python = python_with("xprof")?;
    let said = stdout_of(Command::new(python).arg(script("xprof_says.py")).arg(profile));
    let said: Value = serde_json::from_slice(&said).unwrap();
    Some(said[0].clone())
}

/// A profile of the corpus with what XProf says of it.
fn of_corpus(name: &str) -> Option<(Timeline, Value)> {
    let path = nsys::corpus(name)?;
    Some((timeline_at(&path), xprof(&path)?))
}

/// Microseconds of XProf as nanoseconds.
fn ns(value: &Value) -> f64 {
    value.as_f64().unwrap() * 1e3
}

fn near(found: f64, expected: f64, share: f64) -> bool {
    (found - expected).abs() <= expected.abs() * share
}

/// The items of a list; XProf leaves empty ones out.
fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn operations(timeline: &Timeline) -> Value {
    analyze("hlo-operations", &json!({"limit": 100_000}), &[timeline])
}

/// Our row of an operation of XProf's.
fn row<'a>(ours: &'a Value, theirs: &Value) -> &'a Value {
    let is_it = |row: &&Value| {
        row["operation"] == theirs["hlo_op_name"]
            && row["program_id"] == theirs["program_id"]
            && row["is_asynchronous"] == false
    };
    let found = list(&ours["rows"]).iter().find(is_it);
    found.unwrap_or_else(|| panic!("no row of {theirs}"))
}

/// Work and bound of each operation of `hlo_stats`: of one occurrence, where it counts
/// `occurrences`.
fn work_is_equal(ours: &Value, said: &Value) {
    for theirs in list(&said["operations"]) {
        let row = row(ours, theirs);
        let seconds = ns(&theirs["total_time"]) / 1e9 / theirs["occurrences"].as_f64().unwrap();
        let flops = theirs["model_flop_rate"].as_f64().unwrap() * 1e9 * seconds;
        let bytes = theirs["measured_memory_bw"].as_f64().unwrap() * f64::from(1 << 30) * seconds;
        let name = &theirs["hlo_op_name"];
        // XProf leaves out the scratch memory that a convolution of a library writes.
        let scratch = if name == "cudnn-conv.1" { 7_150_336.0 } else { 0.0 };
        assert!(
            near(row["flops"].as_f64().unwrap(), flops, 1e-6),
            "{name}: {flops} FLOP, {row}"
        );
        assert!(
            near(row["bytes"].as_f64().unwrap(), bytes + scratch, 1e-6),
            "{name}: {bytes} bytes, {row}"
        );
        // XProf has a table of devices' peaks; we have what the profile says.
        if row["bound"].is_null() {
            continue;
        }
        let bound = if theirs["bound_by"] == "Compute" {
            "compute"
        } else {
            "memory"
        };
        assert_eq!(row["bound"], bound, "{name}");
    }
}

#[test]
fn operations_of_gpus_are_those_of_xprof() {
    let Some((timeline, said)) = of_corpus(GPU) else { return };
    let ours = operations(&timeline);
    assert_eq!(list(&said["operations"]).len(), list(&ours["rows"]).len());
    for theirs in list(&said["operations"]) {
        let row = row(&ours, theirs);
        for (time, figure) in [("total_time", "total_ns"), ("total_self_time", "self_ns")] {
            let told = json!(ns(&theirs[time]).round());
            assert_eq!(told, json!(row[figure].as_f64()), "{theirs}");
        }
        // XProf counts kernels: a run of the convolution is two.
        assert_eq!(theirs["occurrences"].as_f64(), row["events"].as_f64(), "{theirs}");
    }
    work_is_equal(&ours, &said);
    // So its rate of the convolution is that of 79 convolutions; 40 ran.
    let theirs = find(&said["operations"], "hlo_op_name", "cudnn-conv.1");
    let row = row(&ours, theirs);
    assert_eq!(row["occurrences"], 40);
    assert_eq!(row["events"], 79);
    let rate = theirs["model_flop_rate"].as_f64().unwrap() * 1e9 * 40.0 / 79.0;
    assert!(near(row["flops_per_second"].as_f64().unwrap(), rate, 1e-6));
    programs_and_framework_are_equal(&ours, &said, |ours, theirs| ours == theirs);
}

/// `op_profile` by program, and `framework_op_stats` by operation of the framework.
fn programs_and_framework_are_equal(ours: &Value, said: &Value, is_equal: impl Fn(u64, u64) -> bool) {
    let own = |row: &Value| (row["is_asynchronous"] == false).then(|| number(&row["self_ns"]));
    let (mut programs, mut framework) = (BTreeMap::new(), BTreeMap::new());
    for row in list(&ours["rows"]) {
        let (program, id) = (row["program"].as_str().unwrap(), row["program_id"].as_str().unwrap());
        *programs.entry(format!("{program}({id})")).or_insert(0) += own(row).unwrap_or(0);
        let operation = row["framework_op"].as_str().unwrap();
        let named = if operation.is_empty() {
            row["operation"].as_str().unwrap()
        } else {
            operation
        };
        *framework.entry(named.to_owned()).or_insert(0) += own(row).unwrap_or(0);
    }
    for theirs in list(&said["programs"]).iter().filter(|one| one["name"] != "IDLE") {
        let theirs_ns = (theirs["metrics"]["rawTime"].as_f64().unwrap() / 1e3).round();
        let ours_ns = programs[theirs["name"].as_str().unwrap()];
        assert!(
            is_equal(ours_ns, format!("{theirs_ns}").parse().unwrap()),
            "{ours_ns}, {theirs_ns}: {}",
            theirs["name"]
        );
    }
    let of_devices = list(&said["framework"]).iter();
    for theirs in of_devices.filter(|one| one["host_or_device"] == "Device" && one["operation"] != "IDLE") {
        let theirs_ns = ns(&theirs["total_self_time"]).round();
        let ours_ns = framework[theirs["operation"].as_str().unwrap()];
        assert!(
            is_equal(ours_ns, format!("{theirs_ns}").parse().unwrap()),
            "{ours_ns}, {theirs}"
        );
    }
}

#[test]
fn operations_of_an_accelerator_are_those_of_xprof() {
    let Some((timeline, said)) = of_corpus(TPU) else { return };
    let ours = operations(&timeline);
    for theirs in list(&said["operations"]) {
        let row = row(&ours, theirs);
        assert_eq!(theirs["occurrences"].as_f64(), row["occurrences"].as_f64(), "{theirs}");
    }
    work_is_equal(&ours, &said);
    // The largest figure of XProf is the rate of what begins a copy: it takes no time.
    let begins = |row: &&Value| {
        row["operation"]
            .as_str()
            .is_some_and(|name| name.starts_with("copy-start"))
    };
    for row in list(&ours["rows"]).iter().filter(begins) {
        let is_beside = row["is_asynchronous"] == true;
        assert!(
            is_beside || row["bytes_per_second"].is_null() && row["bound"].is_null(),
            "{row}"
        );
    }
    let self_ns = |rows: &[Value], name: &str| rows.iter().map(|row| row[name].as_f64().unwrap()).sum::<f64>();
    let theirs = self_ns(list(&said["operations"]), "total_self_time") * 1e3;
    // XProf takes the time of the device's clock, which is in a statistic of each event; the
    // timeline has the events' own.
    assert!(
        near(ours["self_ns"].as_f64().unwrap(), theirs, 2e-3),
        "{theirs}, {}",
        ours["self_ns"]
    );
}

#[test]
fn a_processor_has_operations_where_xprof_has_none() {
    let Some(fresh) = fresh() else { return };
    let Some(said) = xprof(&fresh.profile()) else { return };
    // Its tools look at devices alone, and a processor is none for them.
    assert_eq!(said["operations"], json!([]));
    assert_eq!(said["programs"], json!([]));
    assert!(list(&operations(&timeline_at(&fresh.profile()))["rows"]).len() > 40);
}

#[test]
fn allocators_reach_the_peaks_that_xprof_gives() {
    for (name, memory) in [(GPU, "GPU"), (TPU, "TPU")] {
        let Some((timeline, said)) = of_corpus(name) else {
            return;
        };
        let ours = analyze("memory", &Value::Null, &[&timeline]);
        let allocators = said["allocators"].as_object().unwrap();
        assert_eq!(allocators.len(), list(&ours["pools"]).len(), "{name}");
        for (allocator, theirs) in allocators {
            let device: String = allocator.chars().filter(char::is_ascii_digit).collect();
            let pool = pool(&ours, &format!("{memory} {device}"));
            let peak = number(&pool["peak_bytes"]).to_string();
            assert_eq!(theirs["peakBytesUsageLifetime"], peak.as_str(), "{allocator}: {theirs}");
        }
    }
}

/// The plans of memory of all programs of a profile, and how many they are.
fn plans_are_equal(profile: &Path) -> Option<usize> {
    let timeline = timeline_at(profile);
    let said = xprof(profile)?;
    let modules = said["modules"].as_object().unwrap();
    let mut differences = Vec::new();
    let mut equal = |what: &str, name: &str, ours: Value, theirs: Value| {
        if ours != theirs {
            differences.push(format!("{name}: {what}: {ours}, XProf has {theirs}"));
        }
    };
    for (name, module) in modules {
        let theirs = &module["memory"];
        let id = name.rsplit_once('(').unwrap().1.trim_end_matches(')');
        let ours = analyze("hlo-memory", &json!({"program_id": id, "limit": 100_000}), &[&timeline]);
        let bytes = |value: &Value| mib(value.as_f64().unwrap());
        // XProf leaves out what is 0 or empty.
        let figure = |key: &str| theirs[key].as_f64().map_or(0, mib);
        let sizes: Vec<u64> = list(&theirs["heapSizes"]).iter().map(bytes).collect();
        let steps = list(&ours["steps"]);
        if !sizes.is_empty() || !steps.is_empty() {
            let mut in_use = vec![ours["fixed_bytes"].clone()];
            in_use.extend(steps.iter().map(|step| step["bytes"].clone()));
            equal("bytes in use", name, json!(in_use), json!(sizes));
            equal("peak", name, ours["peak_bytes"].clone(), json!(figure("peakHeapMib")));
        }
        let instructions: Vec<&Value> = steps.iter().map(|step| &step["instruction"]).collect();
        let names: Vec<&Value> = list(&theirs["hloInstructionNames"])
            .iter()
            .filter(|name| *name != "")
            .collect();
        equal("steps", name, json!(instructions), json!(names));
        for (own, key) in [
            ("fixed_bytes", "indefiniteBufferAllocationMib"),
            ("parameters_bytes", "entryComputationParametersMib"),
            ("allocated_bytes", "totalBufferAllocationMib"),
        ] {
            equal(own, name, ours[own].clone(), json!(figure(key)));
        }
        let values = list(&theirs["maxHeap"])
            .iter()
            .filter(|value| value["logicalBufferId"] != -1);
        for theirs in values {
            let size = bytes(&theirs["logicalBufferSizeMib"]);
            let is_it = |ours: &&Value| ours["instruction"] == theirs["instructionName"] && ours["bytes"] == size;
            let is_there = list(&ours["at_peak"]).iter().any(|ours| is_it(&ours));
            equal("a value at the peak", name, json!(is_there), json!(true));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    Some(modules.len())
}

#[test]
fn plans_of_memory_are_those_of_the_memory_viewer() {
    for name in [GPU, TPU] {
        if let Some(path) = nsys::corpus(name) {
            assert!(plans_are_equal(&path).is_none_or(|programs| programs >= 4), "{name}");
        }
    }
    let Some(fresh) = fresh() else { return };
    assert!(plans_are_equal(&fresh.profile()).is_none_or(|programs| programs >= 8));
}
