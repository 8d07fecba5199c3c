//! What a container gets for a library that its programs load by a variable.
//!
//! The container's command stays as it is: the programs load the library where they begin to use
//! what the variable is for, and go on without it where they cannot.

use serde_json::{Value, json};

/// What a container gets for a library.
#[derive(Debug, PartialEq)]
pub(super) enum Library {
    /// The container gets it now.
    Added(Box<Added>),
    /// An earlier review added it.
    AlreadyAdded,
}

/// What is added for a library.
#[derive(Debug, PartialEq)]
pub(super) struct Added {
    /// The volume for its file, as JSON of the pod's specification.
    pub(super) volume: Value,
    /// The mount of the volume, as JSON of the container.
    pub(super) mount: Value,
    /// The variables, as JSON of the container.
    pub(super) variables: Vec<Value>,
    /// Variables of the container that get another value: their place in its list, and the value.
    pub(super) changed: Vec<(usize, String)>,
}

/// A variable as JSON of a container.
pub(super) fn variable(name: &str, value: &str) -> Value {
    json!({"name": name, "value": value})
}
