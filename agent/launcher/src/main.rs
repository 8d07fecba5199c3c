//! The container's command in a prepared pod: waits for the profiler's session, then becomes the workload.

fn main() {}
