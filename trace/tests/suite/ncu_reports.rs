//! Reports of Nsight Compute to hold readers against: those of the corpus, and those of NVIDIA's
//! own samples, which come with it.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::nsys::corpus;
use crate::program::stdout_of;

/// Captures of other people: an NVIDIA GTX 1660 Ti, an A40, a GH200.
const CORPUS: [&str; 3] = [
    "mojo-gtx1660ti/mojo_profile.ncu-rep",
    "indexspaces/indexspaces_profile_a.ncu-rep",
    "nukexc-gh200/profile_fastc.ncu-rep",
];

/// NVIDIA's, of an RTX A4500: with lines, what was inlined, source text, and work of single and of
/// double precision.
const SAMPLES: [&str; 6] = [
    "instructionMix/sobelDouble.ncu-rep",
    "instructionMix/sobelFloat.ncu-rep",
    "sharedBankConflicts/transposeCoalesced.ncu-rep",
    "sharedBankConflicts/transposeNoBankConflicts.ncu-rep",
    "uncoalescedGlobalAccesses/addConstDouble.ncu-rep",
    "uncoalescedGlobalAccesses/addConstDouble3.ncu-rep",
];

/// A report of NVIDIA's samples; `None`, with the reason printed, where they are not there.
pub(crate) fn sample(name: &str) -> Option<PathBuf> {
    let Some(folder) = std::env::var_os("FLOPWATCH_NCU_SAMPLES").filter(|folder| !folder.is_empty()) else {
        println!("skipped: FLOPWATCH_NCU_SAMPLES names no samples of Nsight Compute (cargo xtask setup fetches them)");
        return None;
    };
    Some(Path::new(&folder).join(name))
}

/// All of them that are there, by their names.
pub(crate) fn all() -> Vec<(&'static str, PathBuf)> {
    let of_corpus = CORPUS.into_iter().filter_map(|name| Some((name, corpus(name)?)));
    let samples = SAMPLES.into_iter().map_while(|name| Some((name, sample(name)?)));
    of_corpus.chain(samples).collect()
}

/// What NVIDIA's reader says of the launches of a report, by a program of `independent`; `None`,
/// with the reason printed, without a Python that has it.
pub(crate) fn nvidia_says(script: &str, report: &Path, arguments: &[&str]) -> Option<Vec<Value>> {
    let Some(python) = std::env::var_os("FLOPWATCH_PYTHON") else {
        println!("skipped: FLOPWATCH_PYTHON names no Python with ncu-report (cargo xtask setup makes one)");
        return None;
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/independent");
    let mut program = Command::new(python);
    let told = stdout_of(program.arg(folder.join(script)).arg(report).args(arguments));
    Some(serde_json::from_slice(&told).unwrap())
}
