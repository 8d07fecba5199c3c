//! NVIDIA's own libcupti, of every release that the machine has, behind a driver that is none: the
//! library refuses, and the program goes on. `FLOPWATCH_CUPTI_WHEELS` names a folder with wheels of
//! `nvidia-cuda-cupti` that are unpacked, a folder each.

use std::path::{Path, PathBuf};

use flopwatch_tracer_file::process::{Phase, Reason};
use flopwatch_tracer_file::wanted::Kinds;

use super::agent::{Agent, window};
use super::rig::{Program, Rig};

/// Every libcupti below a folder.
fn libraries(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            libraries(&path, found);
        } else if name.starts_with("libcupti.so.") {
            found.push(path);
        }
    }
}

#[test]
fn the_real_libraries_refuse_a_driver_that_is_none_and_the_program_goes_on() {
    let Some(folder) = std::env::var_os("FLOPWATCH_CUPTI_WHEELS") else {
        println!("skipped: FLOPWATCH_CUPTI_WHEELS names no folder with libcupti");
        return;
    };
    let mut found = Vec::new();
    libraries(Path::new(&folder), &mut found);
    found.sort();
    assert!(!found.is_empty());
    let without = Program::of(Rig::new(1305).bare()).ask("work 1000");
    for library in found {
        let name = library.file_name().unwrap().to_string_lossy().into_owned();
        let driver = match name.as_str() {
            "libcupti.so.11.8" => 11_080,
            "libcupti.so.12" => 12_080,
            _ => 13_000,
        };
        // As ours, and as the program's own.
        for is_own in [true, false] {
            let rig = Rig::new(1305).with("FLOPWATCH_FAKE_DRIVER", &driver);
            let mut program = rig.start();
            if is_own {
                std::fs::copy(&library, rig.path("own").join(&name)).unwrap();
            } else {
                assert_eq!(program.ask(&format!("load {}", library.display())), "load 1");
            }
            let mut agent = Agent::of(&rig);
            for _ in 0..2 {
                agent.order(window(Kinds::ALL));
                let phase = agent.settle(0);
                let process = agent.process(0);
                assert_eq!(phase, Phase::Refused, "{}: {process:?}", library.display());
                if is_own {
                    println!("{}: {:?} {}", library.display(), process.reason, process.result);
                }
                let is_expected = match process.reason {
                    Reason::Cupti => [15, 999].contains(&process.result),
                    reason => reason == Reason::ExcludedVersion,
                };
                assert!(is_expected, "{}: {process:?}", library.display());
            }
            assert_eq!(program.ask("work 1000"), without, "{}", library.display());
            assert_eq!(program.end().code(), Some(0), "{}", library.display());
        }
    }
}
