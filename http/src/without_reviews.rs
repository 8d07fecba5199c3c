//! What stands for reviews where this was built without the Kubernetes API: nobody can make a
//! reviewer, so nobody is asked.

use std::marker::PhantomData;
use std::sync::Arc;

use crate::grant::{Denied, Grant};

/// Asks the Kubernetes API who may read; there is none without the feature `cluster`.
#[derive(Debug)]
pub enum Reviewer {}

/// The token of one request.
#[derive(Debug)]
pub struct Credentials<'a>(PhantomData<&'a str>);

impl<'a> Credentials<'a> {
    /// The credentials of a request with this bearer token.
    pub const fn new(_token: &'a str) -> Self {
        Self(PhantomData)
    }
}

#[expect(
    clippy::unused_async,
    reason = "reviewers that there are wait for the Kubernetes API"
)]
impl Reviewer {
    /// The name of the caller, if they have the right.
    pub async fn review(&self, _credentials: &Credentials<'_>, _grant: &Grant<'_>) -> Result<Arc<str>, Denied> {
        match *self {}
    }

    /// The name of the caller, if they may `put` under a path that is no resource.
    pub async fn review_put(&self, _credentials: &Credentials<'_>, _path: &str) -> Result<Arc<str>, Denied> {
        match *self {}
    }
}
