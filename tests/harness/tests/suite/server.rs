//! What a client sees of the server.

use std::collections::BTreeMap;
use std::time::Duration;

use flopwatch_test_harness::{API_SERVER_AUDIENCE, ApiServer, Call, Fault, Identity, Right, Verb};
use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::authentication::v1::{SelfSubjectReview, TokenRequest, TokenReview};
use k8s_openapi::api::authorization::v1::{SelfSubjectAccessReview, SubjectAccessReview};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, ServiceAccount};
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams,
    Preconditions, WatchEvent, WatchParams,
};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

fn map(name: &str, data: &[(&str, &str)]) -> ConfigMap {
    let data: BTreeMap<_, _> = data.iter().copied().collect();
    serde_json::from_value(json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"app": name}}, "data": data
    }))
    .unwrap()
}

fn maps(server: &ApiServer) -> Api<ConfigMap> {
    Api::namespaced(server.client("team"), "team")
}

fn code(error: &kube::Error) -> u16 {
    match error {
        kube::Error::Api(status) => status.code,
        other => unreachable!("{other}"),
    }
}

#[tokio::test]
async fn an_object_is_created_once_and_found_listed_replaced_and_deleted() {
    let server = ApiServer::new();
    let api = maps(&server);
    let made = api
        .create(&PostParams::default(), &map("a", &[("x", "1")]))
        .await
        .unwrap();
    assert!(made.uid().is_some() && made.creation_timestamp().is_some());
    let again = api.create(&PostParams::default(), &map("a", &[])).await.unwrap_err();
    assert_eq!(code(&again), 409);
    api.create(&PostParams::default(), &map("b", &[])).await.unwrap();

    let all = api.list(&ListParams::default()).await.unwrap();
    assert_eq!(
        all.items.iter().map(kube::ResourceExt::name_any).collect::<Vec<_>>(),
        ["a", "b"]
    );
    let labelled = api.list(&ListParams::default().labels("app=b")).await.unwrap();
    assert_eq!(labelled.items.len(), 1);
    let named = api
        .list(&ListParams::default().fields("metadata.name=a"))
        .await
        .unwrap();
    assert_eq!(named.items.len(), 1);
    let page = api.list(&ListParams::default().limit(1)).await.unwrap();
    let token = page.metadata.continue_.unwrap();
    let rest = api
        .list(&ListParams::default().limit(1).continue_token(&token))
        .await
        .unwrap();
    assert_eq!(
        (page.items[0].name_any(), rest.items[0].name_any()),
        ("a".to_owned(), "b".to_owned())
    );
    let elsewhere: Api<ConfigMap> = Api::namespaced(server.client("team"), "other");
    assert!(elsewhere.list(&ListParams::default()).await.unwrap().items.is_empty());

    let mut changed = made.clone();
    changed.data.as_mut().unwrap().insert("x".to_owned(), "2".to_owned());
    let replaced = api.replace("a", &PostParams::default(), &changed).await.unwrap();
    assert_ne!(replaced.resource_version(), made.resource_version());
    let stale = api.replace("a", &PostParams::default(), &changed).await.unwrap_err();
    assert_eq!(code(&stale), 409, "it has changed since");

    let patch = Patch::Merge(json!({"data": {"y": "3"}}));
    let patched = api.patch("a", &PatchParams::default(), &patch).await.unwrap();
    let data: Vec<_> = patched.data.as_ref().unwrap().values().map(String::as_str).collect();
    assert_eq!((data, patched.labels()), (vec!["2", "3"], made.labels()));

    api.delete("a", &DeleteParams::default()).await.unwrap();
    assert_eq!(api.get_opt("a").await.unwrap(), None);
    assert_eq!(code(&api.delete("a", &DeleteParams::default()).await.unwrap_err()), 404);
}

#[tokio::test]
async fn a_deleted_object_stays_until_its_last_finalizer_is_gone_and_only_the_one_that_was_meant_is_deleted() {
    let server = ApiServer::new();
    let api = maps(&server);
    server.put(&json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "a", "namespace": "team", "uid": "one", "finalizers": ["example.com/x"]}
    }));
    let other = DeleteParams {
        preconditions: Some(Preconditions {
            uid: Some("another".to_owned()),
            ..Preconditions::default()
        }),
        ..DeleteParams::default()
    };
    assert_eq!(code(&api.delete("a", &other).await.unwrap_err()), 409);
    api.delete("a", &DeleteParams::default()).await.unwrap();
    assert!(api.get("a").await.unwrap().metadata.deletion_timestamp.is_some());
    let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    api.patch("a", &PatchParams::default(), &free).await.unwrap();
    assert_eq!(api.get_opt("a").await.unwrap(), None);
}

#[tokio::test]
async fn an_applied_status_takes_back_its_own_and_leaves_others_and_the_spec() {
    let server = ApiServer::new();
    server.put(&json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "team", "uid": "one"},
        "spec": {"containers": []}, "status": {"phase": "Running"}
    }));
    let api: Api<Pod> = Api::namespaced(server.client("team"), "team");
    let apply = |uid: &str, body: Value| {
        let mut body = body;
        body["apiVersion"] = json!("v1");
        body["kind"] = json!("Pod");
        body["metadata"] = json!({"name": "p", "uid": uid});
        let api = api.clone();
        async move {
            let params = PatchParams::apply("test").force();
            api.patch_status("p", &params, &Patch::Apply(&body)).await
        }
    };
    let first = json!({"status": {"reason": "x", "message": "y"}, "spec": {"nodeName": "z"}});
    apply("one", first).await.unwrap();
    let second = json!({"status": {"message": "z"}});
    let pod = apply("one", second.clone()).await.unwrap();
    let status = pod.status.clone().unwrap();
    assert_eq!(
        (status.phase.as_deref(), status.reason, status.message.as_deref()),
        (Some("Running"), None, Some("z"))
    );
    assert_eq!(pod.spec.clone().unwrap().node_name, None);
    let same = apply("one", second.clone()).await.unwrap();
    assert_eq!(same.resource_version(), pod.resource_version(), "nothing changed");
    assert_eq!(code(&apply("another", second).await.unwrap_err()), 409);
}

#[tokio::test]
async fn a_watch_tells_what_happened_since_a_list_and_ends_when_it_is_told_to() {
    let server = ApiServer::new();
    let api = maps(&server);
    let listed = api.list(&ListParams::default()).await.unwrap();
    let version = listed.metadata.resource_version.unwrap();
    let put = |x: &str| {
        let mut object = serde_json::to_value(map("a", &[("x", x)])).unwrap();
        object["metadata"]["namespace"] = json!("team");
        server.put(&object);
    };
    put("1");
    let mut events = api.watch(&WatchParams::default(), &version).await.unwrap().boxed();
    let first = timeout(Duration::from_secs(5), events.try_next())
        .await
        .unwrap()
        .unwrap();
    assert!(matches!(first, Some(WatchEvent::Added(_))), "{first:?}");
    put("2");
    let second = timeout(Duration::from_secs(5), events.try_next())
        .await
        .unwrap()
        .unwrap();
    assert!(matches!(second, Some(WatchEvent::Modified(_))), "{second:?}");
    server.delete("configmaps", "team", "a");
    let third = timeout(Duration::from_secs(5), events.try_next())
        .await
        .unwrap()
        .unwrap();
    assert!(matches!(third, Some(WatchEvent::Deleted(_))), "{third:?}");
    server.end_watches();
    let end = timeout(Duration::from_secs(5), events.try_next())
        .await
        .unwrap()
        .unwrap();
    assert!(end.is_none(), "{end:?}");
}

#[tokio::test(start_paused = true)]
async fn calls_go_wrong_as_often_as_they_are_told_to() {
    let server = ApiServer::new();
    let api = maps(&server);
    server.fail(2, Verb::Create, "configmaps", Fault::Code(403));
    for _ in 0..2 {
        let refused = api.create(&PostParams::default(), &map("a", &[])).await.unwrap_err();
        assert_eq!(code(&refused), 403);
    }
    server.fail(1, Verb::Create, "configmaps", Fault::DoneBut(500));
    let unknown = api.create(&PostParams::default(), &map("a", &[])).await.unwrap_err();
    assert_eq!(code(&unknown), 500);
    assert!(api.get_opt("a").await.unwrap().is_some(), "it was done");
    server.fail(1, Verb::Get, "configmaps", Fault::Hang);
    timeout(Duration::from_mins(1), api.get("a")).await.unwrap_err();
    api.get("a").await.unwrap();
    let full = Fault::Refused(403, "exceeded quota: maps");
    server.fail(1, Verb::Create, "configmaps", full);
    let refused = api.create(&PostParams::default(), &map("b", &[])).await.unwrap_err();
    assert!(refused.to_string().contains("exceeded quota: maps"), "{refused}");
    server.fail(9, Verb::Get, "configmaps", Fault::Code(500));
    server.heal();
    api.get("a").await.unwrap();
    let path = "/api/v1/namespaces/team/configmaps".to_owned();
    let made = Call {
        user: Some("kubernetes-admin".to_owned()),
        verb: Verb::Create,
        path: path.clone(),
        body: serde_json::to_value(map("a", &[])).unwrap(),
        code: Some(403),
    };
    let calls = server.calls();
    assert_eq!(calls[0], made);
    let codes: Vec<_> = calls.iter().map(|call| call.code).collect();
    let expected = [
        Some(403),
        Some(403),
        Some(500),
        Some(200),
        None,
        Some(200),
        Some(403),
        Some(200),
    ];
    assert_eq!(codes, expected, "one was never answered");
    assert_eq!(server.writes(), vec![format!("create {path}"); 4]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_on_its_way_for_as_long_as_it_is_told_to_and_says_what_was_then() {
    let server = ApiServer::new();
    server.delay(|call| {
        let is_list = call.verb == Verb::List;
        let wait = if is_list {
            Duration::from_mins(1)
        } else {
            Duration::ZERO
        };
        tokio::time::sleep(wait).boxed()
    });
    let api = maps(&server);
    let begin = Instant::now();
    let params = ListParams::default();
    let create = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        api.create(&PostParams::default(), &map("a", &[])).await.unwrap();
        assert!(begin.elapsed() < Duration::from_secs(2), "it waits for no list");
    };
    let (listed, ()) = tokio::join!(api.list(&params), create);
    assert!(listed.unwrap().items.is_empty());
    assert_eq!(begin.elapsed(), Duration::from_mins(1));
}

#[tokio::test]
async fn what_is_done_for_trial_is_answered_and_not_done() {
    let server = ApiServer::new();
    let api = maps(&server);
    let trial = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    api.create(&trial, &map("a", &[("x", "1")])).await.unwrap();
    assert_eq!(api.get_opt("a").await.unwrap(), None);

    let stored = api
        .create(&PostParams::default(), &map("a", &[("x", "1")]))
        .await
        .unwrap();
    let x = |map: &ConfigMap| map.data.as_ref().and_then(|data| data.get("x").cloned());
    let replaced = api.replace("a", &trial, &map("a", &[("x", "2")])).await.unwrap();
    let merge = Patch::Merge(json!({"data": {"x": "3"}}));
    let merged = api.patch("a", &PatchParams::default().dry_run(), &merge).await.unwrap();
    let apply = Patch::Apply(json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"x": "4"}}));
    let params = PatchParams::apply("test").dry_run();
    let applied = api.patch("a", &params, &apply).await.unwrap();
    let text: Vec<_> = [&replaced, &merged, &applied].into_iter().filter_map(x).collect();
    assert_eq!(text, ["2", "3", "4"]);
    let params = DeleteParams::default().dry_run();
    api.delete("a", &params).await.unwrap();
    assert_eq!(api.get("a").await.unwrap(), stored);

    // Nothing is taken back that was applied for trial.
    let empty = Patch::Apply(json!({"apiVersion": "v1", "kind": "ConfigMap"}));
    let kept = api.patch("a", &PatchParams::apply("test"), &empty).await.unwrap();
    assert_eq!(x(&kept).as_deref(), Some("1"));
}

#[tokio::test]
async fn reviews_tell_whom_a_token_belongs_to_and_what_they_may() {
    let server = ApiServer::new();
    server.add_token("of-ada", Identity::new("ada").in_groups(&["people"]));
    let issued = server.issue_token(Identity::new("gateway").for_audiences(&["agent"]));
    server.allow("people", Right::resource("get", "", "pods").in_namespace("team"));
    server.allow("ada", Right::path("get", "/metrics"));
    let client = server.client("team");

    let tokens: Api<TokenReview> = Api::all(client.clone());
    for (token, audiences, expected) in [
        ("of-ada", vec![], Some(("ada", API_SERVER_AUDIENCE))),
        ("of-ada", vec!["agent"], None),
        (issued.as_str(), vec!["agent", "other"], Some(("gateway", "agent"))),
        (issued.as_str(), vec![], None),
        ("junk", vec![], None),
    ] {
        let review = json!({"metadata": {}, "spec": {"token": token, "audiences": audiences}});
        let review = serde_json::from_value(review).unwrap();
        let reviewed = tokens.create(&PostParams::default(), &review).await.unwrap();
        let status = reviewed.status.unwrap();
        assert_eq!(status.authenticated, Some(expected.is_some()), "{token}");
        let user = status.user.and_then(|user| user.username);
        let text = user.zip(status.audiences.and_then(|audiences| audiences.into_iter().next()));
        let text = text.as_ref().map(|(user, audience)| (user.as_str(), audience.as_str()));
        assert_eq!(text, expected, "{token}");
    }

    let rights: Api<SubjectAccessReview> = Api::all(client);
    let may = async |groups: &[&str], attributes: Value| {
        let mut spec = json!({"user": "ada", "groups": groups});
        json_patch::merge(&mut spec, &attributes);
        let review = serde_json::from_value(json!({"metadata": {}, "spec": spec})).unwrap();
        let reviewed = rights.create(&PostParams::default(), &review).await;
        reviewed.map(|review| review.status.unwrap().allowed)
    };
    let pods = json!({"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "team", "name": "p"}});
    let metrics = json!({"nonResourceAttributes": {"verb": "get", "path": "/metrics"}});
    assert!(may(&["people"], pods.clone()).await.unwrap());
    assert!(!may(&[], pods.clone()).await.unwrap(), "the right is the group's");
    assert!(may(&[], metrics.clone()).await.unwrap());
    server.disallow("ada", &Right::path("get", "/metrics"));
    assert!(!may(&[], metrics).await.unwrap());
    assert_eq!(code(&may(&[], json!({})).await.unwrap_err()), 422);
}

#[tokio::test]
async fn a_client_with_a_token_may_what_its_user_may_and_learns_it() {
    let server = ApiServer::new();
    server.add_token("of-ada", Identity::new("ada"));
    let create = Right::resource("create", "", "configmaps").in_namespace("team");
    server.allow("ada", create.clone());
    let client = server.client_of("of-ada", "team");
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), "team");
    api.create(&PostParams::default(), &map("a", &[])).await.unwrap();
    assert_eq!(server.calls()[0].user.as_deref(), Some("ada"));

    let refused = api.get("a").await.unwrap_err();
    assert_eq!(code(&refused), 403);
    let words = r#"User "ada" cannot get resource "configmaps" in API group "" in the namespace "team""#;
    assert!(refused.to_string().contains(words), "{refused}");
    let elsewhere: Api<ConfigMap> = Api::namespaced(client.clone(), "other");
    let refused = elsewhere.create(&PostParams::default(), &map("a", &[])).await;
    assert_eq!(code(&refused.unwrap_err()), 403);

    let own: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let attributes = json!({"verb": "create", "resource": "configmaps", "namespace": "team"});
    let review = json!({"metadata": {}, "spec": {"resourceAttributes": attributes}});
    let review = serde_json::from_value(review).unwrap();
    let may = async || {
        let reviewed = own.create(&PostParams::default(), &review).await.unwrap();
        reviewed.status.unwrap().allowed
    };
    assert!(may().await);
    server.disallow("ada", &create);
    assert!(!may().await);
    let own: Api<SelfSubjectReview> = Api::all(client);
    let text = own.create(&PostParams::default(), &SelfSubjectReview::default()).await;
    assert_eq!(
        text.unwrap().status.unwrap().user_info.unwrap().username.unwrap(),
        "ada"
    );

    server.revoke_token("of-ada");
    assert_eq!(code(&api.get("a").await.unwrap_err()), 401);
}

#[tokio::test]
async fn a_service_account_gets_a_token_for_the_audience_that_is_asked_for() {
    let server = ApiServer::new();
    let accounts: Api<ServiceAccount> = Api::namespaced(server.client("team"), "team");
    let request = json!({"metadata": {}, "spec": {"audiences": ["agent"]}});
    let request: TokenRequest = serde_json::from_value(request).unwrap();
    let request_token = async || {
        let params = PostParams::default();
        let given = accounts.create_token_request("robot", &params, &request).await;
        given.map(|given| given.status.unwrap().token)
    };
    assert_eq!(code(&request_token().await.unwrap_err()), 404);
    server.put(&json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot", "namespace": "team"}
    }));
    let token = request_token().await.unwrap();
    let review = json!({"metadata": {}, "spec": {"token": token, "audiences": ["agent"]}});
    let review = serde_json::from_value(review).unwrap();
    let tokens: Api<TokenReview> = Api::all(server.client("team"));
    let reviewed = tokens.create(&PostParams::default(), &review).await.unwrap();
    let user = reviewed.status.unwrap().user.unwrap();
    assert_eq!(user.username.as_deref(), Some("system:serviceaccount:team:robot"));
}

#[tokio::test]
async fn who_calls_by_its_address_is_whom_their_token_says() {
    let server = ApiServer::new();
    server.add_token("of-ada", Identity::new("ada"));
    server.allow("ada", Right::resource("list", "", "configmaps"));
    let mut config = kube::Config::new(format!("http://{}", server.listen().await).parse().unwrap());
    let list = async |config: &kube::Config| {
        let api: Api<ConfigMap> = Api::all(Client::try_from(config.clone()).unwrap());
        api.list(&ListParams::default()).await.map(|list| list.items.len())
    };
    assert_eq!(code(&list(&config).await.unwrap_err()), 401);
    config.auth_info = serde_json::from_value(json!({"token": "of-ada"})).unwrap();
    assert_eq!(list(&config).await.unwrap(), 0);
}

#[tokio::test]
async fn a_custom_resource_is_held_against_the_bounds_of_its_schema() {
    let server = ApiServer::new();
    let schema = json!({"type": "object", "properties": {"spec": {
        "type": "object", "properties": {"seconds": {"type": "integer", "maximum": 300.0}}
    }}});
    let definition = json!({"metadata": {"name": "runs.example.com"}, "spec": {
        "group": "example.com", "names": {"kind": "Run", "plural": "runs"}, "scope": "Namespaced",
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]
    }});
    server.define(&serde_json::from_value(definition).unwrap());
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Run"));
    let runs: Api<DynamicObject> = Api::namespaced_with(server.client("team"), "team", &kind);
    let run = |seconds: u32| DynamicObject::new("a", &kind).data(json!({"spec": {"seconds": seconds}}));
    let refused = runs.create(&PostParams::default(), &run(301)).await.unwrap_err();
    assert_eq!(code(&refused), 422);
    assert!(refused.to_string().contains("spec.seconds"), "{refused}");
    runs.create(&PostParams::default(), &run(300)).await.unwrap();
}
