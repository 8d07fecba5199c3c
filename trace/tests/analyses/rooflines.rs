//! Rooflines of NVIDIA's own samples, held against what its rule says of them and against the
//! charts that `ncu --import` prints.

use std::path::Path;
use std::process::Command;

use flopwatch_model::RooflineSide;
use serde_json::Value;

use crate::captures::{analyze, timeline_at};
use crate::program::stdout_of;
use crate::result::list;

/// What the toolchain has fetched of Nsight Compute; `None`, with the reason printed, where it has
/// not.
pub(crate) fn folder(variable: &str) -> Option<std::path::PathBuf> {
    let found = std::env::var_os(variable).filter(|value| !value.is_empty());
    if found.is_none() {
        println!("skipped: {variable} is not set (cargo xtask setup fetches Nsight Compute)");
    }
    found.map(Into::into)
}

/// "The kernel achieved 12% of this device's fp32 peak performance and 3% of its fp64 peak
/// performance", of the rule's own message.
fn achieved(rules: &Value) -> (f64, f64) {
    let mut texts = list(rules).filter_map(|rule| rule["text"].as_str());
    let text = texts.find(|text| text.contains("fp32 peak performance")).unwrap();
    let percent = |kind: &str| {
        let before = text.split(&format!("% of {kind}")).next().unwrap();
        before.rsplit(' ').next().unwrap().parse::<f64>().unwrap()
    };
    (percent("this device's fp32"), percent("its fp64"))
}

#[test]
fn the_share_of_the_peak_is_the_one_that_nvidias_rule_states() {
    let Some(samples) = folder("FLOPWATCH_NCU_SAMPLES") else {
        return;
    };
    for name in [
        "instructionMix/sobelFloat.ncu-rep",
        "instructionMix/sobelDouble.ncu-rep",
    ] {
        let timeline = timeline_at(&samples.join(name));
        let found = analyze("roofline", &Value::Null, &[&timeline]);
        let rules = &analyze("profiled-kernel", &Value::Null, &[&timeline])["rules"];
        let (fp32, fp64) = achieved(rules);
        let mut kinds = Vec::new();
        for point in list(&found["points"]) {
            let expected = match point["work"].as_str().unwrap() {
                "fp32" => fp32,
                "fp64" => fp64,
                _ => continue,
            };
            let share = |done: &str, peak: &str| point[done].as_f64().unwrap() / point[peak].as_f64().unwrap();
            let percent = 100.0 * share("work_per_second", "peak_work_per_second");
            // The rule rounds to whole percent.
            assert!(
                (percent - expected).abs() <= 0.5,
                "{name}: {percent} and {expected}: {point}"
            );
            assert_eq!(point["work_defined_by"], "report");
            assert_eq!(point["bytes_defined_by"], "report");
            println!("{name}: {} {percent:.2} %, NVIDIA's rule {expected} %", point["work"]);
            kinds.push(point["work"].as_str().unwrap().to_owned());
        }
        assert!(kinds.iter().any(|kind| kind == "fp32"), "{name}: {kinds:?}");
    }
}

/// What `ncu --import` prints of a report.
pub(crate) fn imported(ncu: &Path, report: &Path, arguments: &[&str]) -> Vec<u8> {
    stdout_of(Command::new(ncu).arg("--import").arg(report).args(arguments))
}

/// Labels of roofs and points with the metrics of each, in the order that ncu prints.
fn printed(ncu: &Path, report: &Path) -> Vec<(String, Vec<String>)> {
    let arguments = [
        "--page",
        "details",
        "--print-details",
        "all",
        "--print-metric-name",
        "name",
    ];
    let text = imported(ncu, report, &arguments);
    let text = String::from_utf8_lossy(&text);
    let chart = text
        .split("Table Name : Floating Point Operations Roofline")
        .nth(1)
        .unwrap();
    let chart = chart.split("Section:").next().unwrap();
    let mut sides: Vec<(String, Vec<String>)> = Vec::new();
    for line in chart.lines().map(str::trim) {
        if line.ends_with("Roofline") || line.ends_with("Achieved Value") {
            sides.push((line.to_owned(), Vec::new()));
        }
        let metric = line.split_whitespace().next().unwrap_or_default();
        if let Some((_, metrics)) = sides.last_mut().filter(|_| metric.contains("__")) {
            metrics.push(metric.to_owned());
        }
    }
    for (_, metrics) in &mut sides {
        metrics.sort_unstable();
    }
    sides
}

#[test]
fn charts_are_those_that_ncu_prints_of_the_report() {
    let (Some(samples), Some(ncu)) = (folder("FLOPWATCH_NCU_SAMPLES"), folder("FLOPWATCH_NCU")) else {
        return;
    };
    let report = samples.join("instructionMix/sobelFloat.ncu-rep");
    let timeline = timeline_at(&report);
    let [chart] = timeline.capture.profiles[0].rooflines.as_slice() else {
        panic!("{:?}", timeline.capture.profiles[0].rooflines)
    };
    assert_eq!(chart.section, "SpeedOfLight_RooflineChart");
    let told = |side: &RooflineSide| {
        let metrics = [&side.work, &side.traffic].map(|value| value.metrics());
        let mut metrics: Vec<String> = metrics.concat().into_iter().map(str::to_owned).collect();
        metrics.sort_unstable();
        (side.label.clone(), metrics)
    };
    let found: Vec<_> = chart.roofs.iter().chain(&chart.points).map(told).collect();
    assert_eq!(found, printed(&ncu, &report));
}
