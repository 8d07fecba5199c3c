//! Sums by source line of NVIDIA's own samples, held against the source page that `ncu --import`
//! writes of them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use flopwatch_model::Timeline;
use serde_json::{Value, json};

use crate::captures::{analyze, timeline_at};
use crate::result::list;
use crate::rooflines::{folder, imported};

/// Samples, executed instructions and threads.
type Sums = [u64; 3];

/// The page: per line its text, and per line and address what it prints there.
#[derive(Default)]
struct SourcePage {
    texts: BTreeMap<u64, String>,
    instructions: BTreeMap<(u64, u64), Sums>,
}

fn printed(ncu: &Path, report: &Path) -> SourcePage {
    let arguments = ["--page", "source", "--print-source", "cuda,sass", "--csv"];
    let page = imported(ncu, report, &arguments);
    let mut builder = csv::ReaderBuilder::new();
    let mut reader = builder.has_headers(false).flexible(true).from_reader(page.as_slice());
    let records: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    let head = records.iter().find(|record| &record[0] == "Line No").unwrap();
    let column = |name: &str| head.iter().position(|known| known == name).unwrap();
    let columns = ["# Samples", "Instructions Executed", "Thread Instructions Executed"].map(column);
    let (mut page, mut line) = (SourcePage::default(), 0);
    for record in records.iter().filter(|record| record.len() == head.len()) {
        if let Ok(number) = record[0].parse() {
            line = number;
            page.texts.insert(line, record[1].trim().to_owned());
        } else if let Some(digits) = record[2].strip_prefix("0x") {
            let address = u64::from_str_radix(digits, 16).unwrap();
            let sums = columns.map(|column| record[column].parse().unwrap());
            page.instructions.insert((line, address), sums);
        }
    }
    page
}

/// The lines of a result with their sums.
fn lines(found: &Value) -> BTreeMap<u64, Sums> {
    let lines = list(&found["source_lines"]).map(|line| {
        let number = |field: &str| line[field].as_u64().unwrap_or(0);
        (number("line"), ["samples", "executed", "threads"].map(number))
    });
    lines.collect()
}

/// The line that each address counts at here.
fn counted(timeline: &Timeline) -> impl Fn(u64) -> u64 + '_ {
    let function = timeline.capture.profiles[0].function.as_ref().unwrap();
    |address| {
        let line = function.line_at(address - function.address).unwrap();
        line.place.unwrap().line.into()
    }
}

#[test]
fn each_line_has_the_sums_that_ncu_prints_for_its_instructions() {
    let (Some(samples), Some(ncu)) = (folder("FLOPWATCH_NCU_SAMPLES"), folder("FLOPWATCH_NCU")) else {
        return;
    };
    for name in [
        "instructionMix/sobelDouble.ncu-rep",
        "instructionMix/sobelFloat.ncu-rep",
        "sharedBankConflicts/transposeNoBankConflicts.ncu-rep",
        "uncoalescedGlobalAccesses/addConstDouble3.ncu-rep",
    ] {
        let report = samples.join(name);
        let timeline = timeline_at(&report);
        let found = analyze("profiled-kernel", &json!({"limit": 100_000}), &[&timeline]);
        let page = printed(&ncu, &report);
        let line_of = counted(&timeline);
        // An address that the table of lines gives several lines is printed below each: the page
        // counts it more than once.
        let addresses: BTreeSet<u64> = page.instructions.keys().map(|(_, address)| *address).collect();
        let twice = page.instructions.len() - addresses.len();
        let mut expected: BTreeMap<u64, Sums> = BTreeMap::new();
        for ((line, address), sums) in &page.instructions {
            if line_of(*address) == *line {
                let all = expected.entry(*line).or_default();
                *all = [0, 1, 2].map(|at| all[at] + sums[at]);
            }
        }
        let ours = lines(&found);
        assert_eq!(ours, expected, "{name}");
        for line in list(&found["source_lines"]) {
            let text = &page.texts[&line["line"].as_u64().unwrap()];
            assert_eq!(line["text"].as_str().unwrap_or(text), text, "{name}");
        }
        // Ours add up to the launch.
        let coverage = &found["line_coverage"];
        let sum: u64 = ours.values().map(|sums| sums[0]).sum();
        assert_eq!(coverage["samples"], sum, "{name}");
        println!(
            "{name}: {} lines, {} instructions, {twice} of them below two lines",
            ours.len(),
            addresses.len()
        );
    }
}
