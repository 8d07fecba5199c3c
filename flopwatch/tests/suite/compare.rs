//! `compare` as a pipeline runs it: what it prints, and how it ends.

use std::path::Path;
use std::process::Output;

use crate::mcp::trace;
use crate::program::{run_in, stderr, stdout};

fn compare(folder: &Path, arguments: &[&str]) -> Output {
    run_in(folder, &[&["compare", "--quiet"], arguments].concat())
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
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", stderr(&output));
        assert_eq!(output.stdout.is_empty(), matches!(code, 1 | 2), "{arguments:?}");
    }
}

#[test]
fn a_comparison_is_printed_for_people_and_written_for_programs() {
    let folder = tempfile::tempdir().unwrap();
    trace(folder.path(), "before.json", &[100, 101, 102, 103, 104]);
    trace(folder.path(), "after.json", &[90, 91, 92, 93, 94]);
    let table = stdout(&compare(folder.path(), &["before.json", "after.json"]));
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
    assert_eq!(stdout(&page), "changes.html: improvement_likely\n");
    let page = std::fs::read_to_string(folder.path().join("changes.html")).unwrap();
    assert!(page.starts_with("<!") && page.contains("gemm"), "{page}");
    let again = compare(folder.path(), &["before.json", "after.json", "-o", "changes.html"]);
    assert_eq!(again.status.code(), Some(1), "the page is not replaced without --force");
}
