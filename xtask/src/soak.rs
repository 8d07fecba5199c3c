//! The long soak: cycles of attaching and detaching under random faults, starts of prepared
//! containers, and programs with the CUDA tracer whose libcupti has faults.

use crate::in_cluster;
use anyhow::{Result, bail};
use clap::Args;
use flopwatch_cluster::{self as cluster, ClusterCommand};
use flopwatch_toolchain::cache::Cache;
use flopwatch_toolchain::command::{acknowledge_interrupt, interrupted};
use flopwatch_toolchain::progress::{say, step};
use flopwatch_toolchain::project;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// The test that ends processes of the profiler in a pod.
const POD_KILLS: &str =
    "restart::whatever_process_of_the_profiler_is_killed_in_a_pod_its_containers_next_life_is_grafted";

/// How long, and on what.
#[derive(Debug, Args)]
pub(crate) struct SoakOptions {
    /// Sessions with a random profiler that are struck by a random fault each, or by none; those of
    /// a run that is taken up count.
    #[arg(long, default_value_t = 1000)]
    cycles: u64,
    /// Workloads at a time: the sample workload, a third of them PyTorch and JAX, and a sixth a
    /// simulated GPU; one at least of each that has sessions.
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u64).range(1..))]
    workloads: u64,
    /// Name this profiler in all sessions, or one of several where it is given more than once
    /// [default: all].
    #[arg(long = "profiler", value_name = "PROFILER")]
    profilers: Vec<String>,
    /// Draws the profilers and the faults [default: the time].
    #[arg(long)]
    seed: Option<u64>,
    /// Take up the run that was cut off.
    #[arg(long)]
    resume: bool,
    /// Starts of prepared containers, one after the other, without a cluster.
    #[arg(long, default_value_t = 0)]
    starts: u64,
    /// Starts of a prepared container of one pod, without a cluster; in every second one a process
    /// of the profiler is killed.
    #[arg(long, default_value_t = 0)]
    kills: u64,
    /// Lives of a container in a pod of the cluster; in every second one a process of the profiler
    /// is killed.
    #[arg(long, default_value_t = 0)]
    pod_kills: u64,
    /// Minutes in which schedules make windows on both nodes of the cluster, a day's slots in 24;
    /// nothing may grow.
    #[arg(long, default_value_t = 0)]
    schedule_minutes: u64,
    /// Records side by side, without a cluster; in every second one a process of the profiler is
    /// killed.
    #[arg(long, default_value_t = 0)]
    records: u64,
    /// Kills of the agent in each stage of a capture, without a cluster.
    #[arg(long, default_value_t = 0)]
    agent_kills: u64,
    /// Programs with the CUDA tracer whose libcupti, a stand-in, has random faults, without a
    /// cluster.
    #[arg(long, default_value_t = 0)]
    tracer_faults: u64,
    /// Leave the local cluster running.
    #[arg(long)]
    keep_cluster: bool,
}

/// Runs it; fails when a workload was harmed or something stayed behind.
pub(crate) fn run(cache: &Cache, options: &SoakOptions) -> Result<()> {
    let folder = folder()?;
    fs::create_dir_all(&folder)?;
    let mut failed = without_cluster(cache, options);
    if options.pod_kills + options.schedule_minutes + options.cycles > 0 && !interrupted() {
        for (what, count, variable, tests) in [
            ("pod kills", options.pod_kills, "FLOPWATCH_POD_KILLS", POD_KILLS),
            (
                "schedules",
                options.schedule_minutes,
                "FLOPWATCH_SCHEDULE_MINUTES",
                "schedule_day::",
            ),
        ] {
            if count > 0
                && !interrupted()
                && let Err(error) = in_cluster::tell(cache, what, (variable, count.to_string()), tests)
            {
                say(format_args!("{what}: {error:#}"));
                failed.push(what);
            }
        }
        if options.cycles > 0 && !interrupted() {
            if let Err(error) = cycles(cache, options, &folder) {
                say(format_args!("cycles: {error:#}"));
                failed.push("cycles");
            }
            say(format_args!(
                "the report is {} (and .json beside it)",
                folder.join("report.md").display()
            ));
        }
        if !options.keep_cluster {
            acknowledge_interrupt();
            cluster::run(cache, false, &ClusterCommand::Down)?;
        }
    }
    if failed.is_empty() {
        Ok(())
    } else {
        bail!("failed: {}", failed.join(", "))
    }
}

/// What needs no cluster: a test of a program, as often as a variable says.
struct Repeated {
    what: &'static str,
    count: u64,
    variable: &'static str,
    program: &'static str,
    test: &'static str,
}

/// Runs what needs no cluster; gives what failed.
fn without_cluster(cache: &Cache, options: &SoakOptions) -> Vec<&'static str> {
    let mut failed = Vec::new();
    for repeated in [
        Repeated {
            what: "starts",
            count: options.starts,
            variable: "FLOPWATCH_STARTS",
            program: "suite",
            test: "many_starts_lose_none",
        },
        Repeated {
            what: "kills",
            count: options.kills,
            variable: "FLOPWATCH_KILLS",
            program: "suite",
            test: "whatever_process_of_the_profiler_is_killed_the_next_start_is_grafted",
        },
        Repeated {
            what: "agent kills",
            count: options.agent_kills,
            variable: "FLOPWATCH_AGENT_KILLS",
            program: "suite",
            test: "captures::killed::",
        },
        Repeated {
            what: "records",
            count: options.records,
            variable: "FLOPWATCH_RECORDS",
            program: "alone",
            test: "storm::",
        },
        Repeated {
            what: "tracer faults",
            count: options.tracer_faults,
            variable: "FLOPWATCH_TRACER_FAULTS",
            program: "tracer",
            test: "storm::",
        },
    ] {
        if repeated.count == 0 || interrupted() {
            continue;
        }
        let mut more = BTreeMap::from([(repeated.variable.to_owned(), repeated.count.to_string())]);
        more.extend(options.seed.map(|seed| ("FLOPWATCH_SEED".to_owned(), seed.to_string())));
        // Of the whole workspace: a package alone would be compiled again, with fewer features.
        let targets = ["--workspace", "--test", repeated.program];
        let outcome = step(repeated.what, || {
            in_cluster::watched(cache, &more, &targets, repeated.test)
        });
        if let Err(error) = outcome {
            say(format_args!("{}: {error:#}", repeated.what));
            failed.push(repeated.what);
        }
    }
    failed
}

/// Where ledger and report lie.
fn folder() -> Result<PathBuf> {
    Ok(project::target_directory()?.join("soak"))
}

fn cycles(cache: &Cache, options: &SoakOptions, folder: &std::path::Path) -> Result<()> {
    let mut more = in_cluster::environment(cache)?;
    let mut set = |name: &str, value: String| drop(more.insert(format!("FLOPWATCH_SOAK_{name}"), value));
    set("CYCLES", options.cycles.to_string());
    set("WORKLOADS", options.workloads.to_string());
    set("FOLDER", folder.display().to_string());
    if !options.profilers.is_empty() {
        set("PROFILERS", options.profilers.join(","));
    }
    if let Some(seed) = options.seed {
        set("SEED", seed.to_string());
    }
    if options.resume {
        set("RESUME", "1".to_owned());
    }
    step("cycles", || {
        in_cluster::watched(cache, &more, &["--workspace", "--test", "system"], "soak::")
    })
}
