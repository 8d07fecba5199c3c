//! `flopwatch` against independent readings of captures: `trace/oracles`, programs in Python that
//! know the formats and none of our code.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{SystemTime, UNIX_EPOCH};

/// Longest time of the sample of the corpus, in seconds. No file is begun behind it; the longest
/// takes 20 s.
const SECONDS: u64 = 60;

fn oracles() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("oracles")
}

/// The Python that the oracles run in, or a printed reason to skip.
fn python() -> Option<PathBuf> {
    let python = std::env::var_os("FLOPWATCH_PYTHON").map(PathBuf::from);
    if python.is_none() {
        println!("skipped: FLOPWATCH_PYTHON names no Python with h5py (cargo xtask setup makes one)");
    }
    python
}

/// What the oracles say of the captures in a folder of `../shared`; `None`, with the reason
/// printed, where they cannot be asked here.
fn compare(folder: &str, options: &[&str]) -> Option<Output> {
    let captures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared").join(folder);
    if !captures.is_dir() {
        println!("skipped (corpus): ../shared/{folder} is not there");
        return None;
    }
    let python = python()?;
    let Some(program) = std::env::var_os("FLOPWATCH_PROGRAM") else {
        println!("skipped: FLOPWATCH_PROGRAM names no flopwatch (cargo xtask test builds one)");
        return None;
    };
    let mut command = Command::new(python);
    command.arg("-B").arg(oracles()).arg("--program").arg(program);
    let output = command.args(options).arg(captures).output().unwrap();
    println!("{}", String::from_utf8_lossy(&output.stdout));
    Some(output)
}

fn assert_equal(output: &Output) {
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn the_oracles_figures_of_traces_made_by_hand_are_those_that_were_counted() {
    let Some(python) = python() else { return };
    let tests = oracles().join("by_hand.py");
    let output = Command::new(python).arg("-B").arg(tests).output().unwrap();
    assert_equal(&output);
}

#[test]
fn flopwatch_says_of_a_sample_of_the_corpus_what_the_oracles_say() {
    // Another sample each day. Its number is printed: `cargo xtask oracle --seconds --seed` takes
    // it.
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let day = (since.as_secs() / 86_400).to_string();
    let seconds = SECONDS.to_string();
    if let Some(output) = compare("corpus", &["--seconds", &seconds, "--seed", &day]) {
        assert_equal(&output);
    }
}

#[test]
fn flopwatch_says_of_every_case_what_the_oracles_say() {
    if let Some(output) = compare("cases", &[]) {
        assert_equal(&output);
    }
}
