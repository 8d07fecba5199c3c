//! Machine code in reports of Nsight Compute, held against NVIDIA's own reader instruction by
//! instruction.

use std::path::Path;

use flopwatch_model::KernelProfile;
use flopwatch_trace::{ReadLimits, ncu};
use serde_json::{Value, json};

use crate::ncu_reports;

/// What NVIDIA's reader says of the instructions of each launch; `None` without a Python that has
/// it.
fn oracle(report: &Path, launches: &[KernelProfile]) -> Option<Vec<Value>> {
    let lengths = launches.iter().map(|launch| {
        let function = launch.function.as_ref().unwrap();
        function.bytes.to_string()
    });
    let lengths = lengths.collect::<Vec<_>>().join(",");
    ncu_reports::nvidia_says("ncu_code.py", report, &[&lengths])
}

#[test]
fn every_instruction_of_the_corpus_has_the_line_and_the_ptx_that_nvidias_reader_gives_it() {
    for (report, path) in ncu_reports::all() {
        let launches = ncu::read(&path, &ReadLimits::default()).unwrap().profiles;
        let Some(expected) = oracle(&path, &launches) else {
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
                let line = function.ptx_line_at(offset);
                let line = line.map(|line| ptx[usize::try_from(line).unwrap() - 1]);
                let told = told["ptx"][at].as_str().unwrap();
                assert_eq!(line.unwrap_or_default().trim(), told.trim(), "{report}: {offset:#x}");
                places += usize::from(place.is_some());
                ptx_lines += usize::from(line.is_some());
                all += 1;
            }
        }
        println!("{report}: {all} instructions, {places} with a line, {ptx_lines} with PTX");
        let without = ["mojo", "nukexc"].iter().any(|name| report.starts_with(name));
        assert_eq!(places == 0, without, "{report}");
    }
}

#[test]
fn source_files_that_a_report_holds_are_those_of_nvidias_samples() {
    let Some(path) = ncu_reports::sample("instructionMix/sobelDouble.ncu-rep") else {
        return;
    };
    let launches = ncu::read(&path, &ReadLimits::default()).unwrap().profiles;
    let code = launches[0].code.as_ref().unwrap();
    let function = launches[0].function.as_ref().unwrap();
    let [file] = code.files.as_slice() else {
        panic!("{:?}", code.files.len())
    };
    assert!(file.path.ends_with("/instructionMix.cu"), "{}", file.path);
    assert_eq!(function.files[0], file.path);
    // The samples' sources are beside their reports.
    let beside = std::fs::read_to_string(path.with_file_name("instructionMix.cu")).unwrap();
    let plain = |text: &str| text.replace("\r\n", "\n").trim_end().to_owned();
    assert_eq!(plain(&file.text), plain(&beside));
    let is_inlined = function.lines.iter().any(|line| line.inlined.len() > 1);
    assert!(is_inlined, "something is inlined in it");
}
