//! Launches of Nsight Compute from inside, held against figures that NVIDIA's own tools state in
//! the same reports.

use serde_json::{Value, json};

use crate::captures::{analyze, timeline};

const REPORTS: [&str; 3] = [
    "mojo-gtx1660ti/mojo_profile.ncu-rep",
    "indexspaces/indexspaces_profile_a.ncu-rep",
    "nukexc-gh200/profile_fastc.ncu-rep",
];

fn close(value: &Value, expected: f64) -> bool {
    value
        .as_f64()
        .is_some_and(|value| (value / expected - 1.0).abs() < 1e-6)
}

#[test]
fn two_launches_of_an_a40_stand_below_their_roofs_where_nvidias_own_percentages_put_them() {
    let Some(report) = timeline("indexspaces/indexspaces_profile_a.ncu-rep") else {
        return;
    };
    let found = analyze("roofline", &Value::Null, &[&report]);
    // Both do integer work alone: FP32 and FP64 were measured, and are zero.
    assert_eq!(found["unused"], json!(["fp64", "fp32"]));
    let points = found["points"].as_array().unwrap();
    assert_eq!(points.len(), 2);
    let [long, short] = [&points[0], &points[1]];
    // By hand, of the report's metrics: 2,209,907,616 instructions in 8,974,464 ns; 4 a cycle on 84
    // multiprocessors at 1.303 GHz; 224.95 GB/s of 96 bytes a cycle at 7.234 GHz.
    assert_eq!(
        (&long["launch"], &long["work"], &long["bound"]),
        (&json!(1), &json!("instructions"), &json!("compute"))
    );
    assert!(
        close(&long["work_per_second"], 2_209_907_616.0 / 8_974_464e-9),
        "{long}"
    );
    assert!(
        close(&long["peak_work_per_second"], 4.0 * 84.0 * 1_303_050_697.114_454),
        "{long}"
    );
    assert!(
        close(&long["peak_bytes_per_second"], 96.0 * 7_233_798_772.457_794),
        "{long}"
    );
    assert!(
        close(&long["intensity"], 246.243_956_2e9 / 224.951_692_268_195_65e9),
        "{long}"
    );
    // `sm__inst_executed.avg.pct_of_peak_sustained_elapsed`, which the profiler counts from cycles
    // and not from time.
    assert!(
        (long["reached_ratio"].as_f64().unwrap() - 0.562_425_507_063).abs() < 1e-4,
        "{long}"
    );
    // The other writes: `dram__cycles_active.avg.pct_of_peak_sustained_elapsed`.
    assert_eq!((&short["launch"], &short["bound"]), (&json!(0), &json!("memory")));
    assert!(
        (short["reached_ratio"].as_f64().unwrap() - 0.956_989_104_202).abs() < 1e-4,
        "{short}"
    );
}

#[test]
fn no_launch_of_the_corpus_is_above_its_roof() {
    let mut points = 0;
    for name in REPORTS {
        let Some(report) = timeline(name) else { return };
        let found = analyze("roofline", &Value::Null, &[&report]);
        for point in found["points"].as_array().unwrap() {
            assert!(point["reached_ratio"].as_f64().unwrap() <= 1.02, "{name}: {point}");
            points += 1;
        }
        if points == 0 {
            assert!(
                found["not_captured"][0]["reason"]
                    .as_str()
                    .unwrap()
                    .contains("--set roofline"),
                "{name}"
            );
        }
    }
    assert!(points > 0);
}

#[test]
fn a_capture_held_against_itself_moves_nowhere() {
    let Some(report) = timeline("indexspaces/indexspaces_profile_a.ncu-rep") else {
        return;
    };
    let found = analyze("roofline", &Value::Null, &[&report, &report]);
    let expected = json!([
        {"from": 0, "to": 2, "work_ratio": 1.0, "intensity_ratio": 1.0},
        {"from": 1, "to": 3, "work_ratio": 1.0, "intensity_ratio": 1.0},
    ]);
    assert_eq!(found["moves"], expected);
}

#[test]
fn a_launch_from_inside_says_what_nvidias_rules_say_of_it() {
    let Some(report) = timeline("indexspaces/indexspaces_profile_a.ncu-rep") else {
        return;
    };
    let found = analyze("profiled-kernel", &json!({"launch": 0}), &[&report]);
    assert_eq!(found["device"], "NVIDIA A40");
    // Rule SOLBottleneck: "greater than 80.0% of the available compute or memory performance".
    assert_eq!(found["speed_of_light"]["limiter"], "saturated");
    let busiest = &found["speed_of_light"]["memory_parts"][0];
    assert_eq!(
        busiest["metric"],
        "dram__cycles_active.avg.pct_of_peak_sustained_elapsed"
    );
    // Rule CPIStall: "24.3 cycles ... waiting after an EXIT instruction ... 52.7% of the total
    // average of 46.1 cycles".
    let stall = &found["stalls"][0];
    assert_eq!(stall["reason"], "drain");
    assert!(
        (stall["cycles_per_instruction"].as_f64().unwrap() - 24.316_966_953_836_88).abs() < 1e-9,
        "{stall}"
    );
    assert!((stall["share"].as_f64().unwrap() - 0.527).abs() < 5e-4, "{stall}");
    // 256 threads of 8 warps: 6 blocks fill 48 warps.
    let limit = &found["occupancy"]["limits"][0];
    assert_eq!(limit, &json!({"resource": "warps", "blocks": 6, "limits": true}));
    // 2,064,384 stores of 8,257,536 sectors.
    let access = json!({
        "memory": "global", "operation": "store", "requests": 2_064_384, "sectors": 8_257_536,
        "sectors_per_request": 4.0, "hit_ratio": 0.0, "bank_conflicts": null,
    });
    assert_eq!(found["accesses"], json!([access]));
    let written = found["links"]
        .as_array()
        .unwrap()
        .iter()
        .find(|link| link["to"] == "DRAM")
        .unwrap();
    assert_eq!(
        (&written["bytes"], &written["from"]),
        (&json!(303_704_704), &json!("L2"))
    );
    // 17 instructions were executed, and warps were sampled at one behind them.
    let instructions = found["instructions"].as_array().unwrap();
    assert_eq!(instructions.len(), 18);
    let sum = |field: &str| -> u64 { instructions.iter().filter_map(|of| of[field].as_u64()).sum() };
    // Their sums are the launch's own values.
    assert_eq!(
        (sum("executed"), sum("threads"), sum("samples")),
        (35_094_528, 1_123_024_896, 48_443)
    );
    assert_eq!(found["rules"].as_array().unwrap().len(), 7);
    let code = &found["code"];
    assert_eq!(code["machine_code_bytes"], 6912);
    assert!(
        code["ptx"]
            .as_str()
            .unwrap()
            .contains(".visible .entry _Z13julia__5_6739"),
        "{code}"
    );
    let opcodes: u64 = found["mix"]["opcodes"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|of| of["executed"].as_u64())
        .sum();
    assert_eq!(opcodes, 35_094_528);
}

#[test]
fn each_limiter_of_the_corpus_is_that_of_nvidias_rule() {
    // The titles of rule SOLBottleneck.
    for (name, launch, limiter, title) in [
        ("mojo-gtx1660ti/mojo_profile.ncu-rep", 0, "grid_too_small", "Small Grid"),
        (
            "indexspaces/indexspaces_profile_a.ncu-rep",
            0,
            "saturated",
            "High Throughput",
        ),
        (
            "indexspaces/indexspaces_profile_a.ncu-rep",
            1,
            "compute",
            "High Compute Throughput",
        ),
        ("nukexc-gh200/profile_fastc.ncu-rep", 0, "saturated", "High Throughput"),
    ] {
        let Some(report) = timeline(name) else { return };
        let found = analyze("profiled-kernel", &json!({"launch": launch}), &[&report]);
        assert_eq!(found["speed_of_light"]["limiter"], limiter, "{name} {launch}");
        let rules = found["rules"].as_array().unwrap();
        let rule = rules.iter().find(|rule| rule["rule"] == "SOLBottleneck").unwrap();
        assert_eq!(rule["title"], title, "{name} {launch}");
    }
}
