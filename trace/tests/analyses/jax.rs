//! Captures that the JAX of this machine makes on a processor while the tests run: what its
//! programs do, how long that took, and which line of Python they come from, beside what JAX and
//! the reader of its own library (`jax.profiler.ProfileData`) say of them.
//!
//! `FLOPWATCH_PYTHON` names a Python that has JAX and XProf; without it the one on the PATH is
//! asked.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use flopwatch_model::{Category, Timeline};
use serde_json::{Value, json};

use crate::captures::{analyze, timeline_at};
use crate::hlo::{Said, equals_what_jax_says};
use crate::memory::{functions, top};
use crate::program::{python_with, stdout_of};
use crate::result::{find, list};

/// The programs of `fresh.py`.
pub(crate) const PROGRAMS: [&str; 8] = [
    "matmuls",
    "convolution",
    "loop",
    "scan",
    "elementwise",
    "branches",
    "donated",
    "mixed",
];

/// A program of Python beside the tests' data.
pub(crate) fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/jax").join(name)
}

/// What `fresh.py` left in its folder.
pub(crate) struct Fresh {
    folder: PathBuf,
    said: Value,
}

impl Fresh {
    /// The profile of all programs.
    pub(crate) fn profile(&self) -> PathBuf {
        self.folder.join("profile.xplane.pb")
    }

    /// The dump of a program whose file ends in `ending`.
    pub(crate) fn dump(&self, program: &str, ending: &str) -> PathBuf {
        let named = format!(".jit_{program}.");
        let mut files = self.folder.join("dump").read_dir().unwrap();
        let found = files.find_map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name()?.to_str()?;
            (name.contains(&named) && name.ends_with(ending)).then_some(path)
        });
        found.unwrap_or_else(|| panic!("no dump {ending} of {program}"))
    }
}

/// The captures, made once for all tests; `None`, with the reason printed, without JAX.
pub(crate) fn fresh() -> Option<&'static Fresh> {
    static FRESH: OnceLock<Option<Fresh>> = OnceLock::new();
    FRESH.get_or_init(make).as_ref()
}

fn make() -> Option<Fresh> {
    let python = python_with("jax")?;
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fresh-jax");
    match std::fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => panic!("{error}"),
        _ => {}
    }
    stdout_of(Command::new(python).arg(script("fresh.py")).arg(&folder));
    let said = std::fs::read(folder.join("said.json")).unwrap();
    Some(Fresh {
        said: serde_json::from_slice(&said).unwrap(),
        folder,
    })
}

#[test]
fn counted_work_and_memory_equal_what_the_jax_of_this_machine_says() {
    let Some(fresh) = fresh() else { return };
    for program in PROGRAMS {
        let timeline = timeline_at(&fresh.dump(program, "after_optimizations.hlo.pb"));
        let told = |name: &str| fresh.said["programs"][program][name].as_u64().unwrap();
        let said = Said {
            flops: told("flops"),
            transcendentals: told("transcendentals"),
            bytes: told("bytes"),
            // Donated memory is that of a parameter and of a result.
            parameters: told("parameters"),
            temporaries: told("temporaries"),
        };
        equals_what_jax_says(program, &timeline, &said);
    }
}

/// Events and time in ns by name.
type Figures = BTreeMap<String, (u64, u64)>;

fn told(of: &Value) -> Figures {
    let figures = of.as_object().unwrap().iter();
    let figures = figures.map(|(name, one)| {
        let total_ns = one["total_ns"].as_f64().unwrap();
        // The library gives whole nanoseconds as floating-point numbers.
        let total_ns = format!("{total_ns:.0}").parse().unwrap();
        (name.clone(), (one["events"].as_u64().unwrap(), total_ns))
    });
    figures.collect()
}

#[test]
fn operations_of_a_processor_take_the_time_that_jaxs_own_reader_finds() {
    let Some(fresh) = fresh() else { return };
    let timeline = timeline_at(&fresh.profile());
    let found = analyze("hlo-operations", &json!({"limit": 100_000}), &[&timeline]);
    let mut ours = Figures::new();
    for row in list(&found["rows"]) {
        let name = ["program", "operation"].map(|field| row[field].as_str().unwrap());
        let sum = ours.entry(name.join(" ")).or_default();
        // Two programs of a name, e.g. copies of two shapes, are one for the library.
        sum.0 += row["events"].as_u64().unwrap();
        sum.1 += row["total_ns"].as_u64().unwrap();
    }
    assert_eq!(ours, told(&fresh.said["operations"]));
    // A program of a loop of ten turns ran as often as it was called.
    let cost = analyze("hlo-cost", &Value::Null, &[&timeline]);
    for program in PROGRAMS {
        let row = find(&cost["rows"], "program", &format!("jit_{program}"));
        assert_eq!(row["runs"], fresh.said["runs"], "{program}");
    }
}

#[test]
fn operations_come_from_the_lines_that_wrote_them() {
    let Some(fresh) = fresh() else { return };
    let timeline = timeline_at(&fresh.profile());
    let found = analyze("hlo-operations", &json!({"limit": 100_000}), &[&timeline]);
    let path = script("fresh.py");
    let text = std::fs::read_to_string(&path).unwrap();
    for program in ["matmuls", "convolution", "loop", "scan", "elementwise"] {
        let marked = format!("# {program}");
        let line = text.lines().position(|line| line.ends_with(&marked)).unwrap() + 1;
        let source = format!("{}:{line}", path.display());
        let name = format!("jit_{program}");
        let rows = list(&found["rows"]).filter(|row| row["program"] == name.as_str());
        let sources: Vec<&Value> = rows.map(|row| &row["source"]).collect();
        let is_there = sources.iter().any(|one| **one == source.as_str());
        assert!(is_there, "{source} in {sources:?}");
    }
}

#[test]
fn functions_of_python_are_those_of_jaxs_own_reader_and_stand_in_their_callers() {
    let Some(fresh) = fresh() else { return };
    let timeline = timeline_at(&fresh.profile());
    assert_eq!(python_functions(&timeline), told(&fresh.said["functions"]));
    let asked = json!({"weight": "cpu", "stacks": "python", "min_duration_us": 0, "max_depth": 500, "merge_numbered": false, "limit": 1_000_000});
    let graph = analyze("flame-graph", &asked, &[&timeline]);
    let all = graph["children"].as_array().unwrap();
    let mut frame = frame_of(all, "run_all").unwrap_or_else(|| panic!("no run_all in {all:?}"));
    for inside in ["block_until_ready", "try_to_block"] {
        let children = frame["children"].as_array().unwrap();
        frame = frame_of(children, inside).unwrap_or_else(|| panic!("no {inside} in {children:?}"));
    }
}

/// The frame of a function, wherever it is.
fn frame_of<'a>(frames: &'a [Value], function: &str) -> Option<&'a Value> {
    let ending = format!(" {function}");
    let is_it = |frame: &&Value| frame["name"].as_str().is_some_and(|name| name.ends_with(&ending));
    let inside = |frame: &'a Value| frame_of(frame["children"].as_array()?, function);
    frames.iter().find(is_it).or_else(|| frames.iter().find_map(inside))
}

fn python_functions(timeline: &Timeline) -> Figures {
    let mut found = Figures::new();
    let events = &timeline.capture.events[&Category::PythonFunction];
    for at in 0..events.len() {
        let sum = found.entry(events.name_of(at).to_owned()).or_default();
        sum.0 += 1;
        sum.1 += events.duration_ns[at];
    }
    found
}

#[test]
fn memory_that_a_running_program_holds_is_that_of_go_tool_pprof() {
    let Some(fresh) = fresh() else { return };
    let path = fresh.folder.join("memory.prof");
    let result = analyze("memory-profile", &json!({"limit": 100_000}), &[&timeline_at(&path)]);
    // The two arrays that the program holds, of 1 and 3 MiB.
    assert!(result["total_bytes"].as_u64().unwrap() >= 4 << 20, "{result}");
    let Some(told) = top(&[&path]) else { return };
    assert_eq!(functions(&result), told);
}
