//! No secret leaves through a file of ours.

use std::path::Path;

use bytes::Bytes;
use flopwatch_analysis::export::{self, ExportFormat, Table};
use flopwatch_model::{Capture, Timeline};
use flopwatch_summary::summarise;
use flopwatch_trace::redact::REDACTED;
use flopwatch_trace::timeline_file;
use hdf5::types::{IntSize, TypeDescriptor, VarLenUnicode};
use hdf5::{Dataset, Group, LocationType};
use parquet::file::reader::{FileReader, SerializedFileReader};

use crate::capture::timeline_of;
use crate::export::{Export, Finished, Kernel, Nvtx, Process, Schema, global, text};

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
    let process = Process {
        globalPid: global(1, 0),
        pid: 1,
        name: text(&format!("/bin/train --{environment}")),
    };
    Export::new(Schema::V2023, &[(1, "gemm"), (2, &environment), (3, UNREFERRED)])
        .table("CUPTI_ACTIVITY_KIND_KERNEL", &[kernel])
        .table("NVTX_EVENTS", &[range])
        .table("PROCESSES", &[process])
        .capture_options(&[("PROCESS_0:ARGUMENT_0", &environment)])
        .pairs("TARGET_INFO_SYSTEM_ENV", &[("EnvironmentVariables", &environment)])
        .finish()
}

/// Every string that a file decodes to, and its bytes as they are.
pub(crate) fn decoded(path: &Path) -> Vec<u8> {
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
    match dataset.dtype().unwrap().to_descriptor().unwrap() {
        TypeDescriptor::VarLenUnicode => {
            for value in dataset.read_raw::<VarLenUnicode>().unwrap() {
                all.extend(value.as_bytes());
                all.push(b'\n');
            }
        }
        // The summary.
        TypeDescriptor::Unsigned(IntSize::U1) => all.extend(dataset.read_raw::<u8>().unwrap()),
        _ => {}
    }
}

pub(crate) fn holds(haystack: &[u8], needle: &str) -> bool {
    memchr::memmem::find(haystack, needle.as_bytes()).is_some()
}

/// The summary in each of its forms.
fn summaries(timeline: &Timeline) -> [String; 3] {
    let summary = summarise(timeline);
    let json = summary.to_json().unwrap();
    [json, summary.to_csv(usize::MAX), summary.render(10)]
}

/// Everything that is published of a capture: the decoded file, the summary in each of its forms.
fn published(capture: Capture, path: &Path) -> Vec<u8> {
    let timeline = crate::capture::published(capture);
    timeline_file::write(&timeline, path).unwrap();
    let mut all = decoded(path);
    for text in summaries(&timeline) {
        all.extend(text.as_bytes());
    }
    for (_, bytes) in exports(&timeline) {
        all.extend(bytes);
    }
    all
}

/// The bytes of every format for other programs; those of Parquet decoded, for they are deflated.
pub(crate) fn exports(timeline: &Timeline) -> Vec<(&'static str, Vec<u8>)> {
    let all = ExportFormat::ALL.iter().copied().map(|format| {
        let mut bytes = Vec::new();
        export::export(timeline, format, Table::Events, &mut bytes).unwrap();
        if format == ExportFormat::Parquet {
            let reader = SerializedFileReader::new(Bytes::from(bytes)).unwrap();
            bytes = format!("{:?}", reader.metadata()).into_bytes();
            for row in reader.get_row_iter(None).unwrap() {
                bytes.extend(row.unwrap().to_string().into_bytes());
            }
        }
        (format.name(), bytes)
    });
    all.collect()
}

/// The same capture out of both containers.
fn captures(export: &Finished) -> [(&'static str, Capture); 2] {
    [
        ("hdf", export.read().unwrap()),
        ("sqlite", export.read_sqlite().unwrap()),
    ]
}

#[test]
fn a_planted_secret_is_in_no_output_byte() {
    let export = export(&format!("upload MY_TOKEN={IN_A_NAME} to s3"));
    for (container, capture) in captures(&export) {
        assert_eq!(capture.redactions, 1, "{container}");
        let all = published(capture, &export.beside("timeline.h5"));
        for secret in [UNREFERRED, IN_A_NAME, "a-host-that-is-nobody's-business"] {
            assert!(!holds(&all, secret), "{container}: {secret}");
        }
        // The name itself is there, less its secret.
        let name = format!("upload MY_TOKEN={REDACTED} to s3");
        assert!(holds(&all, &name), "{container}");
    }
}

#[test]
fn the_search_for_planted_secrets_finds_what_is_not_redacted() {
    // The same text without a telling pattern is an ordinary name: it must come out of every
    // output, or the test above proves nothing.
    let control = export(&format!("upload {IN_A_NAME} to s3"));
    for (container, capture) in captures(&control) {
        let timeline = timeline_of(capture.clone());
        for (format, bytes) in exports(&timeline) {
            if format == ExportFormat::Kernels.name() {
                // No kernel profiler was at work, so it is empty.
                assert!(bytes.is_empty(), "{container}");
                continue;
            }
            assert!(holds(&bytes, IN_A_NAME), "{container}: {format}");
        }
        for text in summaries(&timeline) {
            assert!(text.contains(IN_A_NAME), "{container}: {text}");
        }
        let path = control.beside("timeline.h5");
        published(capture, &path);
        assert!(holds(&decoded(&path), IN_A_NAME), "{container}");
    }
    // And the secrets that no event refers to are in both containers.
    let file = crate::export::unlocked().open(control.path()).unwrap();
    let strings = file.dataset("StringIds").unwrap();
    let strings = strings.read_raw::<crate::export::StringId>().unwrap();
    assert!(strings.iter().any(|row| row.value.as_str() == UNREFERRED));
    assert!(holds(&std::fs::read(control.sqlite()).unwrap(), UNREFERRED));
}
