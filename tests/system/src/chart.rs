//! The chart under test, installed as a user would: with `cargo xtask cluster install`.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::cluster::run;

/// Namespace of the release.
pub const NAMESPACE: &str = "flopwatch-system";

/// Folder on the node (this machine) that the release under test mounts into the agent.
const FAKE_NVML_FOLDER: &str = "/var/lib/flopwatch-rig/fake-nvml";

/// Puts the fake NVML library and the state that it shows where the agent finds them: one GPU, on
/// which every process of the sample workload computes.
fn place_fake_nvml() -> Result<()> {
    let library = std::env::var_os("FLOPWATCH_FAKE_NVML_LIBRARY")
        .context("FLOPWATCH_FAKE_NVML_LIBRARY names the library: cargo xtask test builds it")?;
    let folder = Path::new(FAKE_NVML_FOLDER);
    std::fs::create_dir_all(folder)?;
    std::fs::copy(
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fake-nvml.json"),
        folder.join("nvml.json"),
    )?;
    // A library that a running agent has mapped must not be written to, so it is replaced.
    let fresh = folder.join("library.new");
    std::fs::copy(library, &fresh)?;
    std::fs::rename(fresh, folder.join("libflopwatch_fake_nvml.so"))?;
    Ok(())
}

/// Installs or upgrades the release, with the images that the cluster imported.
///
/// # Errors
/// When helm fails or the parts are not ready in time.
pub async fn install() -> Result<()> {
    upgrade(&folder(), &[]).await
}

/// Where the chart lies.
pub fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../charts/flopwatch")
}

/// Installs or upgrades the release with that chart, by the recipe that users have, and with more
/// options of helm.
///
/// # Errors
/// When helm fails or the parts are not ready in time.
pub async fn upgrade(chart: &Path, more: &[&str]) -> Result<()> {
    place_fake_nvml()?;
    let recipes =
        std::env::var("FLOPWATCH_XTASK").context("FLOPWATCH_XTASK names the recipes: cargo xtask cluster env")?;
    let values = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("values.yaml");
    let mut arguments = vec![
        "cluster",
        "install",
        "--chart",
        path(chart)?,
        "--",
        "--values",
        path(&values)?,
    ];
    arguments.extend(more);
    run(&recipes, &arguments).await.map(drop)
}

/// Removes the release as a user would, and waits until its parts are gone.
///
/// # Errors
/// When helm fails or the parts do not go in time.
pub async fn uninstall() -> Result<()> {
    run(
        "helm",
        &[
            "uninstall",
            "flopwatch",
            "--namespace",
            NAMESPACE,
            "--wait",
            "--timeout",
            "180s",
        ],
    )
    .await?;
    Ok(())
}

fn path(path: &Path) -> Result<&str> {
    path.to_str().context("a path that is not UTF-8")
}
