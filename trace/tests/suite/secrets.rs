//! No secret leaves through a file of ours.

use std::path::Path;

use flopwatch_trace::redact::REDACTED;
use flopwatch_trace::summary::summarise;
use flopwatch_trace::timeline_file;
use hdf5::types::{TypeDescriptor, VarLenUnicode};
use hdf5::{Dataset, Group, LocationType};

use crate::export::{Export, Finished, Kernel, NameValue, Nvtx, Process, Schema, global, text};

const UNREFERRED: &str = "planted-secret-that-no-event-refers-to";
const IN_A_NAME: &str = "planted0secret0inside0a0name";

/// An export that holds secrets where nsys puts them, and one in the name of a range.
fn export(range: &str) -> Finished {
    let environment = format!("DB_PASSWORD={UNREFERRED}");
    let kernel = Kernel {
        start: 1,
        end: 2,
        demangledName: 1,
        globalPid: global(1, 0),
        ..Kernel::default()
    };
    let range = Nvtx {
        start: 1,
        end: 2,
        eventType: 59,
        text: text(range),
        globalTid: global(1, 2),
        ..Nvtx::default()
    };
    let argument = NameValue {
        name: text("PROCESS_0:ARGUMENT_0"),
        value: text(&environment),
    };
    let variable = NameValue {
        name: text("EnvironmentVariables"),
        value: text(&environment),
    };
    let process = Process {
        globalPid: global(1, 0),
        pid: 1,
        name: text(&format!("/bin/train --{environment}")),
    };
    Export::new(Schema::V2023, &[(1, "gemm"), (2, &environment), (3, UNREFERRED)])
        .table("CUPTI_ACTIVITY_KIND_KERNEL", &[kernel])
        .table("NVTX_EVENTS", &[range])
        .table("PROCESSES", &[process])
        .table("META_DATA_CAPTURE", &[argument])
        .table("TARGET_INFO_SYSTEM_ENV", &[variable])
        .finish()
}

/// Every string that a file decodes to, and its bytes as they are.
fn decoded(path: &Path) -> Vec<u8> {
    let mut all = std::fs::read(path).unwrap();
    visit(&crate::export::unlocked().open(path).unwrap(), &mut all);
    all
}

fn visit(group: &Group, all: &mut Vec<u8>) {
    for name in group.attr_names().unwrap() {
        let value = group.attr(&name).unwrap();
        if value.dtype().unwrap().to_descriptor().unwrap() == TypeDescriptor::VarLenUnicode {
            all.extend(value.read_scalar::<VarLenUnicode>().unwrap().as_bytes());
        }
    }
    for name in group.member_names().unwrap() {
        all.extend(name.as_bytes());
        match group.loc_type_by_name(&name).unwrap() {
            LocationType::Group => visit(&group.group(&name).unwrap(), all),
            _ => dataset(&group.dataset(&name).unwrap(), all),
        }
    }
}

fn dataset(dataset: &Dataset, all: &mut Vec<u8>) {
    if dataset.dtype().unwrap().to_descriptor().unwrap() == TypeDescriptor::VarLenUnicode {
        for value in dataset.read_raw::<VarLenUnicode>().unwrap() {
            all.extend(value.as_bytes());
            all.push(b'\n');
        }
    }
}

fn holds(haystack: &[u8], needle: &str) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle.as_bytes())
}

/// Everything that is published of an export: the decoded file, the summary as JSON and as text.
fn published(export: &Finished) -> Vec<u8> {
    let timeline = export.timeline();
    let path = export.beside("timeline.h5");
    timeline_file::write(&timeline, &path).unwrap();
    let summary = summarise(&timeline);
    let mut all = decoded(&path);
    all.extend(summary.to_json().unwrap().as_bytes());
    all.extend(summary.render(10).as_bytes());
    all
}

#[test]
fn a_planted_secret_is_in_no_output_byte() {
    let export = export(&format!("upload MY_TOKEN={IN_A_NAME} to s3"));
    let all = published(&export);
    for secret in [UNREFERRED, IN_A_NAME, "a-host-that-is-nobody's-business"] {
        assert!(!holds(&all, secret), "{secret}");
    }
    // The name itself is there, less its secret, and the replacement is counted.
    assert!(holds(&all, &format!("upload MY_TOKEN={REDACTED} to s3")));
    assert_eq!(export.timeline().capture.redactions, 1);
}

#[test]
fn the_search_for_planted_secrets_finds_what_is_not_redacted() {
    // The same text without a telling pattern is an ordinary name: it must come out, or the test above proves nothing.
    let all = published(&export(&format!("upload {IN_A_NAME} to s3")));
    assert!(holds(&all, IN_A_NAME));
    let export = export("upload");
    let strings = crate::export::unlocked()
        .open(export.path())
        .unwrap()
        .dataset("StringIds")
        .unwrap();
    let strings = strings.read_raw::<crate::export::StringId>().unwrap();
    assert!(strings.iter().any(|row| row.value.as_str() == UNREFERRED));
}
