use flopwatch_analysis_testing::Trace;
use flopwatch_model::Track;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::interval::Intervals;

/// `depth name total own` of each row.
fn rows(flame: &Flame) -> Vec<String> {
    let row = |row: &FlameRow| {
        let name = &flame.frame(row).unwrap().name;
        format!(
            "{} {name} {} {}",
            row.depth,
            Side::Before.of(row.total_ns),
            Side::Before.of(row.own_ns)
        )
    };
    flame.rows.iter().map(row).collect()
}

fn flame(timeline: &Timeline, options: &FlameOptions, cut: &Cut) -> (Flame, FlameCoverage) {
    let mut tree = FlameTree::default();
    let coverage = tree.add(timeline, options, Side::Before);
    (tree.cut(cut), coverage)
}

/// A range with a function of Python and an operator in it, which launches; a kernel outside of the
/// range; one of which no call is known.
fn trace() -> Timeline {
    let mut trace = Trace::new();
    let (stream, other) = (trace.stream(1, 0, 7), trace.stream(1, 1, 7));
    let api = trace.thread(1, 10, Track::CudaApi);
    let nvtx = trace.thread(1, 10, Track::Nvtx);
    let python = trace.thread(1, 10, Track::Python);
    let op = trace.thread(1, 10, Track::CpuOp);
    trace.event(Category::NvtxRange, nvtx, "step 1", 0, 100);
    trace.event(Category::NvtxRange, nvtx, "step 2", 100, 200);
    trace.event(Category::PythonFunction, python, "a.py(3): forward", 10, 90);
    trace.event(Category::CpuOp, op, "aten::mm", 20, 60);
    trace.launch_kernel((api, 30, 40), (stream, "gemm", 300, 350));
    trace.launch((api, 70, 80), Category::CudaMemcpyH2d, (stream, "copy", 350, 360));
    trace.launch_kernel((api, 150, 160), (other, "gemm", 360, 400));
    trace.launch_kernel((api, 250, 260), (stream, "late", 400, 405));
    trace.kernel(stream, "orphan", 500, 507);
    trace.build()
}

#[test]
fn gpu_operations_are_in_the_stack_of_their_call() {
    let options = FlameOptions {
        merge_numbered: true,
        ..FlameOptions::default()
    };
    let (found, coverage) = flame(&trace(), &options, &Cut::NOTHING);
    let expected = [
        "0 all 112 0",
        "1 step * 100 0",
        "2 a.py(3): forward 60 0",
        "3 aten::mm 50 0",
        "4 gemm 50 50",
        "3 copy 10 10",
        "2 gemm 40 40",
        "1 (launch not captured) 7 0",
        "2 orphan 7 7",
        "1 late 5 5",
    ];
    assert_eq!(rows(&found), expected);
    assert_eq!(
        (coverage.gpu_ops, coverage.unlaunched_ops, coverage.unlaunched_ns),
        (5, 1, 7)
    );
}

#[test]
fn time_of_the_cpu_is_in_the_stack_of_its_moment() {
    let options = FlameOptions {
        weight: FlameWeight::Cpu,
        ..FlameOptions::default()
    };
    let (found, _) = flame(&trace(), &options, &Cut::NOTHING);
    let expected = [
        "0 all 210 0",
        "1 step 1 100 20",
        "2 a.py(3): forward 80 30",
        "3 aten::mm 40 30",
        "4 cudaLaunchKernel 10 10",
        "3 cudaLaunchKernel 10 10",
        "1 step 2 100 90",
        "2 cudaLaunchKernel 10 10",
        "1 cudaLaunchKernel 10 10",
    ];
    assert_eq!(rows(&found), expected);
    let windowed = FlameOptions {
        window: Some(Interval::new(50, 110)),
        ..options
    };
    assert_eq!(flame(&trace(), &windowed, &Cut::NOTHING).0.total_ns(), [60, 0]);
}

#[test]
fn groups_are_the_outermost_frames() {
    let by = |group_by, weight| {
        let options = FlameOptions {
            group_by,
            weight,
            stacks: FlameStacks::Python,
            ..FlameOptions::default()
        };
        let (found, _) = flame(&trace(), &options, &Cut::NOTHING);
        let outermost = rows(&found).into_iter().filter(|row| row.starts_with('1'));
        outermost.collect::<Vec<_>>()
    };
    assert_eq!(
        by(FlameGrouping::Device, FlameWeight::Gpu),
        ["1 GPU 0 72 0", "1 GPU 1 40 0"]
    );
    assert_eq!(
        by(FlameGrouping::Stream, FlameWeight::Gpu),
        ["1 GPU 0, process 1, stream 7 72 0", "1 GPU 1, process 1, stream 7 40 0"]
    );
    assert_eq!(by(FlameGrouping::Process, FlameWeight::Gpu), ["1 process 1 112 0"]);
    assert_eq!(
        by(FlameGrouping::Thread, FlameWeight::Cpu),
        ["1 process 1, thread 10 80 0"]
    );
}

#[test]
fn what_is_cut_is_summed_in_frames_of_its_own() {
    let options = FlameOptions {
        merge_numbered: true,
        ..FlameOptions::default()
    };
    let cut = Cut {
        min_ns: 45,
        group_small_kernels: true,
        max_depth: 3,
        ..Cut::NOTHING
    };
    let (found, _) = flame(&trace(), &options, &cut);
    let expected = [
        "0 all 112 0",
        "1 step * 100 0",
        "2 a.py(3): forward 60 0",
        "3 aten::mm 50 0",
        "4 (deeper frames) 50 50",
        "3 (small kernels) 10 10",
        "2 (small kernels) 40 40",
        "1 (launch not captured) 7 0",
        "2 (small kernels) 7 7",
        "1 (small kernels) 5 5",
    ];
    assert_eq!(rows(&found), expected);
    let few = Cut {
        limit: 2,
        ..Cut::NOTHING
    };
    let (found, _) = flame(&trace(), &options, &few);
    assert_eq!(found.total_ns(), [112, 0]);
    assert_eq!(found.shortest_ns, 51);
}

#[test]
fn frames_that_cross_share_their_time_by_the_moment() {
    let mut trace = Trace::new();
    let nvtx = trace.thread(1, 1, Track::Nvtx);
    trace.event(Category::NvtxRange, nvtx, "a", 0, 10);
    trace.event(Category::NvtxRange, nvtx, "b", 5, 20);
    trace.event(Category::NvtxRange, nvtx, "c", 12, 14);
    let style = trace.event(Category::NvtxRange, nvtx, "start/end", 0, 900);
    trace.number(style, ColumnId::RangeStyle, 1);
    let options = FlameOptions {
        weight: FlameWeight::Cpu,
        ..FlameOptions::default()
    };
    let (found, coverage) = flame(&trace.build(), &options, &Cut::NOTHING);
    let expected = ["0 all 20 0", "1 a 10 5", "2 b 5 5", "1 b 10 8", "2 c 2 2"];
    assert_eq!(rows(&found), expected);
    assert_eq!(coverage.start_end_ranges, 1);
}

#[test]
fn of_functions_with_the_same_times_the_one_called_first_is_outside() {
    let mut trace = Trace::new();
    let python = trace.thread(1, 1, Track::Python);
    for (name, id) in [("inner", 7), ("outer", 3)] {
        let call = trace.event(Category::PythonFunction, python, name, 0, 10);
        trace.number(call, ColumnId::PythonId, id);
    }
    let options = FlameOptions {
        weight: FlameWeight::Cpu,
        ..FlameOptions::default()
    };
    let (found, _) = flame(&trace.build(), &options, &Cut::NOTHING);
    assert_eq!(rows(&found), ["0 all 10 0", "1 outer 10 0", "2 inner 10 10"]);
}

#[test]
fn stacks_without_end_are_one_frame_and_lose_no_time() {
    let mut trace = Trace::new();
    let nvtx = trace.thread(1, 1, Track::Nvtx);
    for at in 0..2000 {
        trace.event(Category::NvtxRange, nvtx, "stairs", at, at + 3000);
    }
    let options = FlameOptions {
        weight: FlameWeight::Cpu,
        ..FlameOptions::default()
    };
    let (found, _) = flame(&trace.build(), &options, &Cut::NOTHING);
    assert_eq!(found.total_ns(), [4999, 0]);
}

/// Children never exceed their frame, and with its own time they are it.
fn adds_up(flame: &Flame) {
    for (at, row) in flame.rows.iter().enumerate() {
        let behind = flame.rows[at + 1..]
            .iter()
            .take_while(|inside| inside.depth > row.depth);
        let inside: u64 = behind
            .filter(|inside| inside.depth == row.depth + 1)
            .map(|inside| inside.total_ns[0])
            .sum();
        assert_eq!(inside + row.own_ns[0], row.total_ns[0], "{row:?}");
    }
}

proptest! {
    #[test]
    fn the_total_is_the_time_that_it_claims(
        spans in vec((0_u64..60, 0_u64..30, 0_usize..6, 0_usize..3), 0..40),
        launches in vec((0_u64..80, 0_u64..50, 0_u64..9, 0_usize..2, any::<bool>()), 0..20),
        cut in (0_u64..20, 1_u32..5, any::<bool>(), 1_usize..12),
        group_by in prop::sample::select(vec![FlameGrouping::None, FlameGrouping::Process, FlameGrouping::Thread, FlameGrouping::Device, FlameGrouping::Stream]),
        window in prop::option::of((0_u64..60, 0_u64..60)),
    ) {
        let mut trace = Trace::new();
        let kinds = [
            (Category::NvtxRange, Track::Nvtx), (Category::CpuOp, Track::CpuOp), (Category::PythonFunction, Track::Python),
        ];
        let threads: Vec<[RowId; 3]> = [1, 2].iter().map(|thread| kinds.map(|(_, track)| trace.thread(1, *thread, track))).collect();
        let apis = [1, 2].map(|thread| trace.thread(1, thread, Track::CudaApi));
        let stream = trace.stream(1, 0, 7);
        for (start, length, which, name) in &spans {
            let (thread, kind) = (which % 2, which / 2);
            trace.event(kinds[kind].0, threads[thread][kind], ["a", "b", "c"][*name], *start, start + length);
        }
        for (call, start, length, thread, is_known) in &launches {
            let work = (stream, "kernel", *start, start + length);
            if *is_known {
                trace.launch_kernel((apis[*thread], *call, call + 1), work);
            } else {
                trace.kernel(stream, "kernel", *start, start + length);
            }
        }
        let timeline = trace.build();
        let window = window.map(|(start, length)| Interval::new(start, start + length));
        let inside = |start: u64, end: u64| Interval::new(start, end).intersect(window.unwrap_or(Interval::new(0, u64::MAX)));
        let gpu: u64 = launches.iter().map(|(_, start, length, _, _)| inside(*start, start + length).len()).sum();
        let cpu: u64 = [0, 1].map(|thread| {
            let frames = spans.iter().filter(|(_, _, which, _)| which % 2 == thread).map(|(start, length, _, _)| inside(*start, start + length));
            let calls = launches.iter().filter(|(_, _, _, of, is_known)| *of == thread && *is_known).map(|(call, _, _, _, _)| inside(*call, call + 1));
            frames.chain(calls).collect::<Intervals>().len_ns()
        }).iter().sum();
        let (min_ns, max_depth, group_small_kernels, limit) = cut;
        for (weight, total) in [(FlameWeight::Gpu, gpu), (FlameWeight::Cpu, cpu)] {
            let options = FlameOptions { weight, group_by, window, ..FlameOptions::default() };
            for cut in [Cut::NOTHING, Cut { min_ns, max_depth, group_small_kernels, limit }] {
                let (found, _) = flame(&timeline, &options, &cut);
                prop_assert_eq!(found.total_ns(), [total, 0]);
                adds_up(&found);
            }
        }
    }
}
