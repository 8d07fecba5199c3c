//! An API server of the tests: it answers reviews, gives out tokens for agents, keeps sessions, and lists pods.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{delete, get, post};
use axum::{Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kube::runtime::watcher::Event;
use serde_json::{Value, json};

use crate::gateway::sessions::Sessions;

/// What the API server knows. A token is its user's name; those that the gateway is given say whom they are for.
#[derive(Default)]
pub(super) struct World {
    /// `user verb resource[/subresource] namespace[/name]`; without a name all of the namespace, `*` every namespace.
    pub(super) rights: BTreeSet<String>,
    /// Sessions that were made, with the user whose token made them.
    pub(super) made: Vec<(String, Value)>,
    /// Sessions that were deleted, likewise.
    pub(super) deleted: Vec<(String, Value)>,
    /// Changes that were made to sessions, likewise.
    pub(super) changed: Vec<(String, Value)>,
    /// What tokens for agents the gateway asked for: the node's audience of each.
    pub(super) tokens: Vec<String>,
    /// Nodes and addresses of the agents behind their Service.
    pub(super) endpoints: Vec<(String, SocketAddr)>,
    /// Reviews of tokens that were asked for.
    pub(super) token_reviews: usize,
    /// Whether reviews fail.
    pub(super) broken: bool,
    /// Whether a controller gives new sessions their ids.
    pub(super) no_controller: bool,
    /// Whether sessions succeed as soon as they have them.
    pub(super) ends_at_once: bool,
}

impl World {
    fn allows(&self, user: &str, verb: &str, resource: &str, namespace: &str, name: &str) -> bool {
        let right = |place: &str| self.rights.contains(&format!("{user} {verb} {resource} {place}"));
        let named = !name.is_empty() && right(&format!("{namespace}/{name}"));
        right("*") || (!namespace.is_empty() && right(namespace)) || named
    }
}

/// Users whom the API server knows.
const USERS: [&str; 4] = ["admin", "reader", "raw-reader", "stranger"];

/// What the handlers have at hand.
pub(super) struct ApiState {
    pub(super) world: Arc<Mutex<World>>,
    pub(super) sessions: Sessions,
}

type Refusal = (StatusCode, Json<Value>);

fn refusal(status: StatusCode, message: &str) -> Refusal {
    let status_object = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": status.as_u16(),
        "reason": status.canonical_reason().unwrap_or_default(), "metadata": {}
    });
    (status, Json(status_object))
}

async fn token_review(
    State(state): State<Arc<ApiState>>,
    Json(mut review): Json<Value>,
) -> Result<Json<Value>, Refusal> {
    {
        let mut world = state.world.lock().unwrap();
        world.token_reviews += 1;
        if world.broken {
            return Err(refusal(StatusCode::INTERNAL_SERVER_ERROR, "broken"));
        }
    }
    let token = review["spec"]["token"].as_str().unwrap().to_owned();
    let asked_for = &review["spec"]["audiences"];
    let (user, known) = match gateway_token_of(&token) {
        Some(audience) => ("gateway".to_owned(), *asked_for == json!([audience])),
        None => (token.clone(), asked_for.is_null() && USERS.contains(&token.as_str())),
    };
    review["status"] = json!({
        "authenticated": known, "audiences": review["spec"]["audiences"],
        "user": {"username": user, "groups": ["people"]}
    });
    Ok(Json(review))
}

/// The gateway's token of that audience.
pub(super) fn gateway_token(audience: &str) -> String {
    let claims = json!({"sub": "gateway", "aud": [audience]}).to_string();
    format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(claims))
}

/// The audience of one.
fn gateway_token_of(token: &str) -> Option<String> {
    let payload = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    let claims: Value = serde_json::from_slice(&payload).ok()?;
    claims["aud"][0].as_str().map(str::to_owned)
}

async fn give_token(
    State(state): State<Arc<ApiState>>,
    Path((namespace, account)): Path<(String, String)>,
    Json(mut request): Json<Value>,
) -> (StatusCode, Json<Value>) {
    assert_eq!(
        (namespace.as_str(), account.as_str()),
        ("flopwatch", "flopwatch-gateway")
    );
    assert_eq!(
        request["spec"]["boundObjectRef"],
        json!({"apiVersion": "v1", "kind": "Pod", "name": "gateway-pod", "uid": "gateway-pod-uid"})
    );
    let audience = request["spec"]["audiences"][0].as_str().unwrap().to_owned();
    request["status"] = json!({"token": gateway_token(&audience), "expirationTimestamp": "2099-01-01T00:00:00Z"});
    state.world.lock().unwrap().tokens.push(audience);
    (StatusCode::CREATED, Json(request))
}

async fn endpoint_slices(State(state): State<Arc<ApiState>>, Query(query): Query<Value>) -> Json<Value> {
    assert_eq!(query["labelSelector"], "kubernetes.io/service-name=flopwatch-agent");
    let world = state.world.lock().unwrap();
    let slices = world.endpoints.iter().map(|(node, address)| {
        json!({
            "metadata": {"name": node}, "addressType": "IPv4", "ports": [{"name": "https", "port": address.port()}],
            "endpoints": [{"addresses": [address.ip()], "nodeName": node, "conditions": {"ready": true}}]
        })
    });
    let slices: Vec<Value> = slices.collect();
    Json(json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSliceList", "metadata": {}, "items": slices}))
}

async fn access_review(State(state): State<Arc<ApiState>>, Json(mut review): Json<Value>) -> Json<Value> {
    let spec = &review["spec"];
    let attributes = &spec["resourceAttributes"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut resource = text(&attributes["resource"]);
    if let Some(subresource) = attributes["subresource"].as_str() {
        resource = format!("{resource}/{subresource}");
    }
    let allowed = state.world.lock().unwrap().allows(
        &text(&spec["user"]),
        &text(&attributes["verb"]),
        &resource,
        &text(&attributes["namespace"]),
        &text(&attributes["name"]),
    );
    review["status"] = json!({"allowed": allowed});
    Json(review)
}

fn user_of(headers: &HeaderMap) -> Result<String, Refusal> {
    let value = headers.get("authorization").and_then(|value| value.to_str().ok());
    let user = value
        .and_then(|value| value.strip_prefix("Bearer "))
        .unwrap_or_default();
    if USERS.contains(&user) {
        Ok(user.to_owned())
    } else {
        Err(refusal(StatusCode::UNAUTHORIZED, "Unauthorized"))
    }
}

async fn create(
    State(state): State<Arc<ApiState>>,
    Path(namespace): Path<String>,
    headers: HeaderMap,
    Json(mut session): Json<Value>,
) -> Result<(StatusCode, Json<Value>), Refusal> {
    let user = user_of(&headers)?;
    let mut world = state.world.lock().unwrap();
    if !world.allows(&user, "create", "profilingsessions", &namespace, "") {
        return Err(refusal(StatusCode::FORBIDDEN, "profilingsessions is forbidden"));
    }
    let lengths = [
        ("/durationSeconds", 1..=300),
        ("/startDeadlineSeconds", 1..=86_400),
        ("/retention/ttlSecondsAfterFinished", 0..=31_536_000),
        ("/target/maxPods", 1..=50),
    ];
    for (place, allowed) in lengths {
        let given = session["spec"].pointer(place).and_then(Value::as_i64);
        if given.is_some_and(|given| !allowed.contains(&given)) {
            let message = format!("spec{place}: must be {allowed:?}").replace('/', ".");
            return Err(refusal(StatusCode::UNPROCESSABLE_ENTITY, &message));
        }
    }
    let count = world.made.len();
    session["metadata"]["namespace"] = json!(namespace);
    session["metadata"]["name"] = json!(format!(
        "{}{count}",
        session["metadata"]["generateName"].as_str().unwrap()
    ));
    session["metadata"]["uid"] = json!(format!("made-{count}"));
    session["metadata"]["creationTimestamp"] = json!("2026-01-02T00:00:00Z");
    world.made.push((user, session.clone()));
    let mut taken_up = session.clone();
    if !world.no_controller {
        taken_up["status"] = json!({"id": format!("{count:08x}"), "conditions": []});
    }
    if world.ends_at_once {
        taken_up["status"]["conditions"] = json!([succeeded("True")]);
    }
    let taken_up = serde_json::from_value(taken_up).unwrap();
    state.sessions.session_event(Event::Apply(taken_up));
    Ok((StatusCode::CREATED, Json(session)))
}

async fn remove(
    State(state): State<Arc<ApiState>>,
    Path((namespace, name)): Path<(String, String)>,
    headers: HeaderMap,
    body: String,
) -> Result<Json<Value>, Refusal> {
    let user = user_of(&headers)?;
    let mut world = state.world.lock().unwrap();
    if !world.allows(&user, "delete", "profilingsessions", &namespace, "") {
        return Err(refusal(StatusCode::FORBIDDEN, "profilingsessions is forbidden"));
    }
    let options: Value = serde_json::from_str(&body).unwrap();
    world
        .deleted
        .push((user, json!({"name": name, "uid": options["preconditions"]["uid"]})));
    Ok(Json(
        json!({"kind": "Status", "apiVersion": "v1", "status": "Success", "metadata": {}}),
    ))
}

async fn change(
    State(state): State<Arc<ApiState>>,
    Path((namespace, name)): Path<(String, String)>,
    headers: HeaderMap,
    body: String,
) -> Result<Json<Value>, Refusal> {
    let user = user_of(&headers)?;
    let mut world = state.world.lock().unwrap();
    if !world.allows(&user, "patch", "profilingsessions", &namespace, "") {
        return Err(refusal(StatusCode::FORBIDDEN, "profilingsessions is forbidden"));
    }
    assert_eq!(headers["content-type"], "application/merge-patch+json");
    world.changed.push((user, serde_json::from_str(&body).unwrap()));
    Ok(Json(json!({
        "apiVersion": "flopwatch.dev/v1alpha1", "kind": "ProfilingSession", "metadata": {"name": name},
        "spec": {"target": {"podName": "train"}}
    })))
}

async fn self_review(headers: HeaderMap) -> Result<(StatusCode, Json<Value>), Refusal> {
    let user = user_of(&headers)?;
    let review = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview", "metadata": {},
        "status": {"userInfo": {"username": user}}
    });
    Ok((StatusCode::CREATED, Json(review)))
}

async fn pods(
    State(state): State<Arc<ApiState>>,
    Path(namespace): Path<String>,
    headers: HeaderMap,
) -> Result<Json<Value>, Refusal> {
    let user = user_of(&headers)?;
    if !state
        .world
        .lock()
        .unwrap()
        .allows(&user, "list", "pods", &namespace, "")
    {
        return Err(refusal(StatusCode::FORBIDDEN, "pods is forbidden"));
    }
    let pod = |name: &str, phase: &str| {
        json!({
            "metadata": {"name": name, "annotations": {"flopwatch.dev/prepared": "main"}},
            "spec": {"nodeName": "node", "containers": [
                {"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}, {"name": "logs"}
            ]},
            "status": {"phase": phase}
        })
    };
    let items = [pod("train", "Running"), pod("done", "Succeeded")];
    Ok(Json(
        json!({"apiVersion": "v1", "kind": "PodList", "metadata": {"continue": "more"}, "items": items}),
    ))
}

/// The condition of that name.
pub(super) fn succeeded(status: &str) -> Value {
    json!({
        "type": "Succeeded", "status": status, "reason": "Succeeded", "message": "well",
        "lastTransitionTime": "2026-01-01T00:00:00Z"
    })
}

/// The paths.
pub(super) fn router(state: ApiState) -> Router {
    let base = "/apis/flopwatch.dev/v1alpha1/namespaces/{namespace}/profilingsessions";
    Router::new()
        .route("/apis/authentication.k8s.io/v1/tokenreviews", post(token_review))
        .route(
            "/apis/authorization.k8s.io/v1/subjectaccessreviews",
            post(access_review),
        )
        .route("/apis/authentication.k8s.io/v1/selfsubjectreviews", post(self_review))
        .route("/api/v1/namespaces/{namespace}/pods", get(pods))
        .route(
            "/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token",
            post(give_token),
        )
        .route(
            "/apis/discovery.k8s.io/v1/namespaces/flopwatch/endpointslices",
            get(endpoint_slices),
        )
        .route(base, post(create))
        .route(&format!("{base}/{{name}}"), delete(remove).patch(change))
        .with_state(Arc::new(state))
}
