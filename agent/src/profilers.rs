//! The profilers, one folder or file each.

pub mod nsys;
