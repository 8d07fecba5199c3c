//! Alerts: what they make, and what they do not.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use flopwatch_api::GROUP;
use flopwatch_test_harness::{Fault, Right, Verb};
use serde_json::{Value, json};

use super::rig::{Answer, Rig};

const PATH: &str = "/api/alerts";

fn firing(fingerprint: u64, pod: &str) -> Value {
    json!({
        "status": "firing", "labels": {"alertname": "Slow", "namespace": "team", "pod": pod, "severity": "page"},
        "annotations": {"summary": "slow"}, "startsAt": "2026-11-25T10:00:00Z", "endsAt": "0001-01-01T00:00:00Z",
        "generatorURL": "http://prometheus", "fingerprint": format!("{fingerprint:016x}")
    })
}

fn body(alerts: &[Value]) -> Value {
    json!({
        "version": "4", "groupKey": "{}:{}", "truncatedAlerts": 0, "status": "firing", "receiver": "flopwatch",
        "groupLabels": {}, "commonLabels": {}, "commonAnnotations": {}, "externalURL": "http://alertmanager", "alerts": alerts
    })
}

/// A schedule of the pods of `team`, with these members of its spec, and this trigger.
fn put_schedule(rig: &Rig, members: Value, trigger: Value) {
    let mut spec = json!({
        "when": {"interval": {"seconds": 900}}, "select": {"podSelector": {"matchLabels": {"app": "llm"}}},
        "session": {"profiler": {"type": "Recorder"}, "durationSeconds": 5}, "concurrencyPolicy": "Allow",
        "triggers": [{"alert": {"name": "Slow", "matchLabels": {"severity": "page"}}}]
    });
    for (members, into) in [(members, "/"), (trigger, "/triggers/0")] {
        let into = if into == "/" {
            &mut spec
        } else {
            spec.pointer_mut(into).unwrap()
        };
        let Value::Object(members) = members else {
            panic!("members")
        };
        into.as_object_mut().unwrap().extend(members);
    }
    rig.cluster.put_schedule(&json!({
        "apiVersion": "flopwatch.dev/v1alpha1", "kind": "ProfilingSchedule",
        "metadata": {"namespace": "team", "name": "always", "uid": "schedule-uid"}, "spec": spec
    }));
}

fn put_pod(rig: &Rig, name: &str, app: &str, phase: &str) {
    rig.cluster.server.put(&json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"namespace": "team", "name": name, "uid": format!("uid-{name}"), "labels": {"app": app}},
        "spec": {"nodeName": "node", "containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]},
        "status": {
            "phase": phase, "startTime": "2026-01-01T00:00:00Z",
            "containerStatuses": [{"name": "main", "imageID": "registry/llm@sha256:01", "restartCount": 0, "ready": true, "image": "llm"}]
        }
    }));
}

async fn rig() -> Rig {
    let rig = Rig::new().await;
    rig.cluster.server.put(&json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": "node", "labels": {"nvidia.com/gpu.product": "H100"}}
    }));
    put_schedule(&rig, json!({}), json!({}));
    for pod in ["llm-0", "llm-1", "llm-2"] {
        put_pod(&rig, pod, "llm", "Running");
    }
    rig
}

async fn tell(rig: &Rig, alerts: &[Value]) -> Value {
    let answer = rig.post(PATH, "alertmanager", &body(alerts)).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

fn results(answer: &Value) -> Vec<&str> {
    let rows = answer["alerts"].as_array().unwrap();
    rows.iter().map(|row| row["result"].as_str().unwrap()).collect()
}

/// The sessions that alerts made.
fn made(rig: &Rig) -> Vec<Value> {
    let sessions = rig.cluster.server.all("profilingsessions").into_iter();
    sessions
        .filter(|session| !session["metadata"]["annotations"]["flopwatch.dev/trigger"].is_null())
        .collect()
}

fn count(rig: &Rig, result: &str) -> u64 {
    rig.metrics.alerts.with_label_values(&[result]).get()
}

#[tokio::test]
async fn an_alert_that_fires_makes_a_session_of_its_pod() {
    let rig = rig().await;
    let answer = tell(&rig, &[firing(7, "llm-0")]).await;
    let made = made(&rig);
    assert_eq!(made.len(), 1, "{answer}");
    let (metadata, spec) = (&made[0]["metadata"], &made[0]["spec"]);
    assert_eq!(
        answer["alerts"][0],
        json!({
            "alertname": "Slow", "fingerprint": "0000000000000007", "result": "Made",
            "namespace": "team", "schedule": "always", "session": metadata["name"]
        })
    );
    assert_eq!(answer["made"], 1);
    assert_eq!(metadata["labels"]["flopwatch.dev/schedule"], "always");
    assert_eq!(
        metadata["ownerReferences"],
        json!([{
            "apiVersion": "flopwatch.dev/v1alpha1", "kind": "ProfilingSchedule", "name": "always", "uid": "schedule-uid",
            "controller": true
        }])
    );
    let annotations: BTreeMap<&str, &Value> = metadata["annotations"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(key, value)| (key.as_str(), value))
        .collect();
    for (key, expected) in [
        ("flopwatch.dev/trigger", "Slow/0000000000000007"),
        ("flopwatch.dev/alert-started", "2026-11-25T10:00:00Z"),
        ("flopwatch.dev/trigger-number", "0"),
        ("flopwatch.dev/target-uid", "uid-llm-0"),
        ("flopwatch.dev/image-digest", "sha256:01"),
        ("flopwatch.dev/hardware", "H100"),
        ("flopwatch.dev/requested-by", "alertmanager"),
    ] {
        assert_eq!(annotations.get(key), Some(&&json!(expected)), "{key}");
    }
    assert!(!annotations.contains_key("flopwatch.dev/probability-per-billion"));
    assert_eq!(
        json!([
            spec["target"]["podName"],
            spec["profiler"]["type"],
            spec["overhead"]["action"]
        ]),
        json!(["llm-0", "Recorder", "Stop"])
    );
    let call = rig.cluster.done(Verb::Create).pop().unwrap();
    assert_eq!(
        call.user.as_deref(),
        Some("system:serviceaccount:flopwatch:flopwatch-gateway")
    );
    assert_eq!(count(&rig, "made"), 1);
}

#[tokio::test]
async fn a_thousand_duplicates_make_one_session() {
    let rig = rig().await;
    let told = tell(&rig, &vec![firing(7, "llm-0"); 500]).await;
    assert_eq!(told["made"], 1);
    let began = Instant::now();
    for _ in 0..10 {
        let told = tell(&rig, &vec![firing(7, "llm-0"); 50]).await;
        assert!(results(&told).iter().all(|result| *result == "AlreadyMade"), "{told}");
    }
    assert_eq!(made(&rig).len(), 1);
    assert_eq!((count(&rig, "made"), count(&rig, "already_made")), (1, 999));
    let lists = rig.cluster.done(Verb::List).len();
    let most = usize::try_from(began.elapsed().as_secs()).unwrap() + 2;
    assert!(lists <= most, "{lists} lists of sessions for a thousand alerts");
}

#[tokio::test]
async fn what_does_not_fire_makes_nothing() {
    let rig = rig().await;
    let mut resolved = firing(7, "llm-0");
    resolved["status"] = json!("resolved");
    let told = tell(&rig, &[resolved]).await;
    assert_eq!(results(&told), ["Resolved"]);
    assert_eq!(made(&rig), Vec::<Value>::new());
}

#[tokio::test]
async fn whoever_has_no_right_to_tell_of_alerts_makes_nothing_and_learns_nothing() {
    let rig = rig().await;
    let alerts = body(&[firing(7, "llm-0")]);
    for (token, status) in [("nobody", 401), ("stranger", 403), ("reader", 403)] {
        let answer = rig.post(PATH, token, &alerts).await;
        assert_eq!(answer.status, status, "{token}: {answer:?}");
    }
    assert_eq!(rig.ask("POST", PATH, None, &[], &alerts.to_string()).await.status, 401);
    let elsewhere = |namespace: &str| {
        let mut alert = firing(7, "llm-0");
        alert["labels"]["namespace"] = json!(namespace);
        body(&[alert])
    };
    let ask = async |namespace: &str| -> Answer { rig.post(PATH, "stranger", &elsewhere(namespace)).await };
    let (there, nowhere) = (ask("team").await, ask("nowhere").await);
    assert_eq!((there.status, &there.body), (nowhere.status, &nowhere.body));
    assert!(there.detail().contains("flopwatch-alerts"));
    assert_eq!(made(&rig), Vec::<Value>::new());
}

/// An alert of each of so many namespaces that there are not.
fn of_foreign_namespaces(count: u64) -> Vec<Value> {
    let alerts = (0..count).map(|number| {
        let mut alert = firing(number, "llm-0");
        alert["labels"]["namespace"] = json!(format!("foreign-{number}"));
        alert
    });
    alerts.collect()
}

fn reviews(rig: &Rig) -> usize {
    let calls = rig.cluster.server.calls().into_iter();
    calls
        .filter(|call| call.path.ends_with("/subjectaccessreviews"))
        .count()
}

#[tokio::test]
async fn a_body_costs_no_more_reviews_than_namespaces_have_triggers_however_many_it_names() {
    let rig = rig().await;
    let refused = rig.post(PATH, "stranger", &body(&of_foreign_namespaces(256))).await;
    assert_eq!(refused.status, 403, "{refused:?}");
    // One namespace has a schedule with a trigger.
    assert_eq!(reviews(&rig), 1);
    // Of few names each is asked about; that a right is missing is remembered for a moment.
    let (few, began) = (body(&of_foreign_namespaces(8)), Instant::now());
    for _ in 0..3 {
        let refused = rig.post(PATH, "stranger", &few).await;
        assert_eq!(refused.status, 403, "{refused:?}");
    }
    let (asked, seconds) = (reviews(&rig) - 1, began.elapsed().as_secs());
    let most = 8 * (1 + usize::try_from(seconds).unwrap());
    assert!((8..=most).contains(&asked), "{asked} within {seconds} s");
}

#[tokio::test]
async fn among_many_namespaces_those_with_triggers_are_served_and_the_others_are_told_apart_for_nobody() {
    let rig = rig().await;
    let mut alerts = of_foreign_namespaces(255);
    alerts.push(firing(1_000, "llm-0"));
    let told = tell(&rig, &alerts).await;
    assert_eq!(reviews(&rig), 2, "of `team` and of all");
    assert_eq!(told["made"], 1, "{told}");
    let results = results(&told);
    assert_eq!(results[255], "Made");
    assert!(
        results[..255].iter().all(|result| *result == "NotAllowed"),
        "{results:?}"
    );
    // Whoever may tell every namespace hears that there is no trigger.
    let told = rig.post(PATH, "admin", &body(&of_foreign_namespaces(255))).await.json();
    assert!(
        self::results(&told).iter().all(|result| *result == "NoTrigger"),
        "{told}"
    );
    // A namespace with triggers and one without are the same to whoever lacks the right in both.
    let with = |namespace: &str| {
        let mut alerts = of_foreign_namespaces(20);
        alerts[7]["labels"]["namespace"] = json!(namespace);
        body(&alerts)
    };
    let there = rig.post(PATH, "reader", &with("team")).await;
    let nowhere = rig.post(PATH, "reader", &with("nowhere")).await;
    assert_eq!((there.status, &there.body), (403, &nowhere.body));
}

#[tokio::test]
async fn one_user_takes_no_place_of_another() {
    let rig = rig().await;
    let server = &rig.cluster.server;
    server.fail(usize::MAX, Verb::Create, "subjectaccessreviews", Fault::Hang);
    let alerts = body(&[firing(7, "llm-0")]);
    let of_stranger = (0..9).map(|_| rig.post(PATH, "stranger", &alerts));
    let (of_stranger, of_other) = tokio::join!(
        futures::future::join_all(of_stranger),
        rig.post(PATH, "alertmanager", &alerts)
    );
    let reasons = |answers: &[Answer], reason: &str| answers.iter().filter(|answer| answer.reason() == reason).count();
    // Eight waited for the API server, the ninth had no place; another user has places of its own.
    assert_eq!(
        (reasons(&of_stranger, "ApiServer"), reasons(&of_stranger, "Busy")),
        (8, 1)
    );
    assert_eq!(of_other.told(), "503 ApiServer");
    server.heal();
    assert_eq!(results(&tell(&rig, &[firing(7, "llm-0")]).await), ["Made"]);
}

#[tokio::test]
async fn alerts_of_namespaces_without_the_right_are_left_out_and_counted() {
    let rig = rig().await;
    let mut other = firing(8, "llm-1");
    other["labels"]["namespace"] = json!("other");
    let told = tell(&rig, &[firing(7, "llm-0"), other.clone()]).await;
    assert_eq!(results(&told), ["Made", "NotAllowed"]);
    assert_eq!((made(&rig).len(), count(&rig, "not_allowed")), (1, 1));
    let told = rig.post(PATH, "admin", &body(&[other])).await.json();
    assert_eq!(
        results(&told),
        ["NoTrigger"],
        "who may everywhere hears that there is none"
    );
}

#[tokio::test]
async fn cooldown_and_daily_limit_hold() {
    let rig = rig().await;
    put_schedule(&rig, json!({}), json!({"maximumPerDay": 2, "cooldownSeconds": 60}));
    let alerts = [
        firing(1, "llm-0"),
        firing(2, "llm-0"),
        firing(3, "llm-1"),
        firing(4, "llm-2"),
    ];
    let told = tell(&rig, &alerts).await;
    assert_eq!(results(&told), ["Made", "Cooldown", "Made", "DailyLimit"]);
    assert_eq!(made(&rig).len(), 2);
}

#[tokio::test]
async fn alerts_of_pods_that_cannot_be_profiled_say_why() {
    let rig = rig().await;
    put_pod(&rig, "web-0", "web", "Running");
    put_pod(&rig, "llm-3", "llm", "Succeeded");
    let mut nameless = firing(4, "llm-0");
    nameless["labels"].as_object_mut().unwrap().remove("pod");
    let mut warning = firing(5, "llm-0");
    warning["labels"]["severity"] = json!("warning");
    let alerts = [
        firing(1, "web-0"),
        firing(2, "llm-3"),
        firing(3, "absent"),
        nameless,
        warning,
    ];
    let told = tell(&rig, &alerts).await;
    assert_eq!(
        results(&told),
        ["NotSelected", "NoSuchPod", "NoSuchPod", "NoSuchPod", "NoTrigger"]
    );
    put_schedule(&rig, json!({"suspend": true}), json!({}));
    // What is known of a schedule is kept for a moment. An alert of this pod makes no session
    // meanwhile.
    let until = Instant::now() + Duration::from_secs(30);
    while results(&tell(&rig, &[firing(1, "web-0")]).await) != ["Suspended"] {
        assert!(Instant::now() < until, "it is not known that the schedule is suspended");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(results(&tell(&rig, &[firing(6, "llm-0")]).await), ["Suspended"]);
    assert_eq!(made(&rig), Vec::<Value>::new());
}

#[tokio::test]
async fn bodies_that_are_none_are_refused_and_make_nothing() {
    let rig = rig().await;
    let nested = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let deep = format!(
        r#"{{"version":"4","alerts":[{{"status":"firing","startsAt":"2026-11-25T10:00:00Z","labels":{{"pod":{nested}}}}}]}}"#
    );
    let with = |member: &str, value: Value| {
        let mut alert = firing(7, "llm-0");
        alert[member] = value;
        body(&[firing(8, "llm-1"), alert]).to_string()
    };
    let huge = body(&vec![firing(7, "llm-0"); 4_000]).to_string();
    let many = body(&vec![
        json!({"status": "firing", "labels": {}, "startsAt": "2026-11-25T10:00:00Z", "fingerprint": "0000000000000000"});
        2_001
    ]);
    let namespaces: Vec<Value> = (0..257)
        .map(|number| {
            let mut alert = firing(7, "llm-0");
            alert["labels"]["namespace"] = json!(format!("team-{number}"));
            alert
        })
        .collect();
    for (what, text, status) in [
        ("huge", huge, 413),
        ("deep", deep, 400),
        ("nothing", String::new(), 400),
        ("no JSON", "{".to_owned(), 400),
        ("a list", "[]".to_owned(), 400),
        (
            "of an older form",
            json!({"version": "3", "alerts": []}).to_string(),
            400,
        ),
        ("many alerts", many.to_string(), 400),
        ("many namespaces", body(&namespaces).to_string(), 400),
        ("labels of numbers", with("labels", json!({"pod": 7})), 400),
        ("labels that are a list", with("labels", json!(["pod"])), 400),
        ("a long label", with("labels", json!({"pod": "x".repeat(5_000)})), 400),
        ("no fingerprint", with("fingerprint", json!("../x")), 400),
        ("no time", with("startsAt", json!("soon")), 400),
        ("no status", with("status", json!(null)), 400),
    ] {
        let json = [("Content-Type", "application/json")];
        let answer = rig.ask("POST", PATH, Some("alertmanager"), &json, &text).await;
        assert_eq!(answer.status, status, "{what}: {answer:?}");
    }
    assert_eq!(made(&rig), Vec::<Value>::new());
}

#[tokio::test]
async fn labels_that_are_no_names_are_part_of_no_path() {
    let rig = rig().await;
    let names = [
        "../../nodes",
        "a/b",
        "A",
        "llm-0?x=1",
        "llm-0#",
        "%2e%2e",
        "",
        "\u{0}",
        "-",
    ];
    let alerts: Vec<Value> = (0..).zip(names).map(|(number, name)| firing(number, name)).collect();
    let told = tell(&rig, &alerts).await;
    assert!(results(&told).iter().all(|result| *result == "NoSuchPod"), "{told}");
    let mut foreign = firing(99, "llm-0");
    foreign["labels"]["namespace"] = json!("AWS/EC2");
    let told = tell(&rig, &[firing(98, "absent"), foreign]).await;
    assert_eq!(results(&told), ["NoSuchPod", "NoTrigger"]);
    let calls = rig.cluster.server.calls();
    let asked: Vec<&str> = calls
        .iter()
        .map(|call| call.path.as_str())
        .filter(|path| path.contains("/pods/"))
        .collect();
    assert_eq!(asked, ["/api/v1/namespaces/team/pods/absent"]);
    assert_eq!(made(&rig), Vec::<Value>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_gateways_that_race_make_one_session_and_keep_the_limits() {
    let rig = rig().await;
    put_schedule(&rig, json!({}), json!({"maximumPerDay": 2, "cooldownSeconds": 0}));
    let other = rig.another_gateway().await;
    let same = body(&[firing(7, "llm-0")]);
    let ask = async |alerts: &Value| {
        let text = alerts.to_string();
        let json = [("Content-Type", "application/json")];
        let (one, two) = tokio::join!(
            rig.ask("POST", PATH, Some("alertmanager"), &json, &text),
            rig.ask_at(other, "POST", PATH, Some("alertmanager"), &json, &text)
        );
        assert_eq!((one.status, two.status), (200, 200), "{one:?} {two:?}");
        one.json()["made"].as_u64().unwrap() + two.json()["made"].as_u64().unwrap()
    };
    assert_eq!((ask(&same).await, made(&rig).len()), (1, 1));
    // Each gateway knows nothing of what the other makes until it is refused the name.
    let many: Vec<Value> = (10..20)
        .map(|number| firing(number, if number % 2 == 0 { "llm-1" } else { "llm-2" }))
        .collect();
    assert_eq!((ask(&body(&many)).await, made(&rig).len()), (1, 2));
}

#[tokio::test]
async fn what_the_api_server_refuses_is_told_and_what_it_does_not_answer_is_sent_again() {
    let rig = rig().await;
    let server = &rig.cluster.server;
    server.fail(1, Verb::Create, "profilingsessions", Fault::Code(403));
    assert_eq!(results(&tell(&rig, &[firing(7, "llm-0")]).await), ["Refused"]);
    server.fail(1, Verb::Create, "profilingsessions", Fault::Code(500));
    let answer = rig.post(PATH, "alertmanager", &body(&[firing(7, "llm-0")])).await;
    assert_eq!(answer.told(), "503 ApiServer");
    assert_eq!(results(&tell(&rig, &[firing(7, "llm-0")]).await), ["Made"]);
    assert_eq!(made(&rig).len(), 1);
}

#[tokio::test]
async fn a_right_that_is_taken_back_ends() {
    let rig = rig().await;
    let right = Right::resource("create", GROUP, "profilingschedules/alerts").in_namespace("team");
    rig.cluster.server.disallow("alertmanager", &right);
    let answer = rig.post(PATH, "alertmanager", &body(&[firing(7, "llm-0")])).await;
    assert_eq!(answer.status, 403);
}
