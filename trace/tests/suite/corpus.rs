//! Real captures of other people, read in place: `../shared/corpus`, converted by an installed
//! nsys.

use std::path::Path;

use flopwatch_model::{Category, Events, Timeline};
use flopwatch_summary::summarise;
use flopwatch_trace::{ReadLimits, nsys_hdf};

use crate::capture::published;
use crate::columns::through_a_file;
use crate::nsys;

pub(crate) fn timeline_of(export: &Path) -> Timeline {
    published(nsys_hdf::read(export, &ReadLimits::default()).unwrap())
}

fn count(timeline: &Timeline, categories: &[Category]) -> u64 {
    categories
        .iter()
        .filter_map(|category| timeline.capture.events.get(category))
        .map(Events::count)
        .sum()
}

#[test]
fn the_corpus_counts_agree_with_its_readme() {
    // Report, kernels, copies, API calls, NVTX ranges, OS runtime calls.
    let cases: [(&str, u64, u64, u64, u64, u64); 5] = [
        ("gpubootcamp-jacobi/jacobi_report.qdrep", 1001, 3001, 6016, 2, 0),
        (
            "gpubootcamp-jacobi/jacobi_memcpy_sys_report.qdrep",
            3003,
            13011,
            18054,
            3,
            0,
        ),
        // The README's 1,004 NVTX rows of the default domain include two that are no ranges. nsys
        // of 2022 has MPI's calls as another 3,004 ranges, later ones in tables of their own.
        ("gpubootcamp-jacobi-mpi/mpi_report2.qdrep", 2002, 5002, 26784, 1002, 0),
        // Of the README's 11,031 rows, 36 say that profiling of a thread started or finished.
        ("alpa-jax/jax_profile_mem.nsys-rep", 14, 13, 777, 0, 10995),
        // Readable by nsys 2023 and later only.
        ("trt-controlnet/cudagraph.nsys-rep", 0, 0, 13283, 837, 48788),
    ];
    for (report, kernels, copies, calls, ranges, os_calls) in cases {
        let Some(export) = nsys::export(report) else { continue };
        let timeline = timeline_of(&export.path());
        let of_2022 = timeline.capture.source.tool_version.starts_with("2022");
        let has_mpi = report.contains("mpi_report") && of_2022;
        let mpi = if has_mpi { 3004 } else { 0 };
        let found = (
            count(&timeline, &[Category::CudaKernel]),
            count(&timeline, &Category::MEMCPY),
            count(&timeline, &[Category::CudaApi]),
            count(&timeline, &[Category::NvtxRange]) - mpi,
            count(&timeline, &[Category::OsRuntime]),
        );
        assert_eq!(found, (kernels, copies, calls, ranges, os_calls), "{report}");
        println!("{report}: {}", summarise(&timeline).render(3));
        through_a_file(&timeline);
    }
}

#[test]
fn kernels_that_graphs_hide_are_not_captured_rather_than_zero() {
    let Some(export) = nsys::export("trt-controlnet/cudagraph.nsys-rep") else {
        return;
    };
    let summary = summarise(&timeline_of(&export.path()));
    assert!(summary.cuda_api.captured && summary.nvtx.captured && summary.os_runtime.captured);
    assert!(!summary.kernels.captured && !summary.memcpy_time.captured);
    let text = summary.render(5);
    let lacking = "Not captured: Kernels, Whole CUDA graphs, Memory copies";
    assert!(text.contains(lacking), "{text}");
}
