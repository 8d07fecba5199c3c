//! Committed files that programs of the repository write.

use anyhow::Result;
use flopwatch_toolchain::cache::Cache;
use flopwatch_toolchain::progress::step;
use flopwatch_toolchain::project;

/// Where the custom resource definitions are kept: the chart reads no file outside its own folder.
const DEFINITIONS: &str = "charts/flopwatch/files/crds";

/// Where the schema of the summary artifact is kept.
const SUMMARY_SCHEMA: &str = "docs/summary.schema.json";

/// Where the viewer's types of the catalogue of analyses are kept.
const TYPESCRIPT: &str = "web/src/generated/catalogue.ts";

/// Where the endings of profilers' files are kept, which the viewer offers.
const ENDINGS: &str = "web/src/generated/endings.ts";

/// Where the Python package's types of the catalogue are kept.
const PYTHON: &str = "python/flopwatch/_catalogue.pyi";

/// Where the gateway's OpenAPI document is kept.
const OPENAPI: &str = "docs/openapi.json";

/// Writes them anew.
pub(crate) fn run(cache: &Cache) -> Result<()> {
    step("custom resource definitions", || {
        example(cache, "flopwatch-api", "crds", DEFINITIONS)
    })?;
    step("summary schema", || generated(cache, "summary-schema", SUMMARY_SCHEMA))?;
    step("viewer's types of analyses", || {
        generated(cache, "typescript", TYPESCRIPT)
    })?;
    step("viewer's endings of files", || generated(cache, "endings", ENDINGS))?;
    step("Python's types of analyses", || generated(cache, "python", PYTHON))?;
    step("OpenAPI document", || {
        example(cache, "flopwatch-operator", "openapi", OPENAPI)
    })
}

/// Runs `flopwatch-codegen`, which compiles the whole catalogue and is therefore no part of this
/// program.
fn generated(cache: &Cache, what: &str, path: &str) -> Result<()> {
    let cargo = project::cargo()?.envs(project::environment(cache)?);
    cargo
        .args(["run", "--quiet", "--package", "flopwatch-codegen", "--", what, path])
        .shown()
}

fn example(cache: &Cache, package: &str, name: &str, path: &str) -> Result<()> {
    let cargo = project::cargo()?.envs(project::environment(cache)?);
    cargo
        .args(["run", "--quiet", "--package", package, "--example", name, "--", path])
        .shown()
}
