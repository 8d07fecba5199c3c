//! How far a copy out of a container is.

/// What a copy out of a container tells the bytes so far; false ends the copy.
pub type Progress<'a> = &'a mut dyn FnMut(u64) -> bool;
