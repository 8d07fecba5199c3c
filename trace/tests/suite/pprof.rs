//! Profiles in the format of pprof, of our own making and of the corpus.

use flopwatch_model::{Capture, SampleKind, StackFrame, StackProfile};
use flopwatch_trace::{Format, ReadLimits, detect, pprof};

use crate::capture::{read_as, timeline_of};
use crate::columns::through_a_file;
use crate::kineto::gzip_of;
use crate::limits::limited;
use crate::message::{Message, new};
use crate::nsys::corpus;

const TEXTS: [&str; 14] = [
    "",
    "allocations",
    "count",
    "space",
    "bytes",
    "kind",
    "buffer",
    "device",
    "cuda:0",
    "put",
    "/home/a/model.py",
    "f HF_TOKEN=abcdef",
    "inlined",
    "of no frame: MY_TOKEN=t0ps3cret",
];

fn kind(name: u64, unit: u64) -> Message {
    new().number(1, name).number(2, unit)
}

fn location(id: u64, functions: &[(u64, u64)]) -> Message {
    let lines = functions.iter();
    lines.fold(new().number(1, id), |location, (function, line)| {
        location.message(4, &new().number(1, *function).number(2, *line))
    })
}

fn function(id: u64, name: u64) -> Message {
    new().number(1, id).number(2, name).number(4, 10)
}

fn label(key: u64, text: u64) -> Message {
    new().number(1, key).number(2, text)
}

/// Two samples of JAX's kind, with lists in both of their forms, and a location without lines.
pub(crate) fn profile() -> Vec<u8> {
    let packed = new()
        .bytes(1, &[7, 8])
        // 1 and 300.
        .bytes(2, &[1, 0xac, 2])
        .message(3, &label(5, 6))
        .message(3, &label(7, 8));
    // The value is -1.
    let single = new()
        .number(1, 8)
        .number(1, 9)
        .number(2, 2)
        .number(2, u64::MAX)
        .message(3, &new().number(1, 5).number(3, 12));
    let profile = new()
        .message(1, &kind(1, 2))
        .message(1, &kind(3, 4))
        .message(2, &packed)
        .message(2, &single)
        .message(3, &new().number(1, 1).number(2, 0x1000))
        .message(4, &location(7, &[(1, 11)]))
        .message(4, &location(8, &[(3, 5), (2, 20)]))
        .message(4, &new().number(1, 9).number(3, 0xbeef))
        .message(5, &function(1, 9))
        .message(5, &function(2, 11))
        .message(5, &function(3, 12));
    let texts = TEXTS.iter().fold(profile, |profile, text| profile.text(6, text));
    texts.number(9, 1_700_000_000_000_000_000).number(14, 3).0
}

fn read(bytes: &[u8], limits: &ReadLimits) -> Result<Capture, String> {
    read_as("memory.prof", bytes, |path| pprof::read(path, limits))
}

/// Stacks by name and line.
fn stacks(profile: &StackProfile) -> Vec<Vec<(&str, i64)>> {
    let name = |frame: &StackFrame| (profile.text(frame.function), frame.line);
    let frame = |frame: &u32| name(&profile.frames[usize::try_from(*frame).unwrap()]);
    let stack = |stack: &Vec<u32>| -> Vec<(&str, i64)> { stack.iter().map(frame).collect() };
    profile.samples.iter().map(|sample| stack(&sample.stack)).collect()
}

#[test]
fn samples_have_their_stacks_values_and_labels() {
    let capture = read(&profile(), &ReadLimits::default()).unwrap();
    let found = capture.stacks.as_ref().unwrap();
    let is = |name: &str, unit: &str| SampleKind {
        name: name.to_owned(),
        unit: unit.to_owned(),
    };
    assert_eq!(found.kinds, [is("allocations", "count"), is("space", "bytes")]);
    assert_eq!(found.default_kind, Some(1));
    assert_eq!(found.taken_utc_ns, Some(1_700_000_000_000_000_000));
    let f = ("f HF_TOKEN=[redacted]", 20);
    // Of two lines of a location the first is inside the second.
    let inlined = ("inlined", 5);
    let expected = [[("put", 11), inlined, f], [inlined, f, ("0xbeef", 0)]];
    assert_eq!(stacks(found), expected);
    let values: Vec<&[i64]> = found.samples.iter().map(|sample| sample.values.as_slice()).collect();
    assert_eq!(values, [&[1, 300][..], &[2, -1]]);
    assert_eq!(found.label(&found.samples[0], "device"), Some("cuda:0"));
    assert_eq!(found.label(&found.samples[1], "kind"), None);
    assert_eq!(found.samples[1].labels[0].number, 12);
    // What no frame refers to is not kept.
    assert!(!found.texts.iter().any(|text| text.contains("of no frame")));
    assert_eq!(capture.redactions, 1);
    assert_eq!(read(&gzip_of(profile()), &ReadLimits::default()).unwrap(), capture);
    through_a_file(&timeline_of(capture));
}

#[test]
fn a_profile_that_is_cut_off_anywhere_is_refused_by_name() {
    let whole = profile();
    let expected = read(&whole, &ReadLimits::default()).unwrap().stacks.unwrap();
    let mut refused = 0;
    for end in 0..whole.len() {
        match read(&whole[..end], &ReadLimits::default()) {
            Err(error) => {
                assert!(error.contains("memory.prof"), "{error}");
                refused += 1;
            }
            // Without the last texts and fields nothing refers to what is missing.
            Ok(capture) => assert_eq!(capture.stacks.unwrap().samples, expected.samples),
        }
    }
    assert!(whole.len() - refused <= 4, "{refused} of {}", whole.len());
    let packed = gzip_of(&whole);
    for end in 2..packed.len() {
        read(&packed[..end], &ReadLimits::default()).unwrap_err();
    }
}

#[test]
fn a_profile_that_is_too_large_or_refers_to_nothing_is_refused() {
    let refusal = |bytes: &[u8], limits: ReadLimits| read(bytes, &limits).unwrap_err();
    let defaults = ReadLimits::default;
    for (limits, said) in [
        (limited(|of| of.max_events = 1), "more than 1 samples"),
        (limited(|of| of.max_events = 4), "more than 4 frames of stacks"),
        (limited(|of| of.max_rows = 2), "more than 2 frames"),
        (limited(|of| of.max_string_bytes = 9), "more than 9 bytes of strings"),
        (limited(|of| of.max_text_bytes = 50), "more than 50 bytes"),
        (limited(|of| of.max_table_rows = 5), "more than 5 entries"),
    ] {
        let error = refusal(&profile(), limits);
        assert!(error.contains(said), "{error}");
        let error = refusal(&gzip_of(profile()), limits);
        assert!(error.contains(said), "{error}");
    }
    let begin = || new().message(1, &kind(1, 2)).text(6, "").text(6, "a").text(6, "b");
    for (sample, said) in [
        (new().number(1, 5).number(2, 1), "a location is referred to"),
        (new(), "a value of a sample"),
        (new().number(2, 1).message(3, &label(9, 1)), "a text is referred to"),
        (new().bytes(2, &[0x80]), "damaged at byte"),
        (new().bytes(2, &[0xff; 10]), "damaged at byte"),
    ] {
        let error = refusal(&begin().message(2, &sample).0, defaults());
        assert!(error.contains(said), "{error}");
    }
    assert!(refusal(b"", defaults()).contains("is no profile"));
}

#[test]
fn a_profile_of_the_corpus_is_found_and_read() {
    let Some(path) = corpus("microjax/memory.prof") else {
        return;
    };
    assert_eq!(detect(&path).unwrap(), Some(Format::Pprof));
    let capture = pprof::read(&path, &ReadLimits::default()).unwrap();
    let profile = capture.stacks.as_ref().unwrap();
    assert_eq!(profile.samples.len(), 87);
    let samples = profile.samples.iter();
    let buffers = samples.filter(|sample| profile.label(sample, "device") == Some("cuda:0"));
    let bytes: Vec<i64> = buffers.map(|sample| sample.values[1]).collect();
    assert_eq!(bytes, [56, 16000, 16000, 8]);
    through_a_file(&timeline_of(capture));
}
