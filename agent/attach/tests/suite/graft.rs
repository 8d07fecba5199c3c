//! The graft with the real Nsight Systems, in a container that the test makes.
//!
//! Needs root and Nsight Systems; says so and passes without. `FLOPWATCH_LAUNCHER` names another
//! launcher than the one that is built here (the static one), `FLOPWATCH_NSYS` the nsys to use and
//! `FLOPWATCH_NSYS_HOST` the folder host-linux-x64 that belongs to it.

mod capture;
mod confinement;
mod container;
mod entering;
mod entrypoints;
mod fallback;
mod hanging;
mod harm;
mod healing;
mod held;
mod ranges;
mod starts;
mod windows;

use std::time::Duration;

use container::{Container, Rig};
use flopwatch_attach::graft::{Bounds, LauncherState, Target};
use flopwatch_attach::nsys::{Collection, LaunchOptions};
use flopwatch_attach::process::Procfs;

const SESSION: &str = "fw-test";
/// Bounds that no collection of the tests comes to.
const LOOSE: Bounds = Bounds {
    limit: Duration::from_mins(1),
    max_bytes: 1 << 30,
    min_free_bytes: 0,
};

fn options() -> LaunchOptions {
    LaunchOptions {
        session: SESSION.into(),
        trace: vec!["cuda".into(), "nvtx".into()],
        cuda_graph_trace: None,
        nvtx_capture: None,
        trace_fork_before_exec: false,
    }
}

/// Does the agent's part of a start.
fn graft(rig: &Rig, container: &Container) -> (Target, LauncherState) {
    let target = container.target(rig);
    target.start_session(&options()).unwrap();
    // From outside: a workload that ends at once takes the way into its container along.
    let state = serde_json::from_str(&container.state()).unwrap();
    (target, state)
}

/// The same, which must come to a session.
#[track_caller]
fn grafted(rig: &Rig, container: &Container) -> Target {
    let (target, state) = graft(rig, container);
    assert!(state.grafted, "{state:?}");
    target
}

/// Starts a collection within those bounds.
#[track_caller]
fn collect(target: &Target, name: &str) {
    target
        .start_collection(SESSION, name, &Collection::default(), LOOSE)
        .unwrap();
}

fn members(init: i32) -> Vec<i32> {
    let namespace = |pid: i32| std::fs::read_link(format!("/proc/{pid}/ns/pid")).ok();
    let own = namespace(init);
    Procfs::default()
        .pids()
        .unwrap()
        .into_iter()
        .filter(|pid| *pid != init && own.is_some() && namespace(*pid) == own)
        .collect()
}
