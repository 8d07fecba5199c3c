//! The cluster before which the gateway stands: an API server, who there is and what they may, and
//! a controller that takes up new sessions.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use flopwatch_api::GROUP;
use flopwatch_api::schedule::ProfilingSchedule;
use flopwatch_api::session::ProfilingSession;
use flopwatch_test_harness::{ApiServer, Call, Identity, Right, Verb};
use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{self, Store};
use kube::runtime::watcher::Event;
use kube::{Client, CustomResourceExt as _};
use serde_json::{Value, json};

use crate::gateway::node_tokens::GatewayIdentity;
use crate::gateway::sessions::Sessions;

/// Namespace of the gateway and of the agents' Service.
const NAMESPACE: &str = "flopwatch";
/// The gateway's own service account, and its user.
const ACCOUNT: &str = "flopwatch-gateway";
const GATEWAY: &str = "system:serviceaccount:flopwatch:flopwatch-gateway";
/// The agents' Service.
pub(super) const AGENTS: &str = "flopwatch-agent";

/// What the controller does with sessions that are made.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Controller {
    /// The controller gives sessions their ids: `00000000` and so on.
    #[default]
    TakesUp,
    /// Sessions have succeeded as soon as they have their ids.
    Ends,
    /// The controller does nothing.
    Sleeps,
}

/// An API server whose sessions the gateway knows at once.
///
/// Its users are `admin`, `reader`, `raw-reader`, `stranger` and `alertmanager`, whose tokens are
/// their names.
pub(super) struct Cluster {
    pub(super) server: ApiServer,
    pub(super) controller: Arc<Mutex<Controller>>,
    /// What the gateways' watches of schedules tell.
    pub(super) schedules: Store<ProfilingSchedule>,
    writer: Mutex<Writer<ProfilingSchedule>>,
    sessions: Sessions,
}

impl Cluster {
    pub(super) fn new(sessions: Sessions) -> Self {
        let (schedules, writer) = reflector::store();
        let cluster = Self {
            server: ApiServer::new(),
            controller: Arc::default(),
            schedules,
            writer: Mutex::new(writer),
            sessions,
        };
        let server = &cluster.server;
        server.define(&ProfilingSession::crd());
        server.define(&ProfilingSchedule::crd());
        server.put(&json!({
            "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"namespace": NAMESPACE, "name": ACCOUNT}
        }));
        for (name, phase) in [("done", "Succeeded"), ("train", "Running")] {
            cluster.add_pod(name, phase);
        }
        cluster.give_rights();
        cluster.take_up_sessions();
        cluster
    }

    fn give_rights(&self) {
        let server = &self.server;
        for user in ["admin", "reader", "raw-reader", "stranger", "alertmanager"] {
            server.add_token(user, Identity::new(user).in_groups(&["people"]));
        }
        server.add_token("of-the-gateway", Identity::new(GATEWAY));
        let sessions = |verb| Right::resource(verb, GROUP, "profilingsessions");
        let raw = Right::resource("get", GROUP, "profilingsessions/raw");
        for verb in ["get", "list", "create", "delete", "patch"] {
            server.allow("admin", sessions(verb));
        }
        server.allow("admin", raw.clone());
        let alerts = Right::resource("create", GROUP, "profilingschedules/alerts");
        server.allow("admin", alerts.clone());
        server.allow("alertmanager", alerts.in_namespace("team"));
        server.allow("admin", Right::resource("list", "", "pods"));
        server.allow("admin", Right::resource("get", "", "configmaps"));
        for user in ["reader", "raw-reader"] {
            server.allow(user, sessions("get").in_namespace("team"));
        }
        server.allow("reader", sessions("list").in_namespace("team"));
        server.allow("raw-reader", raw.clone().in_namespace("team"));
        for right in [
            sessions("get"),
            sessions("list"),
            sessions("create"),
            Right::resource("list", GROUP, "captures"),
            Right::resource("get", GROUP, "profilingschedules"),
            Right::resource("get", "", "pods"),
            Right::resource("get", "", "nodes"),
            raw,
            Right::path("put", "/v1/inputs"),
            Right::resource("create", "authentication.k8s.io", "tokenreviews"),
            Right::resource("create", "authorization.k8s.io", "subjectaccessreviews"),
            token_right(),
            Right::resource("list", "discovery.k8s.io", "endpointslices").in_namespace(NAMESPACE),
        ] {
            server.allow(GATEWAY, right);
        }
    }

    fn take_up_sessions(&self) {
        let (controller, sessions) = (Arc::clone(&self.controller), self.sessions.clone());
        let ids = Mutex::new(0_u32..);
        self.server.after(move |server, call| {
            if call.verb != Verb::Create || call.code != Some(201) || !call.path.ends_with("/profilingsessions") {
                return;
            }
            let conditions = match *controller.lock().unwrap() {
                Controller::TakesUp => Some(json!([])),
                Controller::Ends => Some(json!([succeeded("True")])),
                Controller::Sleeps => None,
            };
            let mut ids = ids.lock().unwrap();
            let all = server.all("profilingsessions").into_iter();
            for mut session in all.filter(|session| session["status"].is_null()) {
                // What a schedule made counts from when it was made.
                if session["metadata"]["ownerReferences"].is_null() {
                    session["metadata"]["creationTimestamp"] = json!("2026-01-02T00:00:00Z");
                }
                if let Some(conditions) = &conditions {
                    session["status"] = json!({"id": format!("{:08x}", ids.next().unwrap()), "conditions": conditions});
                }
                put_session(server, &sessions, session);
            }
        });
    }

    /// Takes from the gateway the right to tokens of its own.
    pub(super) fn take_token_right(&self) {
        self.server.disallow(GATEWAY, &token_right());
    }

    /// Gives the gateway back the right that [`Self::take_token_right`] took.
    pub(super) fn give_token_right(&self) {
        self.server.allow(GATEWAY, token_right());
    }

    /// The gateway's own client.
    pub(super) fn client_of_gateway(&self) -> Client {
        self.server.client_of("of-the-gateway", NAMESPACE)
    }

    /// A token of the gateway for that audience.
    pub(super) fn token_of_gateway(&self, audience: &str) -> String {
        self.server
            .issue_token(Identity::new(GATEWAY).for_audiences(&[audience]))
    }

    /// Adds a session that stays, once it is deleted, until its captures are gone: for ever.
    pub(super) fn put_session(&self, session: Value) {
        put_session(&self.server, &self.sessions, session);
    }

    /// Adds a capture, or changes it.
    pub(super) fn put_capture(&self, capture: &Value) {
        let capture = serde_json::from_value(self.server.put(capture)).unwrap();
        self.sessions.capture_event(Event::Apply(capture));
    }

    /// Adds a schedule, or changes it.
    pub(super) fn put_schedule(&self, schedule: &Value) {
        let schedule = serde_json::from_value(self.server.put(schedule)).unwrap();
        self.writer.lock().unwrap().apply_watcher_event(&Event::Apply(schedule));
    }

    /// Adds a pod in the namespace `team`.
    pub(super) fn add_pod(&self, name: &str, phase: &str) {
        self.server.put(&json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"namespace": "team", "name": name, "annotations": {"flopwatch.dev/prepared": "main"}},
            "spec": {"nodeName": "node", "containers": [
                {"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}, {"name": "logs"}
            ]},
            "status": {"phase": phase}
        }));
    }

    /// Puts the agent of a node behind the agents' Service.
    pub(super) fn add_agent(&self, node: &str, address: SocketAddr) {
        self.server.put(&json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"namespace": NAMESPACE, "name": node, "labels": {"kubernetes.io/service-name": AGENTS}},
            "addressType": "IPv4", "ports": [{"name": "https", "port": address.port()}],
            "endpoints": [{"addresses": [address.ip()], "nodeName": node, "conditions": {"ready": true}}]
        }));
    }

    /// What was done to sessions by calls of that kind that were let through.
    pub(super) fn done(&self, verb: Verb) -> Vec<Call> {
        let calls = self.server.calls().into_iter().filter(|call| {
            let is_done = call.code.is_some_and(|code| code < 300);
            call.verb == verb && is_done && call.path.contains("/profilingsessions")
        });
        calls.collect()
    }

    /// The audiences of the tokens for agents that the gateway asked for.
    pub(super) fn audiences(&self) -> Vec<String> {
        let calls = self.server.calls().into_iter();
        let asked = calls.filter(|call| call.path.ends_with("/token"));
        let audience = |call: Call| {
            assert_eq!((call.user.as_deref(), call.code), (Some(GATEWAY), Some(201)));
            assert_eq!(
                call.body["spec"]["boundObjectRef"],
                json!({"apiVersion": "v1", "kind": "Pod", "name": "gateway-pod", "uid": "gateway-pod-uid"})
            );
            call.body["spec"]["audiences"][0].as_str().unwrap().to_owned()
        };
        asked.map(audience).collect()
    }
}

/// The right to make tokens of the gateway's service account.
fn token_right() -> Right {
    Right::resource("create", "", "serviceaccounts/token")
        .in_namespace(NAMESPACE)
        .named(ACCOUNT)
}

/// Who the gateway says it is.
pub(super) fn identity() -> GatewayIdentity {
    GatewayIdentity {
        namespace: NAMESPACE.to_owned(),
        account: ACCOUNT.to_owned(),
        pod: Some(("gateway-pod".to_owned(), "gateway-pod-uid".to_owned())),
    }
}

fn put_session(server: &ApiServer, sessions: &Sessions, mut session: Value) {
    session["metadata"]["finalizers"] = json!(["foregroundDeletion"]);
    let session = serde_json::from_value(server.put(&session)).unwrap();
    sessions.session_event(Event::Apply(session));
}

/// The condition of that name.
pub(super) fn succeeded(status: &str) -> Value {
    json!({
        "type": "Succeeded", "status": status, "reason": "Succeeded", "message": "well",
        "lastTransitionTime": "2026-01-01T00:00:00Z"
    })
}
