//! Reports of Nsight Compute, held against the pages that its own `ncu --import` writes of them.

use std::path::Path;
use std::process::Command;

use flopwatch_model::{KernelProfile, MetricValue};
use flopwatch_trace::{ReadLimits, ncu};

use crate::capture::read_as;
use crate::ncu_reports;

/// A page of a report as Nsight Compute writes it; `None`, with the reason printed, where there is
/// no Nsight Compute.
fn page(report: &Path, arguments: &[&str]) -> Option<Vec<u8>> {
    let Some(program) = std::env::var_os("FLOPWATCH_NCU").filter(|program| !program.is_empty()) else {
        println!("skipped: FLOPWATCH_NCU names no ncu (cargo xtask setup fetches one)");
        return None;
    };
    let ran = Command::new(program)
        .arg("--import")
        .arg(report)
        .arg("--csv")
        .args(arguments)
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stdout));
    Some(ran.stdout)
}

/// How much of our unit one of Nsight Compute's scaled units is: ours are bytes, ns and the like.
fn scale(unit: &str) -> f64 {
    let prefix = |part: &str| match part.split_at_checked(1) {
        Some(("n", "second")) => 1e-9,
        Some(("u", "second")) => 1e-6,
        Some(("m", "second")) => 1e-3,
        Some(("K", rest)) if !rest.is_empty() => 1e3,
        Some(("M", rest)) if !rest.is_empty() => 1e6,
        Some(("G", rest)) if !rest.is_empty() => 1e9,
        Some(("T", rest)) if !rest.is_empty() => 1e12,
        _ => 1.0,
    };
    match unit.split_once('/') {
        // "7.643 %/Kbyte" are 7643 % per byte: it puts the prefix of the figure where it can.
        Some(("%", below)) => prefix(below),
        Some((above, below)) => prefix(above) / prefix(below),
        None if unit.ends_with("second") => prefix(unit) * 1e9,
        None => prefix(unit),
    }
}

/// Nsight Compute's words for a unit, without what it scales by, as ours.
fn base(unit: &str) -> String {
    let word = |part: &str| {
        let plain = ["n", "u", "m", "K", "M", "G", "T"].iter().find_map(|prefix| {
            let rest = part.strip_prefix(prefix)?;
            ["second", "byte", "cycle", "sector", "inst", "request"]
                .contains(&rest)
                .then_some(rest)
        });
        plain.unwrap_or(part).to_owned()
    };
    match unit.split_once('/') {
        Some(("cycle" | "Kcycle" | "Mcycle" | "Gcycle", "second" | "msecond" | "usecond" | "nsecond")) => {
            "hz".to_owned()
        }
        Some((above, "second" | "msecond" | "usecond" | "nsecond")) => format!("{}/s", word(above)),
        Some((above, below)) => format!("{}/{below}", word(above)),
        None if unit.ends_with("second") => "ns".to_owned(),
        None => word(unit),
    }
}

/// Whether a number is what was printed: to half of its last digit, and what a double loses.
fn is_rounded(value: f64, printed: &str, scale: f64) -> bool {
    let decimals = printed.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let half = 0.5 * 0.1_f64.powi(i32::try_from(decimals).unwrap());
    let printed: f64 = printed.replace(',', "").parse().unwrap();
    (value / scale - printed).abs() <= half * 1.000_1 + printed.abs() * 1e-12
}

#[test]
fn every_value_of_the_corpus_is_that_of_the_raw_page_of_ncu_with_its_unit() {
    for (report, path) in ncu_reports::all() {
        let Some(csv) = page(&path, &["--page", "raw"]) else {
            return;
        };
        let profiles = ncu::read(&path, &ReadLimits::default()).unwrap().profiles;
        let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(csv.as_slice());
        let records: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        let [names, units, rows @ ..] = records.as_slice() else {
            panic!("{report}: no page")
        };
        assert_eq!(rows.len(), profiles.len(), "{report}");
        let (mut equal, mut with_unit, mut other_units) = (0, 0, Vec::new());
        for (row, profile) in rows.iter().zip(&profiles) {
            for ((name, unit), printed) in names.iter().zip(units).zip(row) {
                let Some(metric) = profile.metrics.get(name) else {
                    continue;
                };
                let same = match &metric.value {
                    MetricValue::Text(text) => text == printed,
                    number => is_rounded(number.number().unwrap(), printed, scale(unit)),
                };
                assert!(same, "{report}: {name}: {metric:?}, and ncu prints {printed} {unit}");
                equal += 1;
                if !metric.unit.is_empty() && !unit.is_empty() {
                    with_unit += 1;
                    if metric.unit != base(unit) {
                        other_units.push(format!("{name}: {} and {unit}", metric.unit));
                    }
                }
            }
            // What the page has and we lack is what no launch of the report has: ncu writes "no
            // data".
            let lacking =
                names.iter().zip(row).skip(11).filter(|(name, printed)| {
                    !profile.metrics.contains_key(*name) && !["", "no data"].contains(printed)
                });
            assert_eq!(lacking.collect::<Vec<_>>(), [], "{report}");
        }
        println!("{report}: {equal} values, {with_unit} units");
        let many = equal > 250 * profiles.len() && with_unit > 20 * profiles.len();
        assert!(many, "{report}: {equal} values, {with_unit} units");
        // Newer versions of Nsight Compute call some units otherwise.
        other_units.retain(|unit| !["%/", "branches"].iter().any(|known| unit.contains(known)));
        assert!(other_units.is_empty(), "{report}: {other_units:?}");
    }
}

/// Values that both readers have, of which ncu prints two digits behind the point at least.
fn in_common(report: &KernelProfile, page: &KernelProfile) -> usize {
    let mut equal = 0;
    for (name, of_page) in &page.metrics {
        let Some(metric) = report.metrics.get(name) else {
            continue;
        };
        let (Some(value), Some(printed)) = (metric.value.number(), of_page.value.number()) else {
            continue;
        };
        let difference = (value / scale(&of_page.unit) - printed).abs();
        let is_same = difference <= 0.005_001 + printed.abs() * 1e-12;
        assert!(is_same, "{name}: {metric:?}, and the page has {of_page:?}");
        equal += 1;
    }
    equal
}

#[test]
fn a_report_and_the_page_that_ncu_writes_of_it_are_the_same_launches() {
    for (report, path) in ncu_reports::all() {
        let Some(csv) = page(&path, &["--page", "raw"]) else {
            return;
        };
        let read = |path: &Path| ncu::read(path, &ReadLimits::default());
        let of_report = read(&path).unwrap().profiles;
        let of_page = read_as("raw.csv", csv, read).unwrap().profiles;
        assert_eq!(of_report.len(), of_page.len(), "{report}");
        for (one, other) in of_report.iter().zip(&of_page) {
            let shape = |of: &KernelProfile| (of.grid, of.block);
            assert_eq!(shape(one), shape(other), "{report}");
            let place = |of: &KernelProfile| (of.process, of.device, of.context, of.stream);
            assert_eq!(place(one), place(other), "{report}");
            assert!(in_common(one, other) > 200, "{report}");
        }
    }
}
