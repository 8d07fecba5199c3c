//! From a request to the gateway to the bytes of a timeline, and who is turned away on the way.

use anyhow::{Context as _, Result, ensure};
use flopwatch_system_tests::cluster::{Group, TestNamespace, eventually};
use flopwatch_system_tests::fetch::{Answer, ArtifactClient, gateway, reader_token, stranger_token};
use flopwatch_system_tests::pods::sample;
use serde_json::{Value, json};

/// Ends of paths of what the workload of the tests has not.
const ABSENT: [&str; 3] = ["/kernel-counters", "/flame-folded", "/hlo-dot"];

fn body(answer: &Answer) -> Result<Value> {
    serde_json::from_slice(&answer.body).with_context(|| format!("{answer:?}"))
}

/// Every path of the document that is read by whoever may, of that session.
async fn documented(client: &ArtifactClient, gateway: &str, namespace: &str, id: &str) -> Result<Vec<String>> {
    let root = gateway.strip_suffix("/api/profiling").context("another address")?;
    let document = body(&client.request(&format!("{root}/api/openapi.json"), None, &[]).await?)?;
    let paths = document["paths"].as_object().context("no paths")?;
    let read = paths.iter().filter(|(_, operations)| {
        let get = &operations["get"];
        // Those that say that they need no token are open to all.
        get.is_object() && get["security"].is_null()
    });
    Ok(read
        .map(|(path, operations)| {
            let parameters = operations["get"]["parameters"].as_array();
            let takes_two = parameters.into_iter().flatten().any(|one| {
                // What several paths take is written once, among the components.
                let place = one["$ref"].as_str().and_then(|place| place.strip_prefix('#'));
                let one = place.and_then(|place| document.pointer(place)).unwrap_or(one);
                one["name"] == "with" && one["required"] == true
            });
            let path = path
                .replace("{file}", &format!("{id}.h5"))
                .replace("{id}", id)
                .replace("{name}", "timeline.csv");
            match path.rsplit('/').next() {
                Some("sessions" | "targets") => format!("{root}{path}?namespace={namespace}"),
                Some("top") => format!("{root}{path}?by=kernels&namespace={namespace}"),
                _ if takes_two => format!("{root}{path}?with={id}"),
                _ => format!("{root}{path}"),
            }
        })
        .collect())
}

/// Whoever may is served, nobody without a token, and whoever may not learns nothing.
async fn every_path_asks_for_the_right(
    client: &ArtifactClient,
    paths: &[String],
    id: &str,
    user: &str,
    stranger: &str,
) -> Result<()> {
    ensure!(paths.len() > 8, "{paths:?}");
    for path in paths {
        let allowed = client.request(path, Some(user), &[]).await?;
        let expected = match path {
            // The workload of the tests has no counters, no GPU work and no compiled program, the
            // cluster has no object store, and the user may not list pods.
            _ if path.contains("/kernels/") || path.contains("/fleet/") => 404,
            _ if ABSENT.iter().any(|end| path.ends_with(end)) => 404,
            _ if path.contains("/targets") => 403,
            _ => 200,
        };
        ensure!(allowed.status == expected, "{path}: {allowed:?}");
        let none = client.request(path, None, &[]).await?;
        ensure!(none.status == 401, "{path}: {none:?}");
        for path in [path.clone(), path.replace(id, "00000000")] {
            let refused = client.request(&path, Some(stranger), &[]).await?;
            let message = String::from_utf8_lossy(&refused.body);
            ensure!(
                refused.status == 403 && !message.contains("trainer"),
                "{path}: {refused:?}"
            );
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_user_profiles_and_reads_through_the_gateway() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "gateway").await? else {
        return Ok(());
    };
    namespace.launch(sample("trainer")).await?;
    let gateway = gateway(&namespace.client).await?;
    let client = ArtifactClient::of_gateway(&namespace.client).await?;
    let user = reader_token(&namespace, "user", "flopwatch-user").await?;
    let stranger = stranger_token(&namespace, "stranger").await?;

    let request = json!({
        "mode": "nsys", "solver": "cg", "target": {"namespace": namespace.name, "pod": "trainer"},
        "options": {"duration_seconds": 1}
    })
    .to_string();
    let post = ["--header", "Content-Type: application/json", "--data", request.as_str()];
    let run_path = format!("{gateway}/run");
    for (who, expected) in [(None, 401), (Some(stranger.as_str()), 403)] {
        let refused = client.request(&run_path, who, &post).await?;
        ensure!(refused.status == expected, "{refused:?}");
    }
    let accepted = client.request(&run_path, Some(&user), &post).await?;
    ensure!(accepted.status == 202, "{accepted:?}");
    let id = body(&accepted)?["session_id"].as_str().context("no id")?.to_owned();
    let session = format!("{gateway}/session/{id}");
    let ended = eventually("the session to end", || async {
        let state = body(&client.request(&session, Some(&user), &[]).await?)?;
        let is_over = ["completed", "failed"].iter().any(|end| state["status"] == *end);
        Ok(is_over.then_some(state))
    })
    .await?;
    ensure!(
        ended["status"] == "completed" && ended["request"]["solver"] == "cg",
        "{ended}"
    );
    ensure!(
        ended["requested_by"].as_str().is_some_and(|who| who.ends_with(":user")),
        "the session is not the caller's own: {ended}"
    );

    let timeline = format!("{gateway}/timeline/{id}.h5");
    let whole = client.request(&timeline, Some(&user), &[]).await?;
    ensure!(whole.status == 200 && whole.body.starts_with(b"\x89HDF"), "{whole:?}");
    let length = whole.body.len().to_string();
    ensure!(whole.header("content-length") == Some(length.as_str()), "{whole:?}");
    let part = client.request(&timeline, Some(&user), &["--range", "0-7"]).await?;
    ensure!(part.status == 206 && part.body == b"\x89HDF\r\n\x1a\n", "{part:?}");
    let condition = format!("If-None-Match: {}", whole.header("etag").context("no tag")?);
    let again = client
        .request(&timeline, Some(&user), &["--header", &condition])
        .await?;
    ensure!(again.status == 304 && again.body.is_empty(), "{again:?}");
    let head = client.request(&timeline, Some(&user), &["--head"]).await?;
    ensure!(head.header("content-length") == Some(length.as_str()), "{head:?}");

    let paths = documented(&client, &gateway, &namespace.name, &id).await?;
    every_path_asks_for_the_right(&client, &paths, &id, &user, &stranger).await?;
    let list = format!("{gateway}/sessions?namespace={}", namespace.name);
    ensure!(body(&client.request(&list, Some(&user), &[]).await?)?["total"] == 1);
    let deleted = client.request(&session, Some(&user), &["--request", "DELETE"]).await?;
    ensure!(deleted.status == 200, "{deleted:?}");
    eventually("the session to go", || async {
        let gone = client.request(&list, Some(&user), &[]).await?;
        Ok((body(&gone)?["total"] == 0).then_some(()))
    })
    .await?;
    namespace.delete().await
}
