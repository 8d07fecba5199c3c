//! A capture as rows of the fleet (`docs/fleet.md`): who it is by the agent's own word, what its
//! transform measured, and how it ended. [`crate::node::fleet_outbox`] keeps the files and copies
//! them to the object store.

mod identity;
mod rows;

pub use identity::{concluded, identity};
pub use rows::{Error, Refusal, described, take, write};

/// Name of the capture's row, as the agent hands it to the child, in the capture's folder.
pub(crate) const CAPTURE: &str = "fleet.json";
