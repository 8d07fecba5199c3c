//! Rows of the fleet: what captures leave in the object store, and what a user of one namespace is
//! told of it.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use flopwatch_bucket_rig::S3Server;
use flopwatch_system_tests::cluster::{TestNamespace, eventually};
use flopwatch_system_tests::sessions::with;
use flopwatch_system_tests::user::{User, may_reach_gateway};
use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::copies::kept;

/// UIDs of captures whose file of that table the store holds.
fn stored(server: &S3Server, table: &str) -> BTreeSet<String> {
    let folder = format!("/fleet/v1/table={table}/");
    let keys = server.objects().into_iter().map(|(key, _)| key);
    let keys = keys.filter(|key| key.contains(&folder));
    let uids = keys.filter_map(|key| Some(key.rsplit_once('/')?.1.strip_suffix(".parquet")?.to_owned()));
    uids.collect()
}

async fn uid(namespace: &TestNamespace, session: &str) -> Result<String> {
    let capture = namespace.only_capture(session).await?;
    capture.uid().context("a capture without a UID")
}

/// A third session fails; the two that succeeded before it and this one are told of, to whoever may
/// list them.
pub(crate) async fn are_kept_and_told(namespace: &TestNamespace, server: &S3Server, user: &str) -> Result<()> {
    let failing = with(kept("Node"), json!({ "require": ["cuda_kernel"] }));
    namespace.create_session("failing", failing).await?;
    // It holds no kernels on a machine without a GPU.
    namespace.fails_with("failing", "RequiredEventsMissing", &[]).await?;

    let good = BTreeSet::from([uid(namespace, "durable").await?, uid(namespace, "copied").await?]);
    let mut all = good.clone();
    all.insert(uid(namespace, "failing").await?);
    eventually("the rows of three captures", || async {
        // Other tests' captures do not end here: this release has the store for this test alone.
        let (captures, rows) = (stored(server, "captures"), stored(server, "rows"));
        ensure!(captures.is_superset(&all), "{captures:?}");
        ensure!(rows.is_superset(&good) && rows.is_disjoint(&(&all - &good)), "{rows:?}");
        Ok(Some(()))
    })
    .await?;

    let folder = tempfile::tempdir()?;
    let user = User::new(folder.path(), namespace, user).await?;
    let caller = may_reach_gateway(namespace, "user").await?;
    let told = tell(&user).await;
    caller.end().await?;
    told
}

async fn tell(user: &User) -> Result<()> {
    let ranges = ["top", "ranges", "--since", "1h", "-o", "json"];
    let listed = user.flopwatch(&ranges).await?;
    ensure!(listed.code == Some(0), "{listed:?}");
    let found: Value = serde_json::from_str(&listed.out)?;
    for (name, count) in [
        ("captures", 3),
        ("failed", 1),
        ("not_captured", 1),
        ("not_drawn", 3),
        ("captures_without_rows", 0),
    ] {
        ensure!(found[name] == count, "{name}: {found}");
    }
    let group = &found["groups"][0];
    ensure!(group["captures"] == 2 && found["unread"] == json!([]), "{found}");
    let table = user.flopwatch(&ranges[..4]).await?;
    let name = found["groups"][0]["key"].as_str().context("a range without a name")?;
    ensure!(table.code == Some(0) && table.out.contains(name), "{table:?}");
    let line = "Captures: 3, of which 1 failed and 1 hold none of it.";
    ensure!(table.out.contains(line), "{table:?}");
    let kernels = ["top", "kernels", "--since", "1h", "-o", "name"];
    let kernels = user.flopwatch(&kernels).await?;
    ensure!(kernels.code == Some(0) && kernels.out.is_empty(), "{kernels:?}");
    // The right to list is that of one namespace.
    for elsewhere in [&["-A"][..], &["-n", "kube-system"]] {
        let refused = user.flopwatch(&[&["top", "ranges"], elsewhere].concat()).await?;
        ensure!(
            refused.code == Some(1) && refused.problems.contains("profilingsessions") && refused.out.is_empty(),
            "{refused:?}"
        );
    }
    Ok(())
}
