//! Profiling schedules: sessions made when their times come, told to stop, and given up. What is
//! done is decided by [`flopwatch_schedule::plan`], which holds no state; this carries it out.

pub mod announced_classes;
mod calls;
pub mod reconcile;
pub mod series;
pub mod session;
pub mod status;
