use std::collections::BTreeMap;

use flopwatch_analysis_testing::metrics;
use flopwatch_model::{
    Instances, InstructionText, KernelCode, KernelFunction, LineStart, RuleKind, Scope, SourceFile, SourceLocation,
    Speedup, ValueList,
};
use flopwatch_report::Layout;
use flopwatch_report::page::{Block, text};

use super::page::plain;
use super::*;

fn launch(id: u64, duration_ns: f64) -> KernelProfile {
    KernelProfile {
        id,
        name: "gemm".to_owned(),
        metrics: metrics(&[("gpu__time_duration.sum", duration_ns, "ns")]),
        ..KernelProfile::default()
    }
}

fn details(profiles: Vec<KernelProfile>, params: &ProfiledKernelParams) -> LaunchDetails {
    let mut timeline = Timeline::default();
    timeline.capture.profiles = profiles;
    of(&timeline, params)
}

#[test]
fn the_launch_that_took_longest_is_shown_unless_one_is_named() {
    let all = || vec![launch(3, 10.0), launch(4, 30.0), launch(9, 30.0)];
    assert_eq!(details(all(), &ProfiledKernelParams::default()).launch, Some(4));
    let named = |id| ProfiledKernelParams {
        launch: Some(id),
        ..ProfiledKernelParams::default()
    };
    assert_eq!(details(all(), &named(9)).launch, Some(9));
    let absent = details(all(), &named(5));
    assert_eq!(absent.launch, None);
    assert!(
        absent.not_captured[0].reason.contains("no launch 5"),
        "{:?}",
        absent.not_captured
    );
    let none = details(Vec::new(), &named(5));
    assert!(none.not_captured[0].reason.contains(".ncu-rep"));
}

#[test]
fn what_was_not_measured_is_said_with_the_section_that_has_it() {
    let found = details(vec![launch(0, 1.0)], &ProfiledKernelParams::default());
    let what: Vec<&str> = found.not_captured.iter().map(|missing| missing.what.as_str()).collect();
    let expected = [
        "speed of light",
        "occupancy",
        "caches and memory",
        "loads and stores",
        "why warps waited",
        "instructions by opcode",
        "figures of instructions",
        "text of instructions (SASS)",
        "source lines",
    ];
    assert_eq!(what, expected);
    assert!(found.not_captured[1].reason.contains("--section Occupancy"));
}

#[test]
fn occupancy_is_limited_by_what_fits_fewest_blocks() {
    let mut profile = launch(0, 1.0);
    profile.metrics.extend(metrics(&[
        ("launch__occupancy_limit_registers", 8.0, "block"),
        ("launch__occupancy_limit_shared_mem", 5.0, "block"),
        ("launch__occupancy_limit_warps", 5.0, "block"),
        ("launch__occupancy_limit_blocks", 16.0, "block"),
    ]));
    let found = details(vec![profile], &ProfiledKernelParams::default());
    let limits: Vec<(&str, u64, bool)> = found
        .occupancy
        .limits
        .iter()
        .map(|limit| (limit.resource.as_str(), limit.blocks, limit.limits))
        .collect();
    let expected = [
        ("shared_mem", 5, true),
        ("warps", 5, true),
        ("registers", 8, false),
        ("blocks", 16, false),
    ];
    assert_eq!(limits, expected);
}

#[test]
fn loads_that_were_done_have_their_sectors_and_others_no_row() {
    let mut profile = launch(0, 1.0);
    profile.metrics.extend(metrics(&[
        ("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", 10.0, ""),
        ("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", 160.0, ""),
        ("l1tex__t_requests_pipe_lsu_mem_global_op_st.sum", 0.0, ""),
    ]));
    let found = details(vec![profile], &ProfiledKernelParams::default());
    let [access] = found.accesses.as_slice() else {
        panic!("{:?}", found.accesses)
    };
    assert_eq!((access.memory.as_str(), access.operation.as_str()), ("global", "load"));
    assert_eq!(
        (access.requests, access.sectors, access.sectors_per_request),
        (10, Some(160), Some(16.0))
    );
}

fn list(keys: &[u64], values: &[u64]) -> Instances {
    Instances {
        keys: ValueList::Integers(keys.to_vec()),
        values: ValueList::Integers(values.to_vec()),
    }
}

/// Five instructions: two of line 12, one of line 7 that was inlined, one without a line and one
/// that was never executed.
fn with_lines() -> KernelProfile {
    let location = |line| SourceLocation { file: 0, line };
    let start = |offset_bytes, location, inlined: &[SourceLocation]| LineStart {
        offset_bytes,
        place: location,
        inlined: inlined.to_vec(),
    };
    let function = KernelFunction {
        address: 0x700,
        bytes: 80,
        architecture: "sm_86".to_owned(),
        files: vec!["/src/gemm.cu".to_owned()],
        lines: vec![
            start(0, Some(location(12)), &[]),
            start(0x10, Some(location(7)), &[location(3), location(7)]),
            start(0x20, Some(location(12)), &[]),
            start(0x30, None, &[]),
        ],
        instructions: ["MOV R1, R2", "FFMA R0, R0, R0, 1", "STG.E [R2.64], R0", "NOP", "EXIT"]
            .iter()
            .enumerate()
            .map(|(number, text)| InstructionText {
                offset_bytes: u64::try_from(number).unwrap() * 16,
                text: (*text).to_owned(),
            })
            .collect(),
        ..KernelFunction::default()
    };
    let mut profile = launch(0, 1.0);
    profile.function = Some(std::sync::Arc::new(function));
    let file = SourceFile {
        path: "/src/gemm.cu".to_owned(),
        text: "\n\n\n\n\n\n    sum = fma(a, b, sum);\n".to_owned(),
    };
    profile.code = Some(std::sync::Arc::new(KernelCode {
        files: vec![file],
        ..KernelCode::default()
    }));
    let addresses = [0x700, 0x710, 0x720, 0x730];
    profile.instances = BTreeMap::from([
        ("inst_executed".to_owned(), list(&addresses, &[8, 8, 8, 4])),
        (
            "smsp__pcsamp_sample_count".to_owned(),
            list(&addresses, &[1, 50, 39, 10]),
        ),
        (
            "smsp__pcsamp_warps_issue_stalled_wait".to_owned(),
            list(&addresses, &[1, 50, 9, 0]),
        ),
        (
            "smsp__pcsamp_warps_issue_stalled_drain".to_owned(),
            list(&addresses, &[0, 0, 30, 10]),
        ),
    ]);
    profile
}

#[test]
fn figures_of_instructions_are_summed_by_source_line() {
    let found = details(vec![with_lines()], &ProfiledKernelParams::default());
    let lines: Vec<_> = found
        .source_lines
        .iter()
        .map(|line| {
            (
                line.line,
                line.instructions,
                line.executed,
                line.samples,
                line.stall.as_deref(),
            )
        })
        .collect();
    let expected = [
        (7, 1, Some(8), Some(50), Some("wait")),
        (12, 2, Some(16), Some(40), Some("drain")),
    ];
    assert_eq!(lines, expected);
    let coverage = LineCoverage {
        instructions: 5,
        instructions_with_line: 3,
        samples: 100,
        samples_with_line: 90,
    };
    assert_eq!(found.line_coverage, Some(coverage));
    let texts: Vec<Option<&str>> = found.source_lines.iter().map(|line| line.text.as_deref()).collect();
    assert_eq!(texts, [Some("sum = fma(a, b, sum);"), None]);
    let hot = &found.instructions[1];
    assert_eq!(hot.source.as_deref(), Some("/src/gemm.cu:7"));
    assert_eq!(hot.inlined, ["/src/gemm.cu:3", "/src/gemm.cu:7"]);
    assert_eq!(hot.text.as_deref(), Some("FFMA R0, R0, R0, 1"));
    // What was never executed is shown too: it is part of the kernel.
    let last = found.instructions.last().unwrap();
    assert_eq!((last.text.as_deref(), last.executed), (Some("EXIT"), None));
    assert!(!found.not_captured.iter().any(|missing| missing.what.contains("SASS")));
    let shown = text::render(&page::of(&found), Layout::default());
    for part in ["gemm.cu:3 ← gemm.cu:7", "████████"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

#[test]
fn machine_code_without_text_or_lines_says_why() {
    let mut profile = with_lines();
    let function = KernelFunction {
        address: 0x700,
        not_disassembled: "nvdisasm took longer than 10 s".to_owned(),
        ..KernelFunction::default()
    };
    profile.function = Some(std::sync::Arc::new(function));
    let found = details(vec![profile], &ProfiledKernelParams::default());
    let reasons: Vec<&str> = found
        .not_captured
        .iter()
        .rev()
        .take(2)
        .map(|of| of.reason.as_str())
        .collect();
    assert!(reasons[0].contains("-lineinfo"), "{reasons:?}");
    assert_eq!(reasons[1], "nvdisasm took longer than 10 s");
    assert_eq!(found.instructions.len(), 4);
}

#[test]
fn instructions_are_those_with_most_samples_in_the_order_of_addresses() {
    let mut profile = launch(0, 1.0);
    let addresses = [0x700, 0x710, 0x720, 0x730];
    profile.instances = BTreeMap::from([
        ("inst_executed".to_owned(), list(&addresses, &[8, 8, 8, 4])),
        (
            "smsp__pcsamp_sample_count".to_owned(),
            list(&addresses, &[1, 60, 9, 30]),
        ),
        (
            "smsp__pcsamp_warps_issue_stalled_wait".to_owned(),
            list(&addresses, &[1, 20, 9, 0]),
        ),
        (
            "smsp__pcsamp_warps_issue_stalled_long_scoreboard".to_owned(),
            list(&addresses, &[0, 40, 0, 0]),
        ),
        (
            "smsp__pcsamp_warps_issue_stalled_barrier_not_issued".to_owned(),
            list(&addresses, &[99, 99, 99, 99]),
        ),
    ]);
    let params = ProfiledKernelParams {
        limit: 2,
        ..ProfiledKernelParams::default()
    };
    let found = details(vec![profile], &params);
    assert_eq!(found.instructions_left_out, 2);
    let rows: Vec<_> = found
        .instructions
        .iter()
        .map(|of| (of.offset_bytes, of.samples, of.stall.as_deref(), of.sample_ratio))
        .collect();
    let expected = [
        (0x10, Some(60), Some("long_scoreboard"), Some(0.6)),
        (0x30, Some(30), None, Some(0.3)),
    ];
    assert_eq!(rows, expected);
    assert!(found.not_captured.iter().any(|missing| missing.what.contains("SASS")));
}

#[test]
fn rules_are_read_as_nvidia_wrote_them_without_marks() {
    assert_eq!(
        plain("See @section:Occupancy:Occupancy@ and a@b"),
        "See Occupancy and a@b"
    );
    assert_eq!(
        plain("@url:CUDA Guide:https://docs.nvidia.com/x#y@ says"),
        "CUDA Guide says"
    );
    assert_eq!(plain("@section:cut"), "@section:cut");
    let mut profile = launch(0, 1.0);
    profile.rules = vec![RuleResult {
        name: "Theoretical Occupancy".to_owned(),
        kind: RuleKind::Optimization,
        text: "Use the @section:Occupancy:Occupancy@ section.".to_owned(),
        speedup: Some(Speedup {
            percent: 50.0,
            scope: Scope::Local,
        }),
        ..RuleResult::default()
    }];
    let page = page::of(&details(vec![profile], &ProfiledKernelParams::default()));
    assert!(matches!(page.blocks[1], Block::Table(_)), "{:?}", page.blocks);
    let shown = text::render(&page, Layout::default());
    assert!(
        shown.contains("50.0 %, local") && shown.contains("Use the Occupancy section."),
        "{shown}"
    );
}
