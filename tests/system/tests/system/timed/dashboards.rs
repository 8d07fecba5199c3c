//! Every query of the chart's dashboards and recording rules, asked of a real Prometheus after real
//! captures.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use flopwatch_api::capture::Capture;
use flopwatch_api::schedule::ProfilingSchedule;
use flopwatch_system_tests::chart;
use flopwatch_system_tests::cluster::{Group, TestNamespace, eventually_each};
use flopwatch_system_tests::pods::{prepared_for, sample};
use flopwatch_system_tests::prometheus::Prometheus;
use flopwatch_system_tests::sessions::{spec, with};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

/// What Grafana puts in place of the variables that no test chooses.
const VARIABLES: [(&str, &str); 2] = [("$__rate_interval", "1m"), ("$node", ".*")];
/// Series that are there only once there was trouble of their kind.
const OF_TROUBLE: [&str; 4] = [
    "flopwatch_pods_created_unprepared",
    "flopwatch_unprepared_pods",
    "flopwatch_schedule_skipped_total",
    ",result=\"failed\"}",
];

/// Time between two looks at all answers.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// A query, where it is asked, and the label that is looked for in its answer.
struct Query {
    place: String,
    text: String,
    label: Option<String>,
}

/// Queries of panels and variables of all dashboards.
fn of_dashboards(variables: &[(&str, &str)]) -> Result<Vec<Query>> {
    let mut found = Vec::new();
    for file in std::fs::read_dir(chart::folder().join("files/dashboards"))? {
        let path = file?.path();
        let board: Value = serde_json::from_slice(&std::fs::read(&path)?)?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        for panel in list(&board["panels"]) {
            for target in list(&panel["targets"]) {
                found.push(Query {
                    place: format!("{name}: {}", panel["title"]),
                    text: target["expr"].as_str().context("a target without a query")?.to_owned(),
                    label: None,
                });
            }
        }
        for variable in list(&board["templating"]["list"]) {
            let asked = variable["query"]["query"].as_str().unwrap_or_default();
            if let Some((query, label)) = asked
                .strip_prefix("label_values(")
                .and_then(|rest| rest.strip_suffix(')')?.rsplit_once(", "))
            {
                found.push(Query {
                    place: format!("{name}: {}", variable["name"]),
                    text: query.to_owned(),
                    label: Some(label.to_owned()),
                });
            }
        }
    }
    for query in &mut found {
        for (variable, value) in variables {
            query.text = query.text.replace(variable, value);
        }
    }
    Ok(found)
}

/// Queries of the recording rules.
fn of_rules() -> Result<Vec<Query>> {
    let rules = std::fs::read_to_string(chart::folder().join("files/rules.yaml"))?;
    let lines: Vec<&str> = rules.lines().map(str::trim).collect();
    let pairs = lines.windows(2).filter_map(|pair| match pair {
        [name, query] => Some((name.strip_prefix("- record: ")?, query.strip_prefix("expr: ")?)),
        _ => None,
    });
    Ok(pairs
        .map(|(name, query)| Query {
            place: name.to_owned(),
            text: query.to_owned(),
            label: None,
        })
        .collect())
}

/// The queries that have no answer yet, and where they are asked.
async fn without_an_answer(prometheus: &Prometheus, queries: &[Query]) -> Result<BTreeMap<String, String>> {
    let mut empty = BTreeMap::new();
    for Query { place, text, label } in queries {
        // What shows trouble alone: that there is none is an answer, that there is no such series
        // is none.
        let all = text.strip_suffix(" > 0").unwrap_or(text);
        let series = prometheus.query(all).await.with_context(|| format!("{place}: {all}"))?;
        let found = match label {
            Some(label) => series.iter().any(|one| one.metric.contains_key(label)),
            None => !series.is_empty(),
        };
        if !found && !OF_TROUBLE.iter().any(|name| all.contains(name)) {
            empty.insert(all.to_owned(), place.clone());
        }
    }
    Ok(empty)
}

#[tokio::test]
async fn every_query_of_dashboards_and_recording_rules_has_an_answer_after_captures() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Timed, "boards").await? else {
        return Ok(());
    };
    let _recorded = super::RECORDERS.read().await;
    namespace.launch(sample("trainer")).await?;
    // A schedule measures what its windows cost, by the recorder's count.
    namespace.create_kept(prepared_for("counted", "recorder")).await?;
    namespace.running("counted").await?;
    let schedule = json!({
        "when": { "interval": { "seconds": 20 } }, "jitterSeconds": 0,
        "session": { "durationSeconds": 8, "profiler": { "type": "Metrics" } },
        "select": { "podSelector": { "matchLabels": { "app": "counted" } }, "minPodAgeSeconds": 0, "restSeconds": 0 },
    });
    namespace.create_schedule("boards", schedule).await?;
    let prometheus = Prometheus::start(&namespace.client).await?;

    for (session, required) in [("good", json!([])), ("failing", json!(["cuda_kernel"]))] {
        let required = json!({ "require": required });
        let asked = with(spec("trainer", 1, "Nsys"), required);
        namespace.create_session(session, asked).await?;
        namespace.finished(session).await?;
    }
    let capture = namespace.only_capture("good").await?;
    namespace.artifact(&capture, "summary.json").await?;
    // The machine of the tests has no GPU: what a capture would have found on one is written where
    // the agent writes it.
    let found = Patch::Merge(json!({ "status": { "summary": {
        "gpuBusyPercent": 87, "kernelNanoseconds": 1_750_000_000_i64,
        "topKernels": [{ "name": "gemm", "totalNanoseconds": 1_500_000_000_i64, "calls": 2 }],
        "copies": [{ "kind": "HostToDevice", "bytes": 4096 }]
    } } }));
    let captures = namespace.api::<Capture>();
    captures
        .patch_status(&capture.name_any(), &PatchParams::default(), &found)
        .await?;

    let chosen = [
        ("$namespace", namespace.name.as_str()),
        ("$pod", "trainer"),
        ("$schedule", "boards"),
    ];
    let mut queries = of_dashboards(&[&VARIABLES[..], &chosen[..]].concat())?;
    ensure!(queries.len() > 40, "{} queries", queries.len());
    let rules = of_rules()?;
    ensure!(rules.len() > 3, "{} recording rules", rules.len());
    queries.extend(rules);
    // A look is some fifty questions, each with a program of its own.
    eventually_each(POLL_INTERVAL, "every query to have an answer", || async {
        let empty = without_an_answer(&prometheus, &queries).await?;
        if !empty.is_empty() {
            let schedule = namespace.api::<ProfilingSchedule>().get("boards").await?;
            let pod = namespace.api::<Pod>().get("counted").await?;
            bail!("no answer yet: {empty:#?}; {:?}; {:?}", schedule.status, pod.status);
        }
        Ok(Some(()))
    })
    .await?;
    let name = &namespace.name;
    let busy = format!("flopwatch_capture_gpu_busy_ratio{{namespace=\"{name}\"}}");
    let session = prometheus.eventually(&busy).await?;
    let id = session.first().and_then(|one| one.metric.get("id")).cloned();
    ensure!(
        id.as_deref() == Some(capture.spec.session_ref.id.as_str()),
        "links into the viewer need the session's id: {session:?}"
    );
    namespace.delete().await
}
