//! Text of machine code in reports of Nsight Compute: by NVIDIA's own disassembler, and by ones
//! that do not do their work.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use flopwatch_test_harness::script;
use serde_json::Value;

use crate::ONE_AT_A_TIME;
use crate::given::shared;

/// A report of the corpus, or one of NVIDIA's samples.
fn found(name: &str) -> Option<PathBuf> {
    if name.starts_with("instructionMix") {
        return std::env::var_os("FLOPWATCH_NCU_SAMPLES").map(|folder| Path::new(&folder).join(name));
    }
    shared(&format!("corpus/{name}"))
}

fn tool(variable: &str) -> Option<PathBuf> {
    let path = std::env::var_os(variable)
        .map(PathBuf::from)
        .filter(|path| path.is_file());
    if path.is_none() {
        println!("skipped: {variable} names no program (cargo xtask setup fetches one)");
    }
    path
}

/// A command with a disassembler; an empty path is none.
fn flopwatch(arguments: &[&str], disassembler: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flopwatch"));
    command.args(arguments).env_remove("FLOPWATCH_NVDISASM");
    if !disassembler.as_os_str().is_empty() {
        command.arg("--nvdisasm").arg(disassembler);
    }
    let ran = command.output().expect("the program starts");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    ran
}

/// The JSON of a launch.
fn launch(capture: &Path, id: u64, disassembler: &Path) -> Value {
    let (capture, id) = (capture.to_string_lossy(), format!("launch={id}"));
    let arguments = [
        "analyze",
        "profiled-kernel",
        &capture,
        "--param",
        &id,
        "--param",
        "limit=100000",
        "--format",
        "json",
    ];
    serde_json::from_slice(&flopwatch(&arguments, disassembler).stdout).expect("JSON")
}

/// What NVIDIA's reader gives for the same instructions.
fn oracle(python: &Path, report: &Path, bytes: &[u64]) -> Vec<Value> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../trace/tests/suite/independent/ncu_code.py");
    let bytes: Vec<String> = bytes.iter().map(u64::to_string).collect();
    let told = Command::new(python)
        .arg(script)
        .arg(report)
        .arg(bytes.join(","))
        .output()
        .expect("it starts");
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    serde_json::from_slice(&told.stdout).expect("JSON")
}

/// Text without what the two disassemblers write each in its way: hints of reuse, blanks, commas,
/// where a branch to itself leads.
fn plain(text: &str) -> String {
    let text = text.replace(".reuse", "").replace("`(.L_x_0) ", " ").replace(',', " ");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Addresses of a kernel that was loaded at `entry`, as offsets.
fn from_zero(text: &str, entry: u64) -> String {
    let words = text.split(' ').map(|word| {
        let address = word
            .strip_prefix("0x")
            .and_then(|digits| u64::from_str_radix(digits, 16).ok());
        match address
            .and_then(|address| address.checked_sub(entry))
            .filter(|_| entry > 0)
        {
            Some(offset) if offset < 1 << 20 => format!("{offset:#x}"),
            _ => word.to_owned(),
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn every_instruction_of_the_corpus_has_the_text_that_nvidias_reader_gives_it() {
    let _turn = ONE_AT_A_TIME.blocking_lock();
    let (Some(disassembler), Some(python)) = (tool("FLOPWATCH_NVDISASM"), tool("FLOPWATCH_PYTHON")) else {
        return;
    };
    for (report, bytes) in [
        ("mojo-gtx1660ti/mojo_profile.ncu-rep", vec![512, 256, 512, 256]),
        ("indexspaces/indexspaces_profile_a.ncu-rep", vec![512, 25_984]),
        ("nukexc-gh200/profile_fastc.ncu-rep", vec![49_920]),
        ("instructionMix/sobelDouble.ncu-rep", vec![4096]),
        ("instructionMix/sobelFloat.ncu-rep", vec![4096]),
    ] {
        let Some(path) = found(report) else { continue };
        // What a conversion keeps is what the report itself gives.
        let folder = tempfile::tempdir().expect("a folder");
        let timeline = folder.path().join("timeline.h5");
        flopwatch(
            &[
                "convert",
                &path.to_string_lossy(),
                &timeline.to_string_lossy(),
                "--quiet",
            ],
            &disassembler,
        );
        let mut equal = 0;
        for (id, told) in (0..).zip(oracle(&python, &path, &bytes)) {
            let found = launch(&timeline, id, Path::new(""));
            assert!(!found["not_captured"].to_string().contains("SASS"), "{found}");
            let entry = told["entry"].as_u64().expect("an address");
            let instructions = found["instructions"].as_array().expect("a list");
            let expected = told["sass"].as_array().expect("a list");
            assert_eq!(instructions.len(), expected.len(), "{report} {id}");
            for (instruction, expected) in instructions.iter().zip(expected) {
                let text = plain(instruction["text"].as_str().expect("a text"));
                let expected = from_zero(&plain(expected.as_str().expect("a text")), entry);
                assert_eq!(text, expected, "{report} {id} {instruction}");
                equal += 1;
            }
            if id == 0 {
                assert_eq!(launch(&path, id, &disassembler), found, "{report}");
            }
        }
        println!("{report}: {equal} instructions");
    }
}

#[test]
fn a_disassembler_that_does_not_do_its_work_costs_the_text_alone() {
    let _turn = ONE_AT_A_TIME.blocking_lock();
    let Some(report) = shared("corpus/indexspaces/indexspaces_profile_a.ncu-rep") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("nvdisasm");
    for (text, expected) in [
        ("echo 'nvdisasm fatal : no such image' >&2; exit 2", "no such image"),
        ("head -c 100000 /dev/urandom", "wrote no instruction"),
        ("exec sleep 600", "took longer than 10s"),
    ] {
        script::write(&program, text);
        let found = launch(&report, 0, &program);
        let missing = found["not_captured"].as_array().expect("a list");
        let reason = missing
            .iter()
            .find(|missing| missing["what"] == "text of instructions (SASS)")
            .expect("it is said");
        assert!(
            reason["reason"].as_str().expect("a text").contains(expected),
            "{reason}"
        );
        // Figures by address and by line are there all the same.
        assert_eq!(found["instructions"].as_array().map(Vec::len), Some(18));
        assert_eq!(found["line_coverage"]["samples_with_line"], 48_443);
    }
    let found = launch(&report, 0, Path::new("/nowhere/nvdisasm"));
    assert!(
        found["not_captured"].to_string().contains("nvidia-cuda-nvdisasm"),
        "{}",
        found["not_captured"]
    );
}
