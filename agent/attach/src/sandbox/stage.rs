//! What a process of the sandbox was doing when it failed.

use std::fmt::Display;

/// What was being done, and what went wrong.
pub(super) type Stage = (&'static str, String);

/// Maps what went wrong in `stage` to its error.
pub(super) fn at<E: Display>(stage: &'static str) -> impl FnOnce(E) -> Stage {
    move |error| (stage, error.to_string())
}
