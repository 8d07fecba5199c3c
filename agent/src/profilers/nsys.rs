//! Nsight Systems: a session in a prepared container, one raw capture for each collection.

pub mod categories;
