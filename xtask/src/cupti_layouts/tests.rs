use super::compare::{Finding, compare};
use super::headers::{Headers, Place, Record};
use flopwatch_tracer::layouts::{LAST_KIND, LAYOUTS, Layout};

/// The type of a version as the table has it.
fn record(layout: &Layout) -> Record {
    let place = |field: &flopwatch_tracer::layouts::Field| Place {
        name: field.name.to_owned(),
        at: field.at.try_into().unwrap(),
        bytes: field.bytes.try_into().unwrap(),
    };
    Record {
        bytes: layout.bytes.try_into().unwrap(),
        fields: layout.fields.iter().map(place).collect(),
    }
}

fn type_name(layout: &Layout, version: u32) -> String {
    match version {
        1 => layout.family.to_owned(),
        number => format!("{}{number}", layout.family),
    }
}

/// Headers that say what the table says.
fn known() -> Headers {
    let mut headers = Headers {
        version: 130_500,
        ..Headers::default()
    };
    for layout in &LAYOUTS {
        let kinds = layout.kinds.iter();
        headers
            .kinds
            .extend(kinds.map(|(name, number)| ((*name).to_owned(), u64::from(*number))));
        headers
            .records
            .insert(type_name(layout, layout.version), record(layout));
    }
    headers.kinds.insert("COUNT".to_owned(), u64::from(LAST_KIND) + 1);
    headers
}

/// The one thing that is found.
fn only(headers: &Headers) -> Finding {
    let mut found = compare(headers);
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

#[test]
fn a_release_that_the_table_has_changes_nothing() {
    assert_eq!(compare(&known()), []);
}

#[test]
fn a_new_kind_and_a_longer_record_are_new_and_move_nothing() {
    let mut headers = known();
    headers.kinds.insert("DREAM".to_owned(), u64::from(LAST_KIND) + 1);
    headers.kinds.insert("COUNT".to_owned(), u64::from(LAST_KIND) + 2);
    assert_eq!(only(&headers), Finding::New(format!("kind DREAM ({})", LAST_KIND + 1)));
    let mut headers = known();
    let mut longer = record(&LAYOUTS[0]);
    longer.bytes += 8;
    longer.fields.push(Place {
        name: "mood".to_owned(),
        at: 248,
        bytes: 8,
    });
    headers.records.insert("Kernel14".to_owned(), longer);
    let Finding::New(what) = only(&headers) else {
        panic!("it moves something");
    };
    assert!(
        what.starts_with("Kernel: version 14 of 256 bytes") && what.ends_with("mood at 248"),
        "{what}"
    );
}

#[test]
fn a_field_at_another_place_a_narrower_one_and_one_that_is_gone_have_moved() {
    let with = |change: fn(&mut Record)| {
        let mut headers = known();
        change(headers.records.get_mut("Memcpy7").unwrap());
        match only(&headers) {
            Finding::Moved(what) => what,
            Finding::New(what) => panic!("{what}"),
        }
    };
    assert!(with(|record| record.fields[4].at = 16).contains("bytes is at 16, and was at 8"));
    assert!(with(|record| record.fields[4].bytes = 4).contains("bytes has 4 bytes, and had 8"));
    assert!(with(|record| drop(record.fields.remove(4))).contains("bytes is gone"));
}

#[test]
fn a_kind_with_another_number_and_a_type_that_is_gone_have_moved() {
    let mut headers = known();
    headers.kinds.insert("MEMSET".to_owned(), 22);
    assert_eq!(
        only(&headers),
        Finding::Moved("kind MEMSET is 22, and was 2".to_owned())
    );
    let mut headers = known();
    headers.records.remove("Stream");
    assert_eq!(
        only(&headers),
        Finding::Moved("CUpti_ActivityStream is gone".to_owned())
    );
}

#[test]
fn an_older_release_lacks_what_was_appended_since() {
    let mut headers = known();
    headers.records.remove("GraphTrace2");
    let mut older = record(&LAYOUTS[7]);
    older.bytes = 48;
    older.fields.retain(|field| field.at < 48);
    headers.records.insert("GraphTrace".to_owned(), older);
    assert_eq!(compare(&headers), []);
}

/// Tests that start processes.
mod crate_tests {
    use super::super::{MAX_DEPTH, below};
    use super::*;
    use std::fmt::Write as _;
    use std::path::Path;

    /// A made-up header with the types of the table, `version` of each.
    fn header(version: impl Fn(&Layout) -> u32) -> String {
        let mut text = "#include <cuda.h>\n#include <cupti_events.h>\ntypedef enum {\n".to_owned();
        for (name, number) in LAYOUTS.iter().flat_map(|layout| layout.kinds) {
            writeln!(text, "CUPTI_ACTIVITY_KIND_{name} = {number},").unwrap();
        }
        text.push_str("CUPTI_ACTIVITY_KIND_FORCE_INT = 0x7fffffff\n} CUpti_ActivityKind;\n");
        for layout in &LAYOUTS {
            text.push_str("typedef struct __attribute__((packed)) {\n");
            let mut at = 0;
            for field in layout.fields {
                let (name, gap) = (field.name, field.at - at);
                if gap > 0 {
                    writeln!(text, "char gap{at}[{gap}];").unwrap();
                }
                // One that only its nameless union's members have a name for.
                match field.bytes {
                    1 => writeln!(text, "union {{ uint8_t {name}; uint8_t both_{name}; }};"),
                    2 => writeln!(text, "uint16_t {name};"),
                    4 => writeln!(text, "uint32_t {name};"),
                    8 => writeln!(text, "uint64_t {name};"),
                    _ => writeln!(text, "CUuuid {name};"),
                }
                .unwrap();
                at = field.at + field.bytes;
            }
            if layout.bytes > at {
                writeln!(text, "char rest[{}];", layout.bytes - at).unwrap();
            }
            writeln!(text, "}} CUpti_Activity{};", type_name(layout, version(layout))).unwrap();
        }
        text
    }

    fn read(header: &str) -> Headers {
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        put("cupti_result.h", "typedef int CUptiResult;\n");
        put("cupti_version.h", "#define CUPTI_API_VERSION 130600\n");
        put("cupti_activity.h", header);
        Headers::read(folder.path()).unwrap()
    }

    #[test]
    fn the_compilers_places_are_those_of_a_made_up_header() {
        let headers = read(&header(|layout| layout.version));
        assert_eq!(headers.version, 130_600);
        assert_eq!(headers.kinds["CONCURRENT_KERNEL"], 10);
        assert_eq!(compare(&headers), []);
        let newer = read(&header(|layout| layout.version + u32::from(layout.family == "Device")));
        let Finding::New(what) = only(&newer) else {
            panic!("it moves something");
        };
        assert!(what.contains("Device: version 7"), "{what}");
        let moved = read(&header(|layout| layout.version).replace("uint64_t end;", "char wider[4]; uint64_t end;"));
        let harms = compare(&moved);
        let ends = harms
            .iter()
            .filter(|harm| matches!(harm, Finding::Moved(what) if what.contains(": end is at")));
        assert_eq!(ends.count(), 8, "{harms:?}");
    }

    #[test]
    fn a_type_that_the_stub_lacks_is_an_error_that_names_the_stub() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["cupti_result.h", "cupti_version.h"] {
            std::fs::write(folder.path().join(name), "#define CUPTI_API_VERSION 1\n").unwrap();
        }
        std::fs::write(folder.path().join("cupti_activity.h"), "CUnicorn *unicorn;\n").unwrap();
        let error = format!("{:#}", Headers::read(folder.path()).unwrap_err());
        assert!(error.contains("cuda.h") && error.contains("CUnicorn"), "{error}");
    }

    #[test]
    fn nothing_that_is_read_has_moved_in_nvidias_own_headers() {
        let Some(folder) = std::env::var_os("FLOPWATCH_CUPTI_WHEELS") else {
            println!("skipped: FLOPWATCH_CUPTI_WHEELS names no folder with headers of CUPTI");
            return;
        };
        let mut found = Vec::new();
        below(Path::new(&folder), MAX_DEPTH, &mut found).unwrap();
        assert!(!found.is_empty());
        for headers in found {
            assert_eq!(compare(&Headers::read(&headers).unwrap()), [], "{}", headers.display());
        }
    }
}
