//! What goes wrong, and with which calls.

use std::fmt;

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Reading one object.
    Get,
    /// Listing a collection.
    List,
    /// What happens to a collection.
    Watch,
    /// A new object.
    Create,
    /// An object in place of another.
    Replace,
    /// A change, server-side apply included.
    Patch,
    /// Deleting an object.
    Delete,
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Replace => "replace",
            Self::Patch => "patch",
            Self::Delete => "delete",
        })
    }
}

/// How a call goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The call is refused with this code, and nothing is done.
    Code(u16),
    /// The call is refused with this code in these words: a quota, a policy, a malformed object.
    Refused(u16, &'static str),
    /// The call is done, and answered with this code.
    DoneBut(u16),
    /// The call is never answered, and nothing is done.
    Hang,
}

/// Calls that go wrong.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(crate) verb: Verb,
    /// As in a path, the subresource included: `captures/status`.
    pub(crate) resource: String,
    /// Of one object; of all where there is none.
    pub(crate) name: Option<String>,
    pub(crate) fault: Fault,
    /// How many are left.
    pub(crate) times: usize,
}
