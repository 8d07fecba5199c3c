//! No secret of a trace, a profile or a page leaves through what their readers keep.

use flopwatch_trace::redact::REDACTED;
use flopwatch_trace::{ReadLimits, read, timeline_file};

use crate::capture::timeline_of;
use crate::secrets::{decoded, exports, holds};
use crate::{formats, kineto, xplane};

const UNREFERRED: &str = "planted-secret-that-no-event-refers-to";
const IN_A_NAME: &str = "planted0secret0inside0a0name";

/// Files with `name` as the name of an event, and a secret where no event refers to it.
fn files(name: &str) -> Vec<(&'static str, Vec<u8>)> {
    let events = format!(
        r#"{{"ph": "X", "cat": "user_annotation", "name": "{name}", "pid": "{name}", "tid": 1, "ts": 4458676522690, "dur": 3,
            "args": {{"Concrete Inputs": ["{UNREFERRED}"], "Call stack": "{UNREFERRED}", "env": "A_TOKEN={UNREFERRED}"}}}},
           {{"ph": "M", "name": "process_labels", "pid": 100, "args": {{"labels": "{UNREFERRED}"}}}},
           {{"ph": "M", "name": "process_name", "pid": 100, "args": {{"name": "{name}"}}}},
           {{"ph": "C", "name": "c", "pid": 0, "ts": 4458676522690, "args": {{"{name}": 1}}}},{}"#,
        kineto::EVENTS
    );
    let trace = kineto::document(&events).replace("/tmp/x.json", UNREFERRED);
    let mut space = xplane::space(name);
    space.extend(xplane::warning(UNREFERRED));
    let page = formats::details(name)
        .replace("python3.11", UNREFERRED)
        .replace("than", name);
    vec![
        ("packed.json.gz", kineto::gzip_of(&trace)),
        ("trace.json", trace.into_bytes()),
        ("host.xplane.pb", space),
        ("details.csv", page.into_bytes()),
    ]
}

/// Everything that comes of a file: what its reader holds, and what the timeline file decodes to.
fn published(content: &[u8], file: &str) -> (Vec<u8>, u64) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(file);
    std::fs::write(&path, content).unwrap();
    let capture = read(&path, &ReadLimits::default()).unwrap();
    let redactions = capture.redactions;
    let mut all = format!("{capture:?}").into_bytes();
    let output = folder.path().join("timeline.h5");
    let timeline = timeline_of(capture);
    timeline_file::write(&timeline, &output).unwrap();
    all.extend(decoded(&output));
    for (_, bytes) in exports(&timeline) {
        all.extend(bytes);
    }
    (all, redactions)
}

#[test]
fn a_planted_secret_is_in_nothing_that_these_readers_give() {
    for (file, content) in files(&format!("upload MY_TOKEN={IN_A_NAME} to s3")) {
        let (all, redactions) = published(&content, file);
        for secret in [UNREFERRED, IN_A_NAME] {
            assert!(!holds(&all, secret), "{file}: {secret}");
        }
        assert!(holds(&all, &format!("upload MY_TOKEN={REDACTED} to s3")), "{file}");
        assert!(redactions > 0, "{file}");
    }
}

#[test]
fn the_search_finds_what_is_not_redacted() {
    // The same text without a telling pattern is an ordinary name: it must come out, or the test
    // above proves nothing.
    for (file, content) in files(&format!("upload {IN_A_NAME} to s3")) {
        let (all, redactions) = published(&content, file);
        assert!(holds(&all, IN_A_NAME), "{file}");
        assert_eq!(redactions, 0, "{file}");
        assert!(
            content.starts_with(b"\x1f\x8b") || holds(&content, UNREFERRED),
            "{file}"
        );
    }
}
