//! Rows of the fleet: what captures leave in the object store, and what a user of one namespace is
//! told of it.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use flopwatch_bucket_rig::S3Server;
use flopwatch_system_tests::cluster::{TestNamespace, eventually};
use flopwatch_system_tests::user::{User, may_reach_gateway};
use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::copies::{spec, succeeded};

/// UIDs of captures whose file of that table the store holds.
fn stored(server: &S3Server, table: &str) -> BTreeSet<String> {
    let folder = format!("/fleet/v1/table={table}/");
    let keys = server
        .objects()
        .into_iter()
        .map(|(key, _)| key)
        .filter(|key| key.contains(&folder));
    let uids = keys.filter_map(|key| Some(key.rsplit_once('/')?.1.strip_suffix(".parquet")?.to_owned()));
    uids.collect()
}

async fn uid(namespace: &TestNamespace, session: &str) -> Result<String> {
    namespace
        .only_capture(session)
        .await?
        .uid()
        .context("a capture without a UID")
}

/// A third session fails; the two that succeeded before it and this one are told of, to whoever may
/// list them.
pub(crate) async fn are_kept_and_told(namespace: &TestNamespace, server: &S3Server, user: &str) -> Result<()> {
    let mut failing = spec("Node");
    failing["require"] = json!(["cuda_kernel"]);
    namespace.create_session("failing", failing).await?;
    namespace.finished("failing").await?;
    ensure!(
        succeeded(namespace, "failing").await.is_err(),
        "it holds kernels on a machine without a GPU"
    );

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
    let listed = user
        .flopwatch(&["top", "ranges", "--since", "1h", "-o", "json"])
        .await?;
    ensure!(listed.code == Some(0), "{listed:?}");
    let found: Value = serde_json::from_str(&listed.out)?;
    let counts = [
        "captures",
        "failed",
        "not_captured",
        "not_drawn",
        "captures_without_rows",
    ]
    .map(|name| found[name].as_u64());
    ensure!(counts == [3, 1, 1, 3, 0].map(Some), "{found}");
    ensure!(
        found["groups"][0]["captures"] == 2 && found["unread"] == json!([]),
        "{found}"
    );
    let table = user.flopwatch(&["top", "ranges", "--since", "1h"]).await?;
    let name = found["groups"][0]["key"].as_str().context("a range without a name")?;
    ensure!(table.code == Some(0) && table.out.contains(name), "{table:?}");
    ensure!(
        table
            .out
            .contains("Captures: 3, of which 1 failed and 1 hold none of it."),
        "{table:?}"
    );
    let kernels = user
        .flopwatch(&["top", "kernels", "--since", "1h", "-o", "name"])
        .await?;
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
