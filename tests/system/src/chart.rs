//! The chart under test, installed as a user would: with `cargo xtask cluster install`.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::cluster::run;

/// Namespace of the release.
pub const NAMESPACE: &str = "flopwatch-system";

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
    let recipes =
        std::env::var("FLOPWATCH_XTASK").context("FLOPWATCH_XTASK names the recipes: cargo xtask cluster env")?;
    let library = std::env::var("FLOPWATCH_FAKE_NVML_LIBRARY")
        .context("FLOPWATCH_FAKE_NVML_LIBRARY names the library: cargo xtask test builds it")?;
    let mut arguments = vec!["cluster", "install", "--for-tests", &library, "--chart"];
    arguments.extend([path(chart)?, "--"]);
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
