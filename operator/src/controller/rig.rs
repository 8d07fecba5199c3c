//! What tests of passes share: caches that hold what a test says, and a context whose calls go to a
//! test's API server.

use std::time::Duration;

use flopwatch_test_harness::{ApiServer, Identity, Right};
use k8s_controller::events::Reporter;
use kube::runtime::reflector::{self, Store, store::Writer};
use kube::runtime::watcher::Event as WatchEvent;
use kube::{Client, Resource};

use crate::controller::context::{Context, Stores, Suspension};
use crate::metrics::Metrics;

/// The controller's account; its token in tests, too.
pub(crate) const CONTROLLER: &str = "system:serviceaccount:flopwatch-system:flopwatch-controller";

/// What passes may do, as the chart's ClusterRole `flopwatch-controller` says: API group, resource,
/// verbs.
const RIGHTS: [(&str, &str, &[&str]); 8] = [
    ("flopwatch.dev", "profilingschedules", &["get", "list", "watch"]),
    ("flopwatch.dev", "profilingschedules/status", &["patch"]),
    (
        "flopwatch.dev",
        "profilingsessions",
        &["get", "list", "watch", "create", "patch", "delete"],
    ),
    ("flopwatch.dev", "profilingsessions/status", &["patch"]),
    (
        "flopwatch.dev",
        "captures",
        &["get", "list", "watch", "create", "patch"],
    ),
    ("flopwatch.dev", "captures/status", &["patch"]),
    ("", "pods", &["list", "watch"]),
    ("events.k8s.io", "events", &["create", "patch"]),
];

/// A client of the controller's own account, which may there what the chart lets it.
pub(crate) fn client(server: &ApiServer) -> Client {
    server.add_token(CONTROLLER, Identity::new(CONTROLLER));
    for (group, resource, verbs) in RIGHTS {
        for verb in verbs {
            server.allow(CONTROLLER, Right::resource(verb, group, resource));
        }
    }
    server.client_of(CONTROLLER, "flopwatch-system")
}

/// A cache that holds these objects, and what changes it.
pub(crate) fn filled<K>(objects: Vec<K>) -> (Store<K>, Writer<K>)
where
    K: Resource<DynamicType = ()> + Clone + 'static,
{
    let (store, mut writer) = reflector::store();
    writer.apply_watcher_event(&WatchEvent::Init);
    for object in objects {
        writer.apply_watcher_event(&WatchEvent::InitApply(object));
    }
    writer.apply_watcher_event(&WatchEvent::InitDone);
    (store, writer)
}

/// Caches that hold nothing.
pub(crate) fn stores() -> Stores {
    Stores {
        schedules: filled(Vec::new()).0,
        sessions: filled(Vec::new()).0,
        captures: filled(Vec::new()).0,
        pods: filled(Vec::new()).0,
        nodes: filled(Vec::new()).0,
        agents: filled(Vec::new()).0,
    }
}

/// A context of the controller, for which a node may be gone for a minute.
pub(crate) fn context(server: &ApiServer, stores: Stores) -> Context {
    let client = client(server);
    let reporter = Reporter {
        controller: "flopwatch.dev/test".into(),
        instance: None,
    };
    let metrics = Metrics::new().unwrap();
    Context::new(
        client,
        stores,
        metrics,
        reporter,
        Suspension::default(),
        Duration::from_mins(1),
    )
}
