//! Launches of Nsight Compute from inside, held against figures that NVIDIA's own tools state in
//! the same reports.

use serde_json::{Value, json};

use crate::captures::{analyze, timeline};
use crate::result::{assert_near, find, list, said};

const REPORTS: [&str; 3] = [
    "mojo-gtx1660ti/mojo_profile.ncu-rep",
    "indexspaces/indexspaces_profile_a.ncu-rep",
    "nukexc-gh200/profile_fastc.ncu-rep",
];

#[test]
fn two_launches_of_an_a40_stand_below_their_roofs_where_nvidias_own_percentages_put_them() {
    let Some(report) = timeline("indexspaces/indexspaces_profile_a.ncu-rep") else {
        return;
    };
    let found = analyze("roofline", &Value::Null, &[&report]);
    // Both do integer work alone: FP32 and FP64 were measured, and are zero.
    assert_eq!(found["unused"], json!(["fp64", "fp32"]));
    assert_eq!(list(&found["points"]).len(), 2);
    let [long, short] = [0, 1].map(|at: usize| &found["points"][at]);
    // By hand, of the report's metrics: 2,209,907,616 instructions in 8,974,464 ns; 4 a cycle on 84
    // multiprocessors at 1.303 GHz; 224.95 GB/s of 96 bytes a cycle at 7.234 GHz.
    let place = said(long, &["launch", "work", "bound"]);
    assert_eq!(place, json!([1, "instructions", "compute"]));
    for (figure, expected) in [
        ("work_per_second", 2_209_907_616.0 / 8_974_464e-9),
        ("peak_work_per_second", 4.0 * 84.0 * 1_303_050_697.114_454),
        ("peak_bytes_per_second", 96.0 * 7_233_798_772.457_794),
        ("intensity", 246.243_956_2e9 / 224.951_692_268_195_65e9),
    ] {
        let found = long[figure].as_f64().unwrap();
        let is_near = (found / expected - 1.0).abs() < 1e-6;
        assert!(is_near, "{figure}: {found} is not {expected}");
    }
    // `sm__inst_executed.avg.pct_of_peak_sustained_elapsed`, which the profiler counts from cycles
    // and not from time.
    assert_near(&long["reached_ratio"], 0.562_425_507_063, 1e-4);
    // The other writes: `dram__cycles_active.avg.pct_of_peak_sustained_elapsed`.
    assert_eq!(said(short, &["launch", "bound"]), json!([0, "memory"]));
    assert_near(&short["reached_ratio"], 0.956_989_104_202, 1e-4);
}

#[test]
fn no_launch_of_the_corpus_is_above_its_roof() {
    let mut points = 0;
    for name in REPORTS {
        let Some(report) = timeline(name) else { return };
        let found = analyze("roofline", &Value::Null, &[&report]);
        for point in list(&found["points"]) {
            assert!(point["reached_ratio"].as_f64().unwrap() <= 1.02, "{name}: {point}");
            points += 1;
        }
        if points == 0 {
            let reason = found["not_captured"][0]["reason"].as_str().unwrap();
            assert!(reason.contains("--set roofline"), "{name}");
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
    assert_near(&stall["cycles_per_instruction"], 24.316_966_953_836_88, 1e-9);
    assert_near(&stall["share"], 0.527, 5e-4);
    // 256 threads of 8 warps: 6 blocks fill 48 warps.
    let limit = &found["occupancy"]["limits"][0];
    assert_eq!(limit, &json!({"resource": "warps", "blocks": 6, "limits": true}));
    // 2,064,384 stores of 8,257,536 sectors.
    let access = json!({
        "memory": "global", "operation": "store", "requests": 2_064_384, "sectors": 8_257_536,
        "sectors_per_request": 4.0, "hit_ratio": 0.0, "bank_conflicts": null,
    });
    assert_eq!(found["accesses"], json!([access]));
    let written = find(&found["links"], "to", "DRAM");
    assert_eq!(said(written, &["bytes", "from"]), json!([303_704_704, "L2"]));
    // 17 instructions were executed, and warps were sampled at one behind them.
    assert_eq!(list(&found["instructions"]).len(), 18);
    let sum = |entries: &Value, field: &str| -> u64 { list(entries).filter_map(|of| of[field].as_u64()).sum() };
    // Their sums are the launch's own values.
    let sums = ["executed", "threads", "samples"].map(|field| sum(&found["instructions"], field));
    assert_eq!(sums, [35_094_528, 1_123_024_896, 48_443]);
    assert_eq!(list(&found["rules"]).len(), 7);
    let code = &found["code"];
    assert_eq!(code["machine_code_bytes"], 6912);
    let ptx = code["ptx"].as_str().unwrap();
    assert!(ptx.contains(".visible .entry _Z13julia__5_6739"), "{code}");
    assert_eq!(sum(&found["mix"]["opcodes"], "executed"), 35_094_528);
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
        let rule = find(&found["rules"], "rule", "SOLBottleneck");
        assert_eq!(rule["title"], title, "{name} {launch}");
    }
}
