//! Committed files that programs of the repository write.

use crate::cache::Cache;
use crate::progress::step;
use crate::project;
use anyhow::Result;

/// Where the custom resource definitions are kept: for `kubectl apply`, and in the chart.
const DEFINITIONS: [&str; 2] = ["crds", "charts/flopwatch/files/crds"];

/// Writes them anew.
pub(crate) fn run(cache: &Cache) -> Result<()> {
    step("custom resource definitions", || {
        let cargo = project::cargo()?.envs(project::environment(cache)?);
        cargo
            .args([
                "run",
                "--quiet",
                "--package",
                "flopwatch-api",
                "--example",
                "crds",
                "--",
            ])
            .args(DEFINITIONS)
            .shown()
    })
}
