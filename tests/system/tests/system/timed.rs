//! What holds a pace or a time to a bound. Other tests would take the machine's time, so these have
//! the cluster without them; each of them waits most of its own.

mod alerts;
mod dashboards;
mod overhead;
mod recorder;
