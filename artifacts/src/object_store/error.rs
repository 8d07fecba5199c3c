//! The errors of the object store.

use std::error::Error as _;
use std::time::Duration;

use crate::manifest::ManifestError;

/// Why a request to the object store failed. No message holds a credential: only the code is taken
/// from the body of an answer.
#[derive(Debug, thiserror::Error)]
pub enum ObjectStoreError {
    /// The store refuses the credentials, or they lack the right for the request.
    #[error("the object store refuses {what} ({message}): check the credentials of the store and what they may do")]
    Refused {
        /// The kind of the request, as in "reading".
        what: &'static str,
        /// The code in the answer, or its HTTP status.
        message: String,
    },
    /// The store has no bucket of this name.
    #[error("the object store has no bucket {0:?}: make it, or correct the URL of the store")]
    NoBucket(String),
    /// The store cannot be reached, or answers with an error.
    #[error("the object store fails {what}: {message}")]
    Unavailable {
        /// The kind of the request, as in "reading".
        what: &'static str,
        /// The code in the answer, or the error of the connection.
        message: String,
    },
    /// The store did not answer in time.
    #[error("{what} in the object store took longer than {limit:?}")]
    Slow {
        /// The kind of the request, as in "reading".
        what: &'static str,
        /// The time that the request had.
        limit: Duration,
    },
    /// The store does not hold the object with this key, or the folder of this URL.
    #[error("the object store does not hold {0}")]
    Missing(String),
    /// An object has another content than the one that was stored.
    #[error("object {key} in the store is corrupt: {reason}")]
    Corrupt {
        /// Key of the object.
        key: String,
        /// What differs.
        reason: String,
    },
    /// The status of the capture at this URL has no digest of its objects, so that none of them is
    /// trusted.
    #[error(
        "nothing says what belongs at {0}: the capture's status has no storeSha256, which its node's agent writes with the next copy of it"
    )]
    Unverified(String),
    /// The content to upload differs from its manifest, or cannot be read.
    #[error("{name} cannot be stored: {reason}")]
    Source {
        /// Name of the artifact.
        name: String,
        /// What differs, or the error of reading the content.
        reason: String,
    },
    /// A manifest cannot be used.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
}

impl ObjectStoreError {
    /// Whether trying again later may help without anybody changing anything.
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::Slow { .. })
    }

    pub(crate) fn of(what: &'static str, bucket: &str, error: &object_store::Error) -> Self {
        let text = chain(error);
        let message = code(&text);
        if message.as_deref() == Some("NoSuchBucket") {
            return Self::NoBucket(bucket.to_owned());
        }
        let refused = [
            "AccessDenied",
            "InvalidAccessKeyId",
            "SignatureDoesNotMatch",
            "ExpiredToken",
            "InvalidToken",
        ];
        if message.as_deref().is_some_and(|message| refused.contains(&message)) {
            return Self::Refused {
                what,
                message: message.unwrap_or_default(),
            };
        }
        match error {
            object_store::Error::PermissionDenied { .. } => Self::Refused {
                what,
                message: message.unwrap_or_else(|| "403".to_owned()),
            },
            object_store::Error::Unauthenticated { .. } => Self::Refused {
                what,
                message: message.unwrap_or_else(|| "401".to_owned()),
            },
            object_store::Error::NotFound { .. } if message.is_none() && what != READING => {
                Self::NoBucket(bucket.to_owned())
            }
            object_store::Error::NotFound { path, .. } => Self::Missing(path.clone()),
            _ => Self::Unavailable {
                what,
                message: message.unwrap_or_else(|| innermost(error)),
            },
        }
    }
}

/// The kinds of requests, for messages.
pub(crate) const READING: &str = "reading";
pub(crate) const WRITING: &str = "writing";
pub(crate) const LISTING: &str = "listing";
pub(crate) const REMOVING: &str = "removing";

fn chain(error: &object_store::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

/// The code in an answer of S3. The rest of its body may name keys and signatures.
fn code(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("<Code>")?;
    let (code, _) = rest.split_once("</Code>")?;
    let plain = !code.is_empty() && code.len() <= 64 && code.bytes().all(|byte| byte.is_ascii_alphanumeric());
    plain.then(|| code.to_owned())
}

/// What lies at the bottom of an error, which is the operating system's or the library's own word;
/// never an answer's body.
fn innermost(error: &object_store::Error) -> String {
    let mut last = error.source();
    while let Some(deeper) = last.and_then(|cause| cause.source()) {
        last = Some(deeper);
    }
    let text = last.map_or_else(|| error.to_string(), ToString::to_string);
    let text = text.split('<').next().unwrap_or_default().trim_end_matches([' ', ':']);
    text.chars().take(256).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_answers_body_only_the_code_is_told() {
        let body = "Server returned non-2xx status code: 403 Forbidden: <?xml?><Error><Code>SignatureDoesNotMatch</Code>\
                    <AWSAccessKeyId>AKIASECRET</AWSAccessKeyId></Error>";
        let error = object_store::Error::Generic {
            store: "S3",
            source: body.into(),
        };
        let error = ObjectStoreError::of(WRITING, "profiles", &error);
        assert!(matches!(error, ObjectStoreError::Refused { .. }) && !error.is_transient());
        assert_eq!(
            error.to_string(),
            "the object store refuses writing (SignatureDoesNotMatch): check the credentials of the store and what they may do"
        );
        let odd = body.replace("SignatureDoesNotMatch", "AKIA/SECRET");
        let error = object_store::Error::Generic {
            store: "S3",
            source: odd.into(),
        };
        let error = ObjectStoreError::of(WRITING, "profiles", &error);
        assert!(error.is_transient() && !error.to_string().contains("AKIA"), "{error}");
    }
}
