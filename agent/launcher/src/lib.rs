//! The container's command in a prepared pod, and the small helpers that run beside it in the same
//! container.
//!
//! The launcher waits, bounded, for the profiler's session, takes over the environment that the
//! session gives to the programs it starts, and then *becomes* the workload by `execve`: same PID,
//! user, standard streams, signals, exit code. Whatever goes wrong ends in the original command
//! with its original environment.
//!
//! In a pod that a session made for itself, [`hold`] comes before all that: the program's end must
//! not take the capture of it along. Where the profiler starts the program itself, [`profile`]
//! holds both.
//!
//! The same file serves as the stub that a session is started around ([`stub`]), as the
//! [`supervisor`] that holds the session (below its [`reaper`]), and as the tool that puts itself
//! and the profiler into the pod's volume ([`copy`]).

pub mod arguments;
mod aside;
pub mod copy;
pub mod elf;
pub mod environment;
pub mod exec;
pub mod fork;
pub mod graftable;
pub mod guard;
mod hang;
pub mod hold;
mod lease;
mod list;
pub mod manager_lock;
pub mod marker;
pub mod needed;
pub mod profile;
pub mod raw_capture;
pub mod reaper;
pub mod run;
pub mod run_dir;
pub mod signals;
pub mod slot;
mod spawn;
pub mod state;
pub mod stub;
pub mod supervisor;
pub mod tree;
