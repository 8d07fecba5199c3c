//! Whole-system tests: the chart on a real cluster, real pods, the real Nsight Systems, real clients.

#[path = "system/access.rs"]
mod access;
#[path = "system/alerts.rs"]
mod alerts;
#[path = "system/counting.rs"]
mod counting;
#[path = "system/dashboards.rs"]
mod dashboards;
#[path = "system/first_session.rs"]
mod first_session;
#[path = "system/frameworks.rs"]
mod frameworks;
#[path = "system/gateway.rs"]
mod gateway;
#[path = "system/launcher.rs"]
mod launcher;
#[path = "system/limits.rs"]
mod limits;
#[path = "system/metrics.rs"]
mod metrics;
#[path = "system/ncu.rs"]
mod ncu;
#[path = "system/nodes.rs"]
mod nodes;
#[path = "system/options.rs"]
mod options;
#[path = "system/overhead.rs"]
mod overhead;
#[path = "system/plugin.rs"]
mod plugin;
#[path = "system/pod_template.rs"]
mod pod_template;
#[path = "system/prepared.rs"]
mod prepared;
#[path = "system/python.rs"]
mod python;
#[path = "system/readme.rs"]
mod readme;
#[path = "system/recorder.rs"]
mod recorder;
#[path = "system/refusals.rs"]
mod refusals;
#[path = "system/replica.rs"]
mod replica;
#[path = "system/restart.rs"]
mod restart;
#[path = "system/schedule.rs"]
mod schedule;
#[path = "system/schedule_day.rs"]
mod schedule_day;
#[path = "system/stages.rs"]
mod stages;
#[path = "system/storage.rs"]
mod storage;
#[path = "system/unchanged.rs"]
mod unchanged;
#[path = "system/unseen.rs"]
mod unseen;
#[path = "system/versions.rs"]
mod versions;
