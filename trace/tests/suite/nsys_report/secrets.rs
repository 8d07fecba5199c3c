//! No environment, output or command line of a report is in what is made of it.

use flopwatch_trace::ReadLimits;
use flopwatch_trace::redact::REDACTED;

use super::writer::{PROCESS, THREAD};
use super::{read_bytes, sample};
use crate::capture::timeline_of;
use crate::message::new;
use crate::secrets::{decoded, holds};

const SECRET: &str = "planted-secret-that-nothing-may-tell";
const IN_A_NAME: &str = "planted0secret0inside0a0name";

/// A report with a secret in each place where reports have such, and one in the name of a range.
fn planted(secret: &str, name: &str) -> Vec<u8> {
    let mut report = sample();
    let variable = format!("DB={secret}");
    let property = new().number(1, 610).text(2, &variable);
    report.state = report.state.message(1, &new().message(2, &new().message(1, &property)));
    let file = |name: &str| new().number(1, PROCESS).text(2, name).text(3, secret);
    report.files = new().message(2, &file("stdout")).message(2, &file("env"));
    report.options = report
        .options
        .text(26, &variable)
        .text(32, &variable)
        .text(9, &variable);
    report.shown = report.shown.text(25, &variable).text(5, &variable).text(4, &variable);
    report.strings.push(variable.clone());
    report.system = report.system.message(9, &new().text(1, &variable));
    report.sections = vec![
        ("Telemetry", new().text(1, &variable).0),
        ("Profiling Preset Data", new().text(1, &variable).0),
    ];
    let process = new()
        .number(2, PROCESS)
        .text(6, &format!("/opt/run/train --key {secret}"))
        .text(5, secret)
        .text(7, secret)
        .text(8, secret)
        .text(9, secret)
        .text(10, &variable)
        .text(13, &variable);
    let range = new()
        .number(1, 59)
        .number(2, 40)
        .number(10, 50)
        .number(9, THREAD)
        .text(7, name)
        .message(8, &new().text(8, &format!("{{\"key\": \"{secret}\"}}")));
    let at = u64::try_from(report.strings.len()).unwrap();
    report.strings.push(format!("/home/{secret}/train"));
    let frame = new().number(1, 11).number(2, at).number(8, 1);
    let sampled = new().number(1, 78).number(11, THREAD).message(4, &frame);
    let report = report
        .event(104, &sampled)
        .event(113, &process)
        .event(110, &new().text(4, secret))
        .event(102, &range);
    report.bytes()
}

#[test]
fn a_secret_planted_where_reports_have_such_is_in_nothing_that_is_made_of_it() {
    let bytes = planted(SECRET, &format!("upload MY_TOKEN={IN_A_NAME} to s3"));
    assert!(holds(&bytes, SECRET) && holds(&bytes, IN_A_NAME));
    let capture = read_bytes(&bytes, &ReadLimits::default()).unwrap();
    assert_eq!(capture.redactions, 1);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("timeline.h5");
    let mut all = format!("{capture:?}").into_bytes();
    flopwatch_trace::timeline_file::write(&timeline_of(capture), &path).unwrap();
    all.extend(decoded(&path));
    for secret in [SECRET, IN_A_NAME] {
        assert!(!holds(&all, secret), "{secret}");
    }
    assert!(holds(&all, &format!("upload MY_TOKEN={REDACTED} to s3")));
    assert!(holds(&all, "train (100)"));
}

#[test]
fn the_search_for_planted_secrets_finds_what_a_range_is_called() {
    let bytes = planted(SECRET, &format!("upload {IN_A_NAME} to s3"));
    let capture = read_bytes(&bytes, &ReadLimits::default()).unwrap();
    assert!(holds(format!("{capture:?}").as_bytes(), IN_A_NAME));
    assert_eq!(capture.redactions, 0);
}
