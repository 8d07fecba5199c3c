//! Why a tool has no answer, and why nothing can be served.

use crate::server::MAX_WAITING;
use crate::view::{MAX_ANSWER_BYTES, MIN_ANSWER_BYTES};

/// Why a tool has no answer. Clients show the text to whoever asked, which is most often a model:
/// it says what is wrong and what to do.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// The tool has no argument of that name.
    #[error("{tool} has no argument {name:?}; it has {}", names.join(", "))]
    UnknownArgument {
        /// Name of the tool.
        tool: String,
        /// What was given.
        name: String,
        /// What there is.
        names: Vec<String>,
    },
    /// The arguments are not what the tool takes.
    #[error("the arguments of {tool} cannot be read: {source}; its input schema in tools/list says what it takes")]
    Arguments {
        /// Name of the tool.
        tool: String,
        /// What is wrong with them.
        source: serde_json::Error,
    },
    /// The number of bytes is not possible.
    #[error("\"max_bytes\" must be a whole number from {MIN_ANSWER_BYTES} to {MAX_ANSWER_BYTES}, not {0}")]
    MaxBytes(String),
    /// The number of the first element is none.
    #[error("\"from\" must be a whole number of at least 0, not {0}")]
    From(String),
    /// The place in the answer is none.
    #[error("\"at\" must be a JSON Pointer such as \"/rows\" or \"/rows/0/name\", not {0}")]
    At(String),
    /// The answer has nothing at that place.
    #[error("the answer has nothing at {at:?}; {}", there(names))]
    Nowhere {
        /// The JSON Pointer that was asked for.
        at: String,
        /// Names at the outermost level of the answer.
        names: Vec<String>,
    },
    /// The first element that is asked for lies behind the last one.
    #[error("\"from\" is {from}, and {what} has {count}: ask for a smaller one")]
    Behind {
        /// What was asked for.
        from: usize,
        /// What the elements are of.
        what: String,
        /// How many there are.
        count: usize,
    },
    /// A part of a text, or of an object, was asked for as of a list.
    #[error("{0}")]
    NoPart(&'static str),
    /// Too many calls wait for their turn.
    #[error("{MAX_WAITING} calls wait for their turn: ask again when one of them is answered")]
    Busy,
    /// The client took the call back, or the server ends.
    #[error("the call was canceled")]
    Canceled,
    /// The answer cannot be written as JSON.
    #[error("the answer cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// What the tool itself says.
    #[error("{0}")]
    Failed(String),
}

fn there(names: &[String]) -> String {
    if names.is_empty() {
        "ask without \"at\"".to_owned()
    } else {
        let names: Vec<String> = names.iter().map(|name| format!("/{name}")).collect();
        format!("it has {}", names.join(", "))
    }
}

/// Why nothing can be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// What comes on standard input does not begin as the protocol does.
    #[error("the client does not speak the Model Context Protocol: {0}")]
    Begin(String),
    /// The task that serves has ended by itself.
    #[error("the server ended early: {0}")]
    Ended(String),
}
