//! `mcp` as a client of the protocol drives it: the SDK's own client, over the standard streams of
//! the built program.

use std::path::Path;
use std::process::Stdio;

use rmcp::model::{CallToolRequestParams, CallToolResult, ContentBlock};
use rmcp::service::RunningService;
use rmcp::transport::TokioChildProcess;
use rmcp::{RoleClient, ServiceExt as _};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::Command;

use crate::given::shared;
use crate::serve::TIMELINE;

/// A client, and the program that it started.
struct Client(RunningService<RoleClient, ()>);

fn program(paths: &[&Path]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flopwatch"));
    command.args(["mcp", "--quiet"]).args(paths).kill_on_drop(true);
    command
}

impl Client {
    async fn of(paths: &[&Path]) -> Self {
        Self(().serve(TokioChildProcess::new(program(paths)).unwrap()).await.unwrap())
    }

    async fn call(&self, tool: &'static str, arguments: Value) -> CallToolResult {
        let Value::Object(arguments) = arguments else {
            panic!("an object")
        };
        let asked = CallToolRequestParams::new(tool).with_arguments(arguments);
        self.0.call_tool(asked).await.unwrap()
    }

    /// The answer to a call, which is whole.
    async fn json(&self, tool: &'static str, arguments: Value) -> Value {
        let result = self.call(tool, arguments).await;
        let [text] = texts(&result)[..] else {
            panic!("{result:?}")
        };
        assert_ne!(result.is_error, Some(true), "{text}");
        serde_json::from_str(text).unwrap()
    }

    /// The error that a call ends in.
    async fn error(&self, tool: &'static str, arguments: Value) -> String {
        let result = self.call(tool, arguments).await;
        assert_eq!(result.is_error, Some(true), "{result:?}");
        texts(&result)[0].to_owned()
    }

    /// How many events a capture holds.
    async fn events_of(&self, file: &str) -> Value {
        self.json("open", json!({ "file": file })).await["total_events"].clone()
    }

    async fn end(self) {
        self.0.cancel().await.unwrap();
    }
}

fn texts(result: &CallToolResult) -> Vec<&str> {
    let texts = result.content.iter().filter_map(ContentBlock::as_text);
    texts.map(|text| text.text.as_str()).collect()
}

/// A trace of PyTorch whose steps have these lengths in us, with a kernel in each that the host
/// waits for.
pub(crate) fn trace(folder: &Path, name: &str, steps: &[u64]) {
    let (mut events, mut start) = (Vec::new(), 1000);
    for (number, length) in (1..).zip(steps) {
        let event = |cat: &str, name: &str, ts: u64, dur: u64, args: Value| json!({"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur, "args": args});
        let step = format!("ProfilerStep#{number}");
        events.push(event("user_annotation", &step, start, *length, json!({})));
        let call = json!({"correlation": number});
        events.push(event("cuda_runtime", "cudaLaunchKernel", start + 1, 5, call));
        let kernel = json!({"device": 0, "stream": 7, "correlation": number});
        events.push(event("kernel", "gemm", start + 8, length - 40, kernel));
        let wait = json!({"correlation": 1000 + number});
        let waits = "cudaStreamSynchronize";
        events.push(event("cuda_runtime", waits, start + 7, length - 38, wait));
        start += length;
    }
    let text = json!({"schemaVersion": 1, "traceEvents": events}).to_string();
    std::fs::write(folder.join(name), text).unwrap();
}

/// A folder with two traces and a timeline file.
fn captures() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    trace(folder.path(), "before.json", &[100, 101, 102, 103, 104]);
    trace(folder.path(), "after.json", &[120, 121, 122, 123, 124]);
    std::fs::copy(TIMELINE, folder.path().join("timeline.h5")).unwrap();
    folder
}

#[tokio::test]
async fn an_agent_lists_opens_diagnoses_and_compares_captures() {
    let folder = captures();
    let client = Client::of(&[folder.path()]).await;
    let info = client.0.peer_info().unwrap();
    assert_eq!(info.server_info.as_ref().unwrap().name, "flopwatch");
    let tools = client.0.list_all_tools().await.unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(
        names.join(" "),
        "list open summary diagnose compare catalogue analyze events"
    );
    for tool in &tools {
        let hints = tool.annotations.as_ref().unwrap();
        assert_eq!((hints.read_only_hint, hints.open_world_hint), (Some(true), Some(false)));
    }

    let listed = client.json("list", json!({})).await;
    let files = listed["captures"].as_array().unwrap().iter();
    let files: Vec<&Value> = files.map(|capture| &capture["file"]).collect();
    assert_eq!(files, ["after.json", "before.json", "timeline.h5"]);

    let opened = client.json("open", json!({"file": "before.json"})).await;
    assert_eq!(opened["total_events"], 20);
    let analyses = opened["analyses"].as_array().unwrap();
    assert!(
        analyses.contains(&json!("idle")) && !analyses.contains(&json!("roofline")),
        "{opened}"
    );
    let lacking = opened["not_captured"].as_array().unwrap();
    assert!(lacking.contains(&json!("nvtx_range")), "{opened}");

    let diagnosed = client.json("diagnose", json!({"file": "before.json"})).await;
    let findings = diagnosed["findings"].as_array().unwrap();
    assert!(
        findings.iter().any(|finding| finding["rule"] == "host-synchronisation"),
        "{diagnosed}"
    );
    let report = client
        .call("diagnose", json!({"file": "before.json", "limit": 1, "format": "text"}))
        .await;
    let text = texts(&report)[0];
    assert!(
        text.contains("1. [high] The GPU is idle") && text.contains("and 3 more"),
        "{text}"
    );

    let both = json!({"before": "before.json", "after": "after.json"});
    let compared = client.json("compare", both).await;
    assert_eq!(compared["verdict"], "regression_likely");
    assert_eq!(compared["kernels"][0]["difference_ns"], 20_000);
    let lenient = json!({"before": "before.json", "after": "after.json", "threshold_percent": 50});
    assert_eq!(client.json("compare", lenient).await["verdict"], "neutral");
    client.end().await;
}

#[tokio::test]
async fn the_catalogue_leads_to_every_analysis_and_to_the_events_of_a_range() {
    let folder = captures();
    let client = Client::of(&[folder.path()]).await;
    let catalogue = client
        .json("catalogue", json!({"file": "timeline.h5", "search": "time"}))
        .await;
    let entry = |list: &str, name: &str| {
        let all = catalogue[list].as_array().unwrap().iter();
        all.clone().find(|entry| entry["name"] == name).cloned()
    };
    assert!(entry("analyses", "gpu-time").is_some(), "{catalogue}");
    let whole = client.json("catalogue", json!({"names": ["kernel-changes"]})).await;
    assert!(whole[0]["parameters"]["properties"]["limit"].is_object(), "{whole}");

    let asked = json!({"name": "kernel-changes", "files": ["before.json", "after.json"], "parameters": {"limit": 1}});
    let changed = client.json("analyze", asked).await;
    assert!(
        changed["rows"].as_array().is_some_and(|rows| rows.len() == 1),
        "{changed}"
    );
    let summary = client
        .json("summary", json!({"file": "timeline.h5", "max_bytes": 200_000}))
        .await;
    assert_eq!(summary["total_events"], 7000);

    let range = json!({"file": "before.json", "category": "cuda_kernel", "from_ns": 0, "to_ns": 150_000});
    let page = client.json("events", range).await;
    let events = page["events"].as_array().unwrap().iter();
    let names: Vec<&Value> = events.map(|event| &event["name"]).collect();
    assert_eq!((names.len(), &page["matching_events"]), (2, &json!(2)), "{page}");
    assert!(names.iter().all(|name| *name == "gemm"));
    let all = client
        .json("events", json!({"file": "timeline.h5", "max_bytes": 200_000}))
        .await;
    assert_eq!((&all["matching_events"], &all["next"]), (&json!(7000), &json!(100)));
    client.end().await;
}

#[tokio::test]
async fn what_lies_outside_is_refused_and_so_is_a_link_that_leads_there() {
    let folder = captures();
    let outside = tempfile::tempdir().unwrap();
    trace(outside.path(), "secret.json", &[100]);
    let secret = outside.path().join("secret.json");
    std::os::unix::fs::symlink(&secret, folder.path().join("link.json")).unwrap();
    std::os::unix::fs::symlink(outside.path(), folder.path().join("up")).unwrap();
    let client = Client::of(&[folder.path()]).await;
    for file in [secret.to_str().unwrap(), "../secret.json", "/etc/passwd"] {
        let refusal = client.error("open", json!({"file": file})).await;
        assert!(
            refusal.contains("lies outside of what this server may read"),
            "{refusal}"
        );
    }
    for file in ["link.json", "up/secret.json"] {
        let refusal = client.error("diagnose", json!({"file": file})).await;
        assert!(refusal.contains("leads out of what this server may read"), "{refusal}");
        let asked = json!({"before": "before.json", "after": file});
        assert!(client.error("compare", asked).await.contains("leads out"));
    }
    let listed = client.json("list", json!({})).await;
    assert!(!listed.to_string().contains("secret"), "{listed}");
    let missing = client.error("open", json!({"file": "gone.json"})).await;
    assert!(missing.contains("there is no such file"), "{missing}");
    client.end().await;

    let alone = Client::of(&[&folder.path().join("before.json")]).await;
    assert_eq!(alone.events_of("before.json").await, 20);
    let refusal = alone.error("open", json!({"file": "after.json"})).await;
    assert!(refusal.contains("lies outside"), "{refusal}");
    alone.end().await;
}

#[tokio::test]
async fn an_answer_is_bounded_and_tells_how_to_ask_for_the_rest() {
    let folder = captures();
    let client = Client::of(&[folder.path()]).await;
    let asked = |more: Value| {
        let mut asked = json!({"file": "timeline.h5", "limit": 7000, "max_bytes": 10_000});
        asked.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        asked
    };
    let first = client.call("events", asked(json!({}))).await;
    let [text, told] = texts(&first)[..] else {
        panic!("{first:?}")
    };
    assert!(text.len() <= 10_000);
    let page: Value = serde_json::from_str(text).unwrap();
    let shown = page["events"].as_array().unwrap().len();
    let words = format!(
        "/events has 7000 elements, of which 0 to {} are here: ask for more with at=\"/events\" from={shown}",
        shown - 1
    );
    assert!(told.contains(&words), "{told}");
    let rest = client
        .call("events", asked(json!({"at": "/events", "from": shown})))
        .await;
    let next: Value = serde_json::from_str(texts(&rest)[0]).unwrap();
    assert!(next[0]["start_ns"].as_u64() >= page["events"][shown - 1]["start_ns"].as_u64());
    let whole = client.call("diagnose", json!({"file": "timeline.h5"})).await;
    assert!(texts(&whole)[0].len() <= 48 << 10);
    client.end().await;
}

/// Calls that are wrong: the tool, its arguments, and words of its error.
const WRONG: &str = r#"
open | {} | missing field `file`
open | {"path": "before.json"} | no argument "path"; it has
open | {"file": 7} | invalid type
open | {"file": "notes.txt"} | no format that is read
open | {"file": "cut.sqlite"} | cut.sqlite
diagnose | {"file": "before.json", "limit": 1000} | must be a whole number from 1 to 100
diagnose | {"file": "before.json", "format": "html"} | unknown variant `html`
events | {"file": "before.json", "limit": 0} | must be a whole number from 1 to 100000
events | {"file": "before.json", "max_bytes": 5} | from 1024 to 262144
analyze | {"name": "idel", "files": ["before.json"]} | did you mean idle?
analyze | {"name": "idle", "files": ["before.json"], "parameters": {"limits": 1}} | has no parameter "limits"
analyze | {"name": "compare", "files": ["before.json"]} | is made of two captures, not of 1
analyze | {"name": "flame-pprof", "files": ["before.json"]} | file for another program
catalogue | {"names": ["nothing"]} | there is no analysis "nothing"
"#;

#[tokio::test]
async fn wrong_arguments_are_errors_of_the_tool_that_say_what_to_do() {
    let folder = captures();
    std::fs::write(folder.path().join("notes.txt"), "no capture").unwrap();
    std::fs::write(folder.path().join("cut.sqlite"), b"SQLite format 3\0and no more").unwrap();
    let client = Client::of(&[folder.path()]).await;
    for row in WRONG.trim().lines() {
        let [tool, arguments, words] = row.split(" | ").collect::<Vec<_>>()[..] else {
            panic!("{row}")
        };
        let error = client.error(tool, serde_json::from_str(arguments).unwrap()).await;
        assert!(error.contains(words), "{row}: {error}");
    }
    // None of it has harmed the server.
    assert_eq!(client.events_of("before.json").await, 20);
    client.end().await;
}

#[tokio::test]
async fn a_file_that_changed_is_read_anew() {
    let folder = captures();
    let client = Client::of(&[folder.path()]).await;
    assert_eq!(client.events_of("before.json").await, 20);
    trace(folder.path(), "before.json", &[100, 101, 102]);
    assert_eq!(client.events_of("before.json").await, 12);
    client.end().await;
}

#[tokio::test]
async fn standard_output_has_the_protocol_alone_and_the_end_of_the_input_ends_the_program() {
    let folder = captures();
    let temporary = tempfile::tempdir().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_flopwatch"))
        .arg("mcp")
        .arg(folder.path())
        .env("TMPDIR", temporary.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let messages = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "open", "arguments": {"file": "before.json"}}}),
    ];
    let mut answers = Vec::new();
    for message in &messages {
        input.write_all(format!("{message}\n").as_bytes()).await.unwrap();
        if message.get("id").is_some() {
            let line = lines.next_line().await.unwrap().unwrap();
            answers.push(serde_json::from_str::<Value>(&line).unwrap());
        }
    }
    assert_eq!(answers[0]["result"]["serverInfo"]["name"], "flopwatch");
    assert_eq!(answers[1]["result"]["isError"], false, "{}", answers[1]);
    drop(input);
    assert_eq!(lines.next_line().await.unwrap(), None);
    let mut log = String::new();
    child.stderr.take().unwrap().read_to_string(&mut log).await.unwrap();
    assert!(child.wait().await.unwrap().success(), "{log}");
    assert!(
        log.contains("serves captures of ") && log.contains("flopwatch: mcp: open: "),
        "{log}"
    );
    let left = std::fs::read_dir(temporary.path()).unwrap().count();
    assert_eq!(left, 0, "what was made of captures is removed");
}

#[tokio::test]
async fn real_traces_are_diagnosed_and_compared() {
    let Some(corpus) = shared("corpus/hta") else { return };
    let client = Client::of(&[&corpus]).await;
    let file = "trace_diff-control-control.json.gz";
    let opened = client.json("open", json!({"file": file})).await;
    assert!(
        opened["total_events"].as_u64().is_some_and(|events| events > 10_000),
        "{opened}"
    );
    let diagnosed = client.call("diagnose", json!({"file": file, "format": "text"})).await;
    assert_ne!(diagnosed.is_error, Some(true), "{diagnosed:?}");
    let both = json!({"before": "trace_compare-base-base.json.gz", "after": "trace_compare-test-test.json.gz"});
    let compared = client.json("compare", both).await;
    assert!(
        compared["verdict"].is_string() && compared["comparability"].is_object(),
        "{compared}"
    );
    client.end().await;
}
