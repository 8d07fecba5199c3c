//! The chart, real pods, the real Nsight Systems, real clients: nothing that one test changes
//! another one needs, so these run beside each other.

mod access;
pub(crate) mod alerts;
mod counting;
mod cuda;
mod first_session;
mod frameworks;
mod frameworks_gone;
mod gateway;
mod kernels;
mod launcher;
mod limits;
mod metrics;
mod ncu;
mod nodes;
mod options;
pub(crate) mod overhead;
mod plugin;
mod pod_template;
mod prepared;
mod python;
mod readme;
mod recorder;
mod refusals;
mod replica;
mod restart;
mod schedule;
mod schedule_day;
mod stages;
mod storage;
mod target_deleted;
mod unchanged;
mod unseen;
mod versions;
