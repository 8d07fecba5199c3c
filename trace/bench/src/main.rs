//! Makes the inputs of the benches and runs our side of them, one job per process, so that each has
//! its own peak of memory.
//!
//! `cargo xtask bench` calls it; the rival's side of each job is a Python program in `rivals/`.
//! Both print one line of JSON: `seconds` (the job alone, without starting the process),
//! `peak_bytes` (of the process), and what else the job counts.

mod analyses;
mod columns;
mod kernel_report;
mod longer;
mod nsys_export;
mod report;
mod trace;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Allocator of the programs that are handed out.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[derive(Debug, Parser)]
struct Cli {
    #[command(subcommand)]
    job: Job,
}

#[derive(Debug, Subcommand)]
enum Job {
    /// Write an export in the layout of `nsys export --type hdf`.
    MakeExport {
        out: PathBuf,
        #[arg(long, default_value_t = 0)]
        kernels: u32,
        #[arg(long, default_value_t = 0)]
        copies: u32,
        #[arg(long, default_value_t = 0)]
        ranges: u32,
    },
    /// Write raw columns of events in no order: start and length as u64, row and name as u32, one
    /// behind the other.
    MakeColumns {
        out: PathBuf,
        #[arg(long)]
        events: u32,
    },
    /// Write a Chrome trace as Kineto does.
    MakeTrace {
        out: PathBuf,
        #[arg(long)]
        megabytes: u64,
    },
    /// Write a report of Nsight Compute.
    MakeReport {
        out: PathBuf,
        #[arg(long)]
        launches: u32,
        #[arg(long)]
        metrics: u32,
    },
    /// Write an export as SQLite with the events of another one several times.
    MakeLonger {
        out: PathBuf,
        #[arg(long)]
        of: PathBuf,
        #[arg(long)]
        times: u32,
    },
    /// Read a file of any format.
    Read { input: PathBuf },
    /// Read a report of Nsight Systems through an export to HDF5 by an installed nsys.
    ReadExported {
        input: PathBuf,
        out: PathBuf,
        #[arg(long)]
        nsys: PathBuf,
    },
    /// Read a file of any format and transform it, as everything that has a capture in memory does.
    Open { input: PathBuf },
    /// Read a file of any format, transform it and write the timeline file.
    Convert { input: PathBuf, out: PathBuf },
    /// Read an export.
    Ingest { input: PathBuf },
    /// Read a file of any format and find what is slow in it, and why.
    Diagnose { input: PathBuf },
    /// Sort raw columns, give lanes, make levels of detail and figures per name.
    Transform { input: PathBuf },
    /// Run analyses of one capture: of a made training loop, or of raw columns.
    Analyze {
        /// Raw columns, whose events are kernels.
        #[arg(long)]
        kernels: Option<PathBuf>,
        /// Events of the training loop.
        #[arg(long, default_value_t = 1_000_000)]
        events: u32,
        /// This analysis alone.
        #[arg(long)]
        only: Option<String>,
    },
}

fn main() -> Result<()> {
    match Cli::parse().job {
        Job::MakeExport {
            out,
            kernels,
            copies,
            ranges,
        } => nsys_export::make(&out, kernels, copies, ranges),
        Job::MakeColumns { out, events } => columns::make(&out, events),
        Job::MakeTrace { out, megabytes } => trace::make(&out, megabytes),
        Job::MakeReport { out, launches, metrics } => kernel_report::make(&out, launches, metrics),
        Job::MakeLonger { out, of, times } => longer::make(&out, &of, times),
        Job::Read { input } => trace::read(&input),
        Job::ReadExported { input, out, nsys } => nsys_export::read_exported(&nsys, &input, &out),
        Job::Open { input } => trace::open(&input),
        Job::Convert { input, out } => nsys_export::convert(&input, &out),
        Job::Ingest { input } => nsys_export::ingest(&input),
        Job::Analyze { kernels, events, only } => analyses::analyze(kernels.as_deref(), events, only.as_deref()),
        Job::Diagnose { input } => analyses::diagnose(&input),
        Job::Transform { input } => columns::transform_all(&input),
    }
}
