//! Asks the Kubernetes API who the caller is and what they may read.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};
use prometheus::IntCounterVec;
use tokio::sync::{OnceCell, Semaphore};
use tokio::time::timeout;

use crate::grant::{Denied, Grant};
use crate::memory::{Memory, key};
use crate::token;

/// How the Kubernetes API is asked.
#[derive(Clone, Debug)]
pub struct ReviewerOptions {
    /// Audiences that a token must be for at least one of; empty: those of the API server.
    pub audiences: Vec<String>,
    /// Audience of tokens that others have for this service alone. A token that does not say that
    /// it is for it is reviewed for `audiences`.
    pub service_audience: Option<String>,
    /// Longest wait for one answer.
    pub deadline: Duration,
    /// How long a permission is remembered.
    pub lifetime: Duration,
    /// How long it is remembered that a right is missing: one that was just granted works so much
    /// later at most.
    pub denial_lifetime: Duration,
    /// How long it is remembered that a token is none.
    pub refusal_lifetime: Duration,
    /// Permissions that are remembered at most, as many missing rights, and as many tokens that are
    /// none.
    pub capacity: usize,
    /// Questions that may be open at once.
    pub concurrency: usize,
}

impl ReviewerOptions {
    /// For whoever reads metrics: 1 minute of memory, so that a scrape every few seconds costs few
    /// questions.
    pub fn for_metrics(audience: &str) -> Self {
        Self {
            service_audience: Some(audience.to_owned()),
            lifetime: Duration::from_mins(1),
            capacity: 256,
            ..Self::default()
        }
    }
}

impl Default for ReviewerOptions {
    /// 5 s for an answer, 10 s of memory, 1 s for missing rights, 5 s for tokens that are none,
    /// 4096 of each, 16 questions at once.
    fn default() -> Self {
        Self {
            audiences: Vec::new(),
            service_audience: None,
            deadline: Duration::from_secs(5),
            lifetime: Duration::from_secs(10),
            denial_lifetime: Duration::from_secs(1),
            refusal_lifetime: Duration::from_secs(5),
            capacity: 4096,
            concurrency: 16,
        }
    }
}

/// Asks by TokenReview and SubjectAccessReview; needs `create` on both.
pub struct Reviewer {
    client: Client,
    options: ReviewerOptions,
    /// Permissions that were given, and to whom.
    permissions: Memory<Arc<str>>,
    /// Rights that are missing. Nobody needs one to be asked about, so each question of a token
    /// would cost the API server a review.
    denials: Memory<()>,
    /// Tokens that are none.
    refusals: Memory<()>,
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

/// What is asked about the bearer of a token.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Question<'a> {
    /// The user name of the token's holder.
    Who,
    /// Whether they have a right to a session.
    Session(&'a Grant<'a>),
    /// Whether they may tell the schedules of a namespace of alerts; empty for every namespace.
    Alerts(&'a str),
    /// Whether they may do this with a path that is no resource: the verb and the path.
    Path(&'a str, &'a str),
}

/// The token of one request, and whose it turned out to be.
pub struct Credentials<'a> {
    token: &'a str,
    user: OnceCell<UserInfo>,
}

impl<'a> Credentials<'a> {
    /// The credentials of a request with this bearer token.
    pub fn new(token: &'a str) -> Self {
        Self {
            token,
            user: OnceCell::new(),
        }
    }
}

impl Reviewer {
    /// A reviewer that asks through `client` and counts in `reviews`, whose labels are `review`
    /// (`token`, `access`) and `result` (`allowed`, `denied`, `error`).
    pub fn new(client: Client, options: ReviewerOptions, reviews: IntCounterVec) -> Self {
        Self {
            client,
            permissions: Memory::new(options.lifetime, options.capacity),
            denials: Memory::new(options.denial_lifetime, options.capacity),
            refusals: Memory::new(options.refusal_lifetime, options.capacity),
            open: Semaphore::new(options.concurrency.max(1)),
            reviews,
            options,
        }
    }

    /// The name of the caller, if they have the right.
    pub async fn review(&self, credentials: &Credentials<'_>, grant: &Grant<'_>) -> Result<Arc<str>, Denied> {
        self.answer(credentials, Question::Session(grant)).await
    }

    /// The name of the caller, if they may `get` a path that is no resource, such as `/metrics`.
    pub async fn review_path(&self, credentials: &Credentials<'_>, path: &str) -> Result<Arc<str>, Denied> {
        self.answer(credentials, Question::Path("get", path)).await
    }

    /// The name of the caller, if they may `put` under a path that is no resource.
    pub async fn review_put(&self, credentials: &Credentials<'_>, path: &str) -> Result<Arc<str>, Denied> {
        self.answer(credentials, Question::Path("put", path)).await
    }

    /// The name of the caller, if they may tell the schedules of a namespace of alerts: `create` on
    /// `profilingschedules/alerts`. Empty for every namespace.
    pub async fn review_alerts(&self, credentials: &Credentials<'_>, namespace: &str) -> Result<Arc<str>, Denied> {
        self.answer(credentials, Question::Alerts(namespace)).await
    }

    /// The name of the caller, whatever they may.
    pub async fn identify(&self, credentials: &Credentials<'_>) -> Result<Arc<str>, Denied> {
        self.answer(credentials, Question::Who).await
    }

    async fn answer(&self, credentials: &Credentials<'_>, question: Question<'_>) -> Result<Arc<str>, Denied> {
        let cache_key = key(credentials.token, &question);
        if let Some(name) = self.permissions.get(&cache_key, Instant::now()) {
            return Ok(name);
        }
        if self.denials.get(&cache_key, Instant::now()).is_some() {
            return Err(Denied::Forbidden);
        }
        let user = credentials
            .user
            .get_or_try_init(|| self.authenticate(credentials.token))
            .await?;
        let authorized = self.authorize(user, question).await;
        if matches!(authorized, Err(Denied::Forbidden)) {
            self.denials.put(cache_key, (), Instant::now());
        }
        authorized?;
        let name: Arc<str> = user.username.as_deref().unwrap_or_default().into();
        self.permissions.put(cache_key, Arc::clone(&name), Instant::now());
        Ok(name)
    }

    /// One review at most: the token's own words choose the audiences that it is asked about.
    async fn authenticate(&self, token: &str) -> Result<UserInfo, Denied> {
        if !token::is_plausible(token) {
            return Err(Denied::Unauthenticated);
        }
        let cache_key = key(token, &Question::Who);
        if self.refusals.get(&cache_key, Instant::now()).is_some() {
            return Err(Denied::Unauthenticated);
        }
        let own = self.options.service_audience.as_ref();
        let wanted = match own.filter(|own| token::is_said_to_be_for(token, own)) {
            Some(own) => std::slice::from_ref(own),
            None => &self.options.audiences,
        };
        let reviewed = self.token_review(token, wanted).await;
        if matches!(reviewed, Err(Denied::Unauthenticated)) {
            self.refusals.put(cache_key, (), Instant::now());
        }
        reviewed
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

    async fn authorize(&self, user: &UserInfo, question: Question<'_>) -> Result<(), Denied> {
        let mut spec = SubjectAccessReviewSpec {
            user: user.username.clone(),
            groups: user.groups.clone(),
            uid: user.uid.clone(),
            extra: user.extra.clone(),
            ..SubjectAccessReviewSpec::default()
        };
        match question {
            Question::Who => return Ok(()),
            Question::Path(verb, path) => {
                spec.non_resource_attributes = Some(NonResourceAttributes {
                    path: Some(path.to_owned()),
                    verb: Some(verb.to_owned()),
                });
            }
            Question::Alerts(namespace) => {
                spec.resource_attributes = Some(ResourceAttributes {
                    namespace: Some(namespace.to_owned()).filter(|namespace| !namespace.is_empty()),
                    verb: Some("create".to_owned()),
                    group: Some("flopwatch.dev".to_owned()),
                    resource: Some("profilingschedules".to_owned()),
                    subresource: Some("alerts".to_owned()),
                    ..ResourceAttributes::default()
                });
            }
            Question::Session(grant) => {
                spec.resource_attributes = Some(ResourceAttributes {
                    namespace: Some(grant.namespace.to_owned()).filter(|namespace| !namespace.is_empty()),
                    verb: Some(grant.verb.as_str().to_owned()),
                    group: Some("flopwatch.dev".to_owned()),
                    resource: Some("profilingsessions".to_owned()),
                    subresource: grant.raw.then(|| "raw".to_owned()),
                    name: grant.session.map(str::to_owned),
                    ..ResourceAttributes::default()
                });
            }
        }
        let review = SubjectAccessReview {
            spec,
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
