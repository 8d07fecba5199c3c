//! The README's first session and its continuation in docs/sessions.md, command by command, as a
//! reader types it.

use std::os::unix::fs::symlink;
use std::path::Path;

use anyhow::{Context as _, Result};
use flopwatch_system_tests::cluster::{Cluster, Group, TestNamespace};
use flopwatch_system_tests::transcript::{self, blocks, follow, part, steps};
use kube::api::{Api, DeleteParams};

/// The namespace that the README makes.
const NAMESPACE: &str = "demo";

#[tokio::test]
async fn the_first_session_of_the_readme_goes_as_it_is_written() -> Result<()> {
    let Some(cluster) = Cluster::connect(Group::Shared).await? else {
        return Ok(());
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
    let readme = std::fs::read_to_string(root.join("README.md"))?;
    let part = part(&readme, "A first session").context("the README has no first session")?;
    let sessions = std::fs::read_to_string(root.join("docs/sessions.md"))?;
    let continued =
        transcript::part(&sessions, "The result over HTTP").context("docs/sessions.md does not fetch a result")?;
    let shown = [part, continued].map(|part| blocks(part, "console")).concat();
    let mut steps = steps(&shown);
    // The reader's kubectl has another namespace from there on; ours must not.
    let folder = tempfile::tempdir()?;
    let kubeconfig = folder.path().join("kubeconfig");
    std::fs::copy(std::env::var_os("KUBECONFIG").context("no KUBECONFIG")?, &kubeconfig)?;
    if let Some(first) = steps.first_mut() {
        first.command = format!("export KUBECONFIG='{}'\n{}", kubeconfig.display(), first.command);
    }
    symlink(root.join("examples"), folder.path().join("examples"))?;
    let followed = follow(&steps, folder.path()).await;
    let namespace = TestNamespace::existing(&cluster, NAMESPACE);
    let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(cluster.client);
    // A command that failed may have been the one that makes it.
    if namespaces.get_opt(NAMESPACE).await?.is_none() {
        return followed;
    }
    if followed.is_err() {
        namespaces.delete(NAMESPACE, &DeleteParams::default()).await?;
        return followed;
    }
    namespace.delete_whole().await
}
