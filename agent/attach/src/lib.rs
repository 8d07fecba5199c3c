//! Finds a container's process, enters it without privilege, grafts a profiler's session into it
//! and controls that session.
//!
//! Every call blocks, bounded by a deadline; an asynchronous caller puts it on a blocking thread.
//! Two steps need a process of their own, because namespaces and users belong to processes:
//! [`enter`] and [`sandbox`] start the calling program again with a hidden subcommand, which its
//! `main` hands to [`reexec::child_main`] before it starts any thread.

pub mod bounded;
mod bpf;
pub mod cgroup;
pub mod container_user;
mod descriptors;
mod devices;
pub mod enter;
mod fork;
pub mod graft;
pub mod kineto;
pub mod listeners;
pub mod mount_kind;
mod mounts;
pub mod network;
pub mod nsys;
pub mod own_cgroup;
pub mod privilege;
pub mod process;
mod program;
pub mod reexec;
pub mod rootfs;
pub mod sandbox;
pub mod seccomp;
pub mod tracer;
pub mod usage;
pub mod user_files;
pub mod volumes;
