//! What a request needs the right to, and why it is denied.

/// What is done with a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// The right to read one object.
    Get,
    /// The right to list objects.
    List,
}

impl Verb {
    #[cfg(feature = "cluster")]
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
        }
    }
}

/// A right that a request needs.
#[derive(Clone, Copy, Debug)]
pub struct Grant<'a> {
    /// What the caller wants to do.
    pub verb: Verb,
    /// Namespace of the session; empty for every namespace.
    pub namespace: &'a str,
    /// The session, or `None` for every session of the namespace.
    pub session: Option<&'a str>,
    /// The session's raw captures rather than the session.
    pub raw: bool,
}

#[cfg(feature = "cluster")]
impl Grant<'_> {
    pub(crate) fn resource(&self) -> &'static str {
        if self.raw {
            "profilingsessions/raw"
        } else {
            "profilingsessions"
        }
    }
}

/// Why a request is not let through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    /// The token is not known.
    Unauthenticated,
    /// The caller has not the right.
    Forbidden,
    /// The API did not answer.
    Unavailable,
}
