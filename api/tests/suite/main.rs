//! The custom resources as the API server has them: what is committed, and what it accepts.
#![allow(clippy::unwrap_used, clippy::needless_pass_by_value, reason = "test helpers")]

mod captures;
mod crds;
mod schedules;
mod sessions;
