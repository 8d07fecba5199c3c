//! Asks the Kubernetes API who the caller is and what they may read.

use std::fmt;
use std::future::Future;
use std::time::{Duration, Instant};

use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::api::PostParams;
use kube::{Api, Client};
use prometheus::IntCounterVec;
use tokio::sync::{OnceCell, Semaphore};
use tokio::time::timeout;

use crate::permissions::Permissions;

/// How the Kubernetes API is asked.
#[derive(Clone, Debug)]
pub struct ReviewerOptions {
    /// Audiences that a token must be for at least one of; empty: those of the API server.
    pub audiences: Vec<String>,
    /// Audience of tokens that other parts of Flopwatch have for this service alone. A token that is not for it is reviewed for
    /// `audiences`.
    pub service_audience: Option<String>,
    /// Longest wait for one answer.
    pub deadline: Duration,
    /// How long a permission is remembered.
    pub lifetime: Duration,
    /// Permissions that are remembered at most.
    pub capacity: usize,
    /// Questions that may be open at once.
    pub concurrency: usize,
}

impl Default for ReviewerOptions {
    /// 5 s for an answer, 10 s of memory, 4096 permissions, 16 questions at once.
    fn default() -> Self {
        Self {
            audiences: Vec::new(),
            service_audience: None,
            deadline: Duration::from_secs(5),
            lifetime: Duration::from_secs(10),
            capacity: 4096,
            concurrency: 16,
        }
    }
}

/// Asks by TokenReview and SubjectAccessReview; needs `create` on both.
pub struct Reviewer {
    client: Client,
    options: ReviewerOptions,
    permissions: Permissions,
    open: Semaphore,
    reviews: IntCounterVec,
}

impl fmt::Debug for Reviewer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reviewer")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// What is done with a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// It is read.
    Get,
    /// It is listed with others.
    List,
}

impl Verb {
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
    /// What is done.
    pub verb: Verb,
    /// Namespace of the session; empty for every namespace.
    pub namespace: &'a str,
    /// The session, or `None` for every session of the namespace.
    pub session: Option<&'a str>,
    /// The session's raw captures rather than the session.
    pub raw: bool,
}

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

/// The token of one request, and whose it turned out to be.
pub struct Credentials<'a> {
    token: &'a str,
    user: OnceCell<UserInfo>,
}

impl<'a> Credentials<'a> {
    /// Of a request with this bearer token.
    pub fn new(token: &'a str) -> Self {
        Self {
            token,
            user: OnceCell::new(),
        }
    }
}

impl Reviewer {
    /// A reviewer that asks through `client` and counts in `reviews`, whose labels are `review` (`token`, `access`) and `result`
    /// (`allowed`, `denied`, `error`).
    pub fn new(client: Client, options: ReviewerOptions, reviews: IntCounterVec) -> Self {
        Self {
            client,
            permissions: Permissions::new(options.lifetime, options.capacity),
            open: Semaphore::new(options.concurrency.max(1)),
            reviews,
            options,
        }
    }

    /// Whether the caller has the right.
    pub async fn review(&self, credentials: &Credentials<'_>, grant: &Grant<'_>) -> Result<(), Denied> {
        if self.permissions.holds(credentials.token, grant, Instant::now()) {
            return Ok(());
        }
        let user = credentials
            .user
            .get_or_try_init(|| self.authenticate(credentials.token))
            .await?;
        self.authorize(user, grant).await?;
        self.permissions.remember(credentials.token, grant, Instant::now());
        Ok(())
    }

    async fn authenticate(&self, token: &str) -> Result<UserInfo, Denied> {
        if let Some(audience) = &self.options.service_audience {
            match self.token_review(token, std::slice::from_ref(audience)).await {
                Err(Denied::Unauthenticated) => {}
                decided => return decided,
            }
        }
        self.token_review(token, &self.options.audiences).await
    }

    async fn token_review(&self, token: &str, wanted: &[String]) -> Result<UserInfo, Denied> {
        let audiences = (!wanted.is_empty()).then(|| wanted.to_vec());
        let review = TokenReview {
            spec: TokenReviewSpec {
                token: Some(token.to_owned()),
                audiences,
            },
            ..TokenReview::default()
        };
        let api: Api<TokenReview> = Api::all(self.client.clone());
        let status = self
            .ask("token", api.create(&PostParams::default(), &review))
            .await?
            .status
            .unwrap_or_default();
        // An authenticator that knows no audiences returns none; its word is then not enough.
        let audience = wanted.is_empty()
            || status
                .audiences
                .unwrap_or_default()
                .iter()
                .any(|audience| wanted.contains(audience));
        match status.user {
            Some(user) if status.authenticated == Some(true) && audience => {
                self.count("token", "allowed");
                Ok(user)
            }
            _ => {
                self.count("token", "denied");
                Err(Denied::Unauthenticated)
            }
        }
    }

    async fn authorize(&self, user: &UserInfo, grant: &Grant<'_>) -> Result<(), Denied> {
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: user.username.clone(),
                groups: user.groups.clone(),
                uid: user.uid.clone(),
                extra: user.extra.clone(),
                resource_attributes: Some(ResourceAttributes {
                    namespace: Some(grant.namespace.to_owned()).filter(|namespace| !namespace.is_empty()),
                    verb: Some(grant.verb.as_str().to_owned()),
                    group: Some("flopwatch.dev".to_owned()),
                    resource: Some("profilingsessions".to_owned()),
                    subresource: grant.raw.then(|| "raw".to_owned()),
                    name: grant.session.map(str::to_owned),
                    ..ResourceAttributes::default()
                }),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let api: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let status = self
            .ask("access", api.create(&PostParams::default(), &review))
            .await?
            .status
            .unwrap_or_default();
        if status.allowed && status.denied != Some(true) {
            self.count("access", "allowed");
            Ok(())
        } else {
            self.count("access", "denied");
            Err(Denied::Forbidden)
        }
    }

    /// One question, within the deadline and the number of open ones.
    async fn ask<T>(&self, review: &'static str, question: impl Future<Output = kube::Result<T>>) -> Result<T, Denied> {
        let answer = timeout(self.options.deadline, async {
            let _open = self.open.acquire().await;
            question.await
        })
        .await;
        match answer {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => {
                tracing::warn!(review, %error, "access review failed");
                self.count(review, "error");
                Err(Denied::Unavailable)
            }
            Err(_) => {
                tracing::warn!(review, deadline = ?self.options.deadline, "access review was not answered in time");
                self.count(review, "error");
                Err(Denied::Unavailable)
            }
        }
    }

    fn count(&self, review: &str, result: &str) {
        self.reviews.with_label_values(&[review, result]).inc();
    }
}
