//! Why a capture ended without success.

use flopwatch_api::reason::CaptureReason;

/// A reason of the closed set, and what a person needs to know and do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}: {message}")]
pub struct Failure {
    /// The word that stands in the conditions and in the metrics.
    pub reason: CaptureReason,
    /// What happened and what helps.
    pub message: String,
}

impl Failure {
    /// A failure of that reason.
    pub fn new(reason: CaptureReason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
        }
    }

    /// Turns any error into a failure of one reason, the causes joined into one sentence.
    pub fn because<E: std::error::Error>(reason: CaptureReason) -> impl FnOnce(E) -> Self {
        move |error| Self::new(reason, chain(&error))
    }
}

/// An error and its causes in one line; a cause that the message already tells is not repeated.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let message = cause.to_string();
        if !text.contains(&message) {
            text.push_str(": ");
            text.push_str(&message);
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    enum Example {
        #[error("no room")]
        Cause,
        #[error("the file cannot be written")]
        Untold { source: Box<Example> },
        #[error("a.json: {source}; free some space")]
        Told { source: Box<Example> },
    }

    #[test]
    fn a_cause_is_told_once_wherever_it_stands() {
        let untold = Example::Untold {
            source: Box::new(Example::Cause),
        };
        assert_eq!(chain(&untold), "the file cannot be written: no room");
        let told = Example::Told {
            source: Box::new(Example::Cause),
        };
        assert_eq!(chain(&told), "a.json: no room; free some space");
        let both = Example::Told {
            source: Box::new(untold),
        };
        assert_eq!(
            chain(&both),
            "a.json: the file cannot be written; free some space: no room"
        );
    }
}
