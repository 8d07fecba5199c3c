//! `compare` as a pipeline runs it: what it prints, and how it ends.

use std::path::Path;
use std::process::{Command, Output};

fn compare(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_flopwatch"))
        .args(["compare", "--quiet"])
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("the program starts")
}

/// A trace of PyTorch whose steps have these lengths in us, with a kernel in each.
fn trace(folder: &Path, name: &str, steps: &[u64]) {
    let mut events = Vec::new();
    let mut start = 1000;
    for (number, length) in steps.iter().enumerate() {
        events.push(format!(
            r#"{{"ph":"X","cat":"user_annotation","name":"ProfilerStep#{number}","pid":1,"tid":1,"ts":{start},"dur":{length}}}"#
        ));
        events.push(format!(
            r#"{{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":{},"dur":{},"args":{{"device":0,"stream":7}}}}"#,
            start + 1,
            length - 10
        ));
        start += length;
    }
    let text = format!(r#"{{"schemaVersion": 1, "traceEvents": [{}]}}"#, events.join(","));
    std::fs::write(folder.join(name), text).expect("a trace is written");
}

#[test]
fn the_exit_code_says_the_verdict() {
    let folder = tempfile::tempdir().unwrap();
    trace(folder.path(), "before.json", &[100, 101, 102, 103, 104]);
    trace(folder.path(), "slower.json", &[110, 111, 112, 113, 114]);
    let cases: [(&[&str], i32); 8] = [
        (&["before.json", "slower.json"], 3),
        (&["before.json", "slower.json", "--threshold-percent", "20"], 0),
        (&["before.json", "slower.json", "--fail-on", "never"], 0),
        (&["slower.json", "before.json"], 0),
        (&["slower.json", "before.json", "--fail-on", "any-change"], 3),
        (&["before.json", "before.json", "--fail-on", "any-change"], 0),
        (&["before.json", "missing.json"], 1),
        (&["before.json"], 2),
    ];
    for (arguments, code) in cases {
        let output = compare(folder.path(), arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {error}");
        assert_eq!(output.stdout.is_empty(), matches!(code, 1 | 2), "{arguments:?}");
    }
}

#[test]
fn a_comparison_is_printed_for_people_and_written_for_programs() {
    let folder = tempfile::tempdir().unwrap();
    trace(folder.path(), "before.json", &[100, 101, 102, 103, 104]);
    trace(folder.path(), "after.json", &[90, 91, 92, 93, 94]);
    let table = compare(folder.path(), &["before.json", "after.json"]);
    let table = String::from_utf8_lossy(&table.stdout).into_owned();
    assert!(
        table.contains("improvement likely") && table.contains("gemm"),
        "{table}"
    );
    let json = compare(folder.path(), &["before.json", "after.json", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["verdict"], "improvement_likely");
    assert_eq!(json["kernels"][0]["difference_ns"], -10_000);
    let page = compare(
        folder.path(),
        &["before.json", "after.json", "--format", "html", "-o", "changes.html"],
    );
    assert_eq!(
        String::from_utf8_lossy(&page.stdout),
        "changes.html: improvement_likely\n"
    );
    let page = std::fs::read_to_string(folder.path().join("changes.html")).unwrap();
    assert!(page.starts_with("<!") && page.contains("gemm"), "{page}");
    let again = compare(folder.path(), &["before.json", "after.json", "-o", "changes.html"]);
    assert_eq!(again.status.code(), Some(1), "the page is not replaced without --force");
}
