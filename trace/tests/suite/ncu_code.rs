//! Machine code in reports of Nsight Compute, held against NVIDIA's own reader instruction by instruction.

use std::path::Path;
use std::process::Command;

use flopwatch_trace::model::KernelProfile;
use flopwatch_trace::{ReadLimits, ncu};
use serde_json::{Value, json};

use crate::nsys::corpus;

const REPORTS: [&str; 3] = [
    "mojo-gtx1660ti/mojo_profile.ncu-rep",
    "indexspaces/indexspaces_profile_a.ncu-rep",
    "nukexc-gh200/profile_fastc.ncu-rep",
];

/// What NVIDIA's reader says of the instructions of each launch; `None` without a Python that has it.
fn oracle(report: &Path, launches: &[KernelProfile]) -> Option<Vec<Value>> {
    let python = std::env::var_os("FLOPWATCH_PYTHON")?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/independent/ncu_code.py");
    let lengths = launches.iter().map(|launch| {
        let function = launch.function.as_ref().unwrap();
        function.bytes.to_string()
    });
    let lengths = lengths.collect::<Vec<_>>().join(",");
    let told = Command::new(python)
        .arg(script)
        .arg(report)
        .arg(lengths)
        .output()
        .unwrap();
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    Some(serde_json::from_slice(&told.stdout).unwrap())
}

#[test]
fn every_instruction_of_the_corpus_has_the_line_and_the_ptx_that_nvidias_reader_gives_it() {
    for report in REPORTS {
        let Some(path) = corpus(report) else { continue };
        let launches = ncu::read(&path, &ReadLimits::default()).unwrap().profiles;
        let Some(expected) = oracle(&path, &launches) else {
            println!("skipped: FLOPWATCH_PYTHON names no Python with ncu-report (cargo xtask setup makes one)");
            return;
        };
        assert_eq!(launches.len(), expected.len());
        let (mut places, mut ptx_lines, mut all) = (0, 0, 0);
        for (launch, told) in launches.iter().zip(&expected) {
            let function = launch.function.as_ref().unwrap();
            assert_eq!(told["entry"], function.address, "{report}: {}", launch.name);
            let ptx: Vec<&str> = launch.code.as_ref().map_or("", |code| &code.ptx).lines().collect();
            for (number, expected) in (0_u64..).zip(told["places"].as_array().unwrap()) {
                let offset = number * 16;
                let at = usize::try_from(number).unwrap();
                let place = function.line_at(offset).and_then(|line| line.place);
                let place = place.map(|place| {
                    let file = &function.files[usize::try_from(place.file).unwrap()];
                    json!([file, place.line])
                });
                assert_eq!(&place.clone().unwrap_or_default(), expected, "{report}: {offset:#x}");
                let line = function
                    .ptx_line_at(offset)
                    .map(|line| ptx[usize::try_from(line).unwrap() - 1]);
                let told = told["ptx"][at].as_str().unwrap();
                assert_eq!(line.unwrap_or_default().trim(), told.trim(), "{report}: {offset:#x}");
                places += usize::from(place.is_some());
                ptx_lines += usize::from(line.is_some());
                all += 1;
            }
        }
        println!("{report}: {all} instructions, {places} with a line, {ptx_lines} with PTX");
        assert_eq!(places > 0, report.starts_with("indexspaces"), "{report}");
    }
}
