//! The server that a test talks about, and the service that a client talks to.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::{Body, to_bytes};
use futures::future::BoxFuture;
use futures::stream;
use http::header::AUTHORIZATION;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use jiff::SignedDuration;
use jiff::fmt::rfc2822::DateTimePrinter;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::fault::{Fault, Rule, Verb};
use crate::path::ResourcePath;
use crate::reviews::ADMINISTRATOR;
use crate::state::{Answer, Call, State, about, is_selected, refused};

/// Longest body that is read.
const MAX_BODY_BYTES: usize = 4 << 20;
/// What a refusal says that a test gives no words.
const UNSAID: &str = "a test wants it so";

/// An API server in memory. Clones are the same server.
#[derive(Clone, Default)]
pub struct ApiServer {
    state: Arc<Mutex<State>>,
    changed: Arc<Notify>,
}

impl fmt::Debug for ApiServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiServer").finish_non_exhaustive()
    }
}

impl ApiServer {
    /// One without objects.
    pub fn new() -> Self {
        Self::default()
    }

    /// A client of an administrator, whose default namespace that is.
    pub fn client(&self, namespace: &str) -> Client {
        self.client_of(ADMINISTRATOR, namespace)
    }

    /// A client that shows a token, and may what its user may.
    pub fn client_of(&self, token: &str, namespace: &str) -> Client {
        let server = self.clone();
        let bearer = HeaderValue::try_from(format!("Bearer {token}")).unwrap();
        let service = tower::service_fn(move |request: Request<kube::client::Body>| {
            let (server, bearer) = (server.clone(), bearer.clone());
            let mut request = request.map(Body::new);
            request.headers_mut().insert(AUTHORIZATION, bearer);
            async move { Ok::<_, Infallible>(server.serve(request).await) }
        });
        Client::new(service, namespace)
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at the state or changes it, and wakes the watches.
    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        let result = act(&mut self.state());
        self.changed.notify_waiters();
        result
    }

    /// Puts an object there, in place of one of that kind and name; returns it as it is stored.
    pub fn put(&self, object: &Value) -> Value {
        self.with(|state| state.put(object.clone()))
    }

    /// An object as it is now.
    pub fn get(&self, resource: &str, namespace: &str, name: &str) -> Option<Value> {
        self.state().find(resource, Some(namespace), name).cloned()
    }

    /// All objects of a resource, by namespace and name.
    pub fn all(&self, resource: &str) -> Vec<Value> {
        self.state().all(resource)
    }

    /// Changes an object as somebody else would. Fails when there is none.
    pub fn edit(&self, resource: &str, namespace: &str, name: &str, change: impl FnOnce(&mut Value)) {
        let key = (resource.to_owned(), Some(namespace.to_owned()), name.to_owned());
        assert!(self.with(|state| state.edit(&key, change)), "no {resource} {name}");
    }

    /// Deletes an object as somebody else would: it stays, marked, while it has finalizers. Fails
    /// when there is none.
    pub fn delete(&self, resource: &str, namespace: &str, name: &str) {
        let key = (resource.to_owned(), Some(namespace.to_owned()), name.to_owned());
        assert!(self.with(|state| state.end(&key)).is_some(), "no {resource} {name}");
    }

    /// Lets the next `times` calls of a resource (`captures/status` for a subresource) go wrong;
    /// rules go in their order.
    pub fn fail(&self, times: usize, verb: Verb, resource: &str, fault: Fault) {
        self.rule(times, verb, resource, None, fault);
    }

    /// Lets the next `times` calls that name one object go wrong, as [`Self::fail`] does.
    pub fn fail_for(&self, times: usize, verb: Verb, resource: &str, name: &str, fault: Fault) {
        self.rule(times, verb, resource, Some(name.to_owned()), fault);
    }

    fn rule(&self, times: usize, verb: Verb, resource: &str, name: Option<String>, fault: Fault) {
        self.state().rules.push(Rule {
            verb,
            resource: resource.to_owned(),
            name,
            fault,
            times,
        });
    }

    /// Lets every call go right from now on; one that hangs goes on hanging.
    pub fn heal(&self) {
        self.state().rules.clear();
    }

    /// Lets others do something about every call once it was decided: an agent, a controller, a
    /// rival. What they do by the server's own methods is no call.
    pub fn after(&self, react: impl Fn(&Self, &Call) + Send + Sync + 'static) {
        self.state().reactions.push(Arc::new(react));
    }

    /// Keeps the answer of every call but a watch on its way for as long as `wait` says. What the
    /// call does is done before.
    pub fn delay(&self, wait: impl Fn(&Call) -> BoxFuture<'static, ()> + Send + Sync + 'static) {
        self.state().delays.push(Arc::new(wait));
    }

    /// Puts at most so many objects into an answer, whatever was asked for.
    pub fn set_page(&self, objects: usize) {
        self.state().page = Some(objects);
    }

    /// Holds what is created of a custom resource against the bounds that its schema gives to
    /// numbers.
    pub fn define(&self, resource: &CustomResourceDefinition) {
        let spec = &resource.spec;
        for version in &spec.versions {
            let schema = version.schema.as_ref().map(|schema| &schema.open_api_v3_schema);
            let of = (format!("{}/{}", spec.group, version.name), spec.names.plural.clone());
            self.state().schemas.insert(of, serde_json::to_value(schema).unwrap());
        }
    }

    /// Sets its clock, which dates objects and answers, ahead of this machine's.
    pub fn set_ahead(&self, ahead: SignedDuration) {
        self.state().ahead = ahead;
    }

    /// Takes an API group away, as where its definitions are not installed.
    pub fn remove_group(&self, group: &str) {
        self.state().removed_groups.insert(group.to_owned());
    }

    /// Ends all watches; clients begin them anew.
    pub fn end_watches(&self) {
        self.with(|state| state.epoch += 1);
    }

    /// All calls so far, in their order.
    pub fn calls(&self) -> Vec<Call> {
        self.state().calls.clone()
    }

    /// Calls that are no reading, as `verb path`.
    pub fn writes(&self) -> Vec<String> {
        let reads = [Verb::Get, Verb::List, Verb::Watch];
        let calls = self.calls().into_iter().filter(|call| !reads.contains(&call.verb));
        calls.map(|call| format!("{} {}", call.verb, call.path)).collect()
    }

    pub(crate) async fn serve(&self, request: Request<Body>) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let body = to_bytes(body, MAX_BODY_BYTES).await.unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let path = parts.uri.path().to_owned();
        let query = pairs(parts.uri.query().unwrap_or_default());
        let Some(place) = ResourcePath::parse(&path) else {
            return self.answered((200, json!({"major": "1", "minor": "33"})));
        };
        let watches = query.get("watch").is_some_and(|value| value == "true" || value == "1");
        let verb = match (&parts.method, &place.name) {
            (_, None) if watches => Verb::Watch,
            (&Method::POST, _) => Verb::Create,
            (&Method::PUT, _) => Verb::Replace,
            (&Method::PATCH, _) => Verb::Patch,
            (&Method::DELETE, _) => Verb::Delete,
            (_, None) => Verb::List,
            (_, Some(_)) => Verb::Get,
        };
        let (mut call, at, caller, fault, reactions, delays) = {
            let mut state = self.state();
            let caller = state.reviews.caller(&parts.headers);
            let at = state.calls.len();
            let call = Call {
                user: caller.as_ref().map(|caller| caller.user().to_owned()),
                verb,
                path,
                body: body.clone(),
                code: None,
            };
            state.calls.push(call.clone());
            let caller = state.reviews.let_through(caller, verb, &place);
            let fault = state.fault(verb, &place);
            (call, at, caller, fault, state.reactions.clone(), state.delays.clone())
        };
        let how = parts.headers.get(http::header::CONTENT_TYPE);
        let how = how.and_then(|value| value.to_str().ok()).unwrap_or_default();
        let answer = match (fault, caller) {
            (Some(Fault::Hang), _) => std::future::pending().await,
            (Some(Fault::Code(code)), _) => refused(code, UNSAID),
            (Some(Fault::Refused(code, message)), _) => refused(code, message),
            (_, Err(denied)) => denied,
            _ if !self.state().serves(&place) => {
                self.state().calls[at].code = Some(StatusCode::NOT_FOUND.as_u16());
                return not_served();
            }
            _ if verb == Verb::Watch => {
                self.state().calls[at].code = Some(200);
                return self.watch(place, query);
            }
            _ if place.named() == "pods/portforward" => {
                self.state().calls[at].code = Some(StatusCode::SWITCHING_PROTOCOLS.as_u16());
                return self.forward(parts, &query);
            }
            (_, Ok(caller)) => self.with(|state| state.answer(&caller, verb, &place, &query, how, &body)),
        };
        let answer = match fault {
            Some(Fault::DoneBut(code)) => refused(code, UNSAID),
            _ => answer,
        };
        call.code = Some(answer.0);
        self.state().calls[at].code = call.code;
        for react in reactions {
            react(self, &call);
        }
        for delay in delays {
            delay(&call).await;
        }
        self.answered(about(&place, answer))
    }

    pub(crate) fn answered(&self, (code, body): Answer) -> Response<Body> {
        let date = DateTimePrinter::new()
            .timestamp_to_rfc9110_string(&self.state().now())
            .unwrap();
        let response = Response::builder().status(code).header(http::header::DATE, date);
        response.body(Body::from(serde_json::to_vec(&body).unwrap())).unwrap()
    }

    /// What happens from a revision on, line by line.
    fn watch(&self, place: ResourcePath, query: BTreeMap<String, String>) -> Response<Body> {
        let (epoch, now) = {
            let state = self.state();
            (state.epoch, state.revision())
        };
        let since = query
            .get("resourceVersion")
            .and_then(|version| version.parse().ok())
            .unwrap_or(now);
        let watch = Watch {
            server: self.clone(),
            place,
            query,
            epoch,
            since,
        };
        let lines = stream::unfold(watch, |mut watch| async move {
            let lines = watch.next().await?;
            Some((Ok::<_, Infallible>(lines), watch))
        });
        Response::new(Body::from_stream(lines))
    }
}

/// A watch of a client.
struct Watch {
    server: ApiServer,
    place: ResourcePath,
    query: BTreeMap<String, String>,
    epoch: u64,
    /// The last revision that the client knows.
    since: u64,
}

impl Watch {
    /// Waits for something to tell; nothing when the watch is to end.
    async fn next(&mut self) -> Option<String> {
        loop {
            let changed = Arc::clone(&self.server.changed);
            let mut notified = std::pin::pin!(changed.notified());
            // From here on nothing is missed.
            notified.as_mut().enable();
            if self.server.state().epoch != self.epoch {
                return None;
            }
            let lines = self.look();
            if !lines.is_empty() {
                return Some(lines);
            }
            notified.await;
        }
    }

    /// What happened since the last look, line by line.
    fn look(&mut self) -> String {
        let state = self.server.state();
        let mut lines = String::new();
        for happened in state.history.iter().filter(|happened| happened.revision > self.since) {
            let (resource, namespace, _) = &happened.key;
            let there = self.place.namespace.is_none() || *namespace == self.place.namespace;
            if *resource == self.place.resource && there && is_selected(&happened.object, &self.query) {
                lines.push_str(&json!({"type": happened.what, "object": happened.object}).to_string());
                lines.push('\n');
            }
        }
        self.since = state.revision();
        lines
    }
}

/// The answer at a path where there is nothing.
fn not_served() -> Response<Body> {
    let response = Response::builder().status(StatusCode::NOT_FOUND);
    response.body(Body::from("404 page not found\n")).unwrap()
}

/// The parameters of a query.
fn pairs(query: &str) -> BTreeMap<String, String> {
    url::form_urlencoded::parse(query.as_bytes()).into_owned().collect()
}
