//! The Mann–Whitney test and the shift against scipy and numpy.
//!
//! `FLOPWATCH_PYTHON` names a Python that has scipy; without it the one on the PATH is asked.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use flopwatch_overhead::{Alternative, hodges_lehmann, mann_whitney, shift};
use serde_json::{Value, json};

/// Reads pairs of samples and prints, for each, what the test compares. The interval is found
/// without our ordering of differences: by bisecting shifts for the p-value of scipy's own test.
const SCRIPT: &str = r#"
import json, sys
import numpy as np
from scipy.stats import mannwhitneyu
results = []
for x, y in json.load(sys.stdin):
    x, y = np.array(x), np.array(y)
    tests = [mannwhitneyu(x, y, alternative=a) for a in ("two-sided", "less", "greater")]
    middle = float(np.median(np.subtract.outer(x, y)))
    def end(step):
        near, far = middle, middle + step
        for _ in range(80):
            half = (near + far) / 2
            kept = mannwhitneyu(x - half, y, method="asymptotic").pvalue >= 0.05
            near, far = (half, far) if kept else (near, half)
        return near
    distinct = len(set(x)) == len(x) and len(set(y)) == len(y)
    ends = [end(-100.0), end(100.0)] if min(len(x), len(y)) >= 8 and distinct else None
    results.append({"u": tests[0].statistic, "p": [test.pvalue for test in tests], "shift": middle, "ends": ends})
json.dump(results, sys.stdout)
"#;

/// A Python with scipy, or a printed reason to skip.
fn python() -> Option<PathBuf> {
    let python = std::env::var_os("FLOPWATCH_PYTHON").map_or_else(|| PathBuf::from("python3"), PathBuf::from);
    let works = Command::new(&python).args(["-c", "import scipy.stats"]).output();
    if works.is_ok_and(|output| output.status.success()) {
        return Some(python);
    }
    println!("skipped: no Python with scipy on this machine (set FLOPWATCH_PYTHON to one)");
    None
}

/// Pairs of samples: small and large, apart and not, with few, many and only ties.
fn pairs() -> Vec<(Vec<f64>, Vec<f64>)> {
    let mut random = fastrand::Rng::with_seed(2);
    let mut pairs = Vec::new();
    for (nx, ny) in [
        (1, 1),
        (1, 9),
        (3, 30),
        (5, 6),
        (8, 8),
        (8, 60),
        (9, 9),
        (10, 10),
        (12, 25),
        (30, 60),
        (60, 200),
    ] {
        for (apart, steps) in [
            (0.0, None),
            (0.02, None),
            (0.5, None),
            (3.0, None),
            (0.1, Some(40.0)),
            (0.3, Some(4.0)),
            (0.0, Some(1.0)),
        ] {
            let mut sample = |size: usize, from: f64| -> Vec<f64> {
                (0..size)
                    .map(|_| {
                        let value: f64 = random.f64() + from;
                        steps.map_or(value, |steps| (value * steps).floor() / steps)
                    })
                    .collect()
            };
            pairs.push((sample(nx, apart), sample(ny, 0.0)));
        }
    }
    pairs
}

#[test]
fn the_test_and_the_shift_are_those_of_scipy() {
    let Some(python) = python() else { return };
    let pairs = pairs();
    let mut child = Command::new(python)
        .args(["-c", SCRIPT])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(json!(pairs).to_string().as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let expected: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(expected.len(), pairs.len());
    let (mut largest, mut intervals) = (0.0_f64, 0);
    let mut same = |what: &str, ours: f64, theirs: &Value, context: &str| {
        let apart = (ours - theirs.as_f64().unwrap()).abs();
        largest = largest.max(apart);
        assert!(apart <= 1e-9, "{what} of {context}: {ours} against {theirs}");
    };
    for ((x, y), expected) in pairs.iter().zip(&expected) {
        let context = format!("{} against {}, {x:?} {y:?}", x.len(), y.len());
        let alternatives = [Alternative::TwoSided, Alternative::Less, Alternative::Greater];
        for (at, alternative) in alternatives.into_iter().enumerate() {
            let ours = mann_whitney(x, y, alternative).unwrap();
            same("U", ours.u, &expected["u"], &context);
            same("p", ours.p, &expected["p"][at], &context);
        }
        same("shift", hodges_lehmann(x, y).unwrap(), &expected["shift"], &context);
        if expected["ends"].is_array() {
            let ours = shift(x, y, 1.0).unwrap();
            same("lower end", ours.low, &expected["ends"][0], &context);
            same("upper end", ours.high, &expected["ends"][1], &context);
            intervals += 1;
        }
    }
    println!(
        "{} pairs and {intervals} intervals, apart by at most {largest:e}",
        pairs.len()
    );
    assert!(intervals >= 20);
}
