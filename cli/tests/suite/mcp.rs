//! `mcp` as a client of the protocol drives it: the SDK's own client, over the standard streams of
//! the built program, with the rights of the kubeconfig's user.

use flopwatch_test_harness::Right;
use rmcp::model::{CallToolRequestParams, CallToolResult, ContentBlock};
use rmcp::service::RunningService;
use rmcp::transport::TokioChildProcess;
use rmcp::{RoleClient, ServiceExt as _};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::cluster::{Cluster, of_ada};
use crate::fetching::{capture, session};
use crate::gateway::{FakeGateway, Step};

/// A cluster with two sessions, a gateway that answers everything with one result, and a client of
/// the program.
struct Rig {
    cluster: Cluster,
    gateway: FakeGateway,
    client: RunningService<RoleClient, ()>,
}

impl Rig {
    async fn new(result: &Value) -> Self {
        let cluster = Cluster::start().await;
        cluster.api.put(&session("first", "0badcafe"));
        cluster.api.put(&session("second", "00000bad"));
        cluster.api.put(&capture("first-1", &json!({"profiler": "Nsys"})));
        let gateway = FakeGateway::start(result.to_string().into_bytes()).await;
        let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-flopwatch"));
        command
            .arg("mcp")
            .args(gateway.options().split(' '))
            .env_clear()
            .env("KUBECONFIG", cluster.kubeconfig(&of_ada()))
            .env("HOME", cluster.folder.path());
        let client = ().serve(TokioChildProcess::new(command).unwrap()).await.unwrap();
        Self {
            cluster,
            gateway,
            client,
        }
    }

    async fn call(&self, tool: &'static str, arguments: Value) -> CallToolResult {
        let Value::Object(arguments) = arguments else {
            panic!("an object")
        };
        let asked = CallToolRequestParams::new(tool).with_arguments(arguments);
        self.client.call_tool(asked).await.unwrap()
    }

    /// The text of an answer, and whether it is an error.
    async fn text(&self, tool: &'static str, arguments: Value) -> (String, bool) {
        let result = self.call(tool, arguments).await;
        let text = result.content.iter().find_map(ContentBlock::as_text).unwrap();
        (text.text.clone(), result.is_error == Some(true))
    }

    async fn json(&self, tool: &'static str, arguments: Value) -> Value {
        let (text, is_error) = self.text(tool, arguments).await;
        assert!(!is_error, "{text}");
        serde_json::from_str(&text).unwrap()
    }

    /// The first line of the last request that the gateway got.
    fn asked(&self) -> String {
        let heads = self.gateway.heads();
        heads.last().unwrap().lines().next().unwrap().to_owned()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_lists_sessions_and_has_their_captures_diagnosed_and_compared() {
    let rig = Rig::new(&json!({"verdict": "regression_likely"})).await;
    let tools = rig.client.list_all_tools().await.unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(
        names,
        [
            "sessions",
            "session",
            "summary",
            "diagnose",
            "compare",
            "catalogue",
            "analyze"
        ]
    );
    let listed = rig.json("sessions", json!({})).await;
    let sessions = listed["sessions"].as_array().unwrap();
    assert_eq!((sessions.len(), &listed["namespace"]), (2, &json!("team")), "{listed}");
    let found = rig.json("session", json!({"session": "first"})).await;
    assert_eq!(found["session"]["kind"], "ProfilingSession");
    assert_eq!(found["captures"][0]["metadata"]["name"], "first-1");
    let (report, _) = rig.text("session", json!({"session": "first", "format": "text"})).await;
    assert!(report.contains("Capture first-1"), "{report}");

    let asked = json!({"session": "first/first-1", "parameters": {"limit": 3}, "format": "text"});
    let (diagnosed, is_error) = rig.text("diagnose", asked).await;
    assert!(!is_error && diagnosed.contains("regression_likely"), "{diagnosed}");
    let path = "GET /api/profiling/session/0badcafe/analyses/advice?capture=first-1&limit=3&format=text HTTP/1.1";
    assert_eq!(rig.asked(), path);
    assert!(rig.gateway.heads()[0].contains("authorization: Bearer of-ada\r\n"));
    // The agent has to be given the other timeline first.
    rig.gateway.then([Step::Problem(503, "Converting")]);
    let both = json!({"before": "first", "after": "second", "parameters": {"threshold_percent": 3}});
    let compared = rig.json("compare", both).await;
    assert_eq!(compared["verdict"], "regression_likely");
    let path = "GET /api/profiling/session/0badcafe/analyses/compare?with=00000bad&threshold_percent=3 HTTP/1.1";
    assert_eq!(rig.asked(), path);
    let asked = json!({"name": "events", "sessions": ["second"], "parameters": {"from_ns": 5}});
    rig.json("analyze", asked).await;
    assert!(rig.asked().contains("00000bad/analyses/events?from_ns=5 "));
    rig.client.cancel().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_catalogue_is_the_gateways() {
    let parameters = json!({"properties": {"limit": {"type": "integer"}}});
    let entry = json!({"name": "idle", "about": "Gaps.", "inputs": "one", "parameters": parameters});
    let rig = Rig::new(&json!({"analyses": [entry]})).await;
    let listed = rig.json("catalogue", json!({})).await;
    assert_eq!(listed["analyses"][0]["parameters"], json!(["limit"]));
    assert_eq!(rig.asked(), "GET /api/profiling/analyses HTTP/1.1");
    let whole = rig.json("catalogue", json!({"names": ["idle"]})).await;
    assert_eq!(whole[0]["parameters"]["properties"]["limit"]["type"], "integer");
    rig.client.cancel().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_or_not_allowed_is_told_with_what_to_do() {
    let rig = Rig::new(&json!({})).await;
    for (tool, arguments, words) in [
        ("session", json!({}), "missing field `session`"),
        ("session", json!({"session": "gone"}), "\"gone\" not found"),
        ("session", json!({"session": "../x"}), "../ is none of"),
        ("diagnose", json!({"session": "first/../x"}), "../ is none of"),
        (
            "analyze",
            json!({"name": "../x", "sessions": ["first"]}),
            "there is no analysis",
        ),
        ("analyze", json!({"name": "idle", "sessions": []}), "name a session"),
        (
            "analyze",
            json!({"name": "idle", "sessions": ["first"], "parameters": {"with": "x"}}),
            "with is no parameter",
        ),
    ] {
        let (text, is_error) = rig.text(tool, arguments.clone()).await;
        assert!(is_error && text.contains(words), "{tool} {arguments}: {text}");
    }
    assert!(rig.gateway.heads().is_empty());
    rig.gateway.then([Step::Problem(409, "NotReady")]);
    let (text, is_error) = rig.text("summary", json!({"session": "first"})).await;
    assert!(is_error && text.contains("it is NotReady here"), "{text}");
    rig.cluster
        .allow_only([Right::resource("get", "flopwatch.dev", "profilingsessions")]);
    let (text, is_error) = rig.text("sessions", json!({})).await;
    assert!(is_error && text.contains("you may not list sessions"), "{text}");
    rig.client.cancel().await.unwrap();
}
