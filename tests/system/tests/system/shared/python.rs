//! The Python package in the hands of a user who may profile in one namespace, and of one who may
//! not.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use flopwatch_system_tests::cluster::{Group, TestNamespace, run};
use flopwatch_system_tests::fetch::{reader_token, stranger_token};
use flopwatch_system_tests::pods::workload;
use flopwatch_system_tests::user::{User, may_reach_gateway};
use serde_json::json;
use tokio::process::Command;

const PROGRAM: &str = include_str!("../../../programs/client.py");

fn variable(name: &str) -> Result<String> {
    std::env::var(name).with_context(|| format!("{name} is not set: `cargo xtask test` sets it"))
}

/// Lays the package into a folder as an installation has it.
async fn install(folder: &Path) -> Result<PathBuf> {
    let site = folder.join("site");
    std::fs::create_dir_all(&site)?;
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/flopwatch");
    let (package, into) = (package.to_str().context("a path")?, site.to_str().context("a path")?);
    run("cp", &["--recursive", package, into]).await?;
    std::fs::copy(
        variable("FLOPWATCH_PYTHON_MODULE")?,
        site.join("flopwatch/_native.abi3.so"),
    )?;
    Ok(site)
}

#[tokio::test]
async fn a_python_program_profiles_and_reads_with_its_users_rights() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "python").await? else {
        return Ok(());
    };
    let mut pod = workload("trainer", true, &["--range-micros", "20"]);
    pod["metadata"]["annotations"] = json!({ "flopwatch.dev/nsys-trace": "nvtx,osrt" });
    namespace.launch(pod).await?;
    let user_token = reader_token(&namespace, "user", "flopwatch-user").await?;
    let stranger = stranger_token(&namespace, "stranger").await?;
    let caller = may_reach_gateway(&namespace, "user").await?;

    let folder = tempfile::tempdir()?;
    let site = install(folder.path()).await?;
    let mut kubeconfigs = Vec::new();
    for (who, token) in [("user", &user_token), ("stranger", &stranger)] {
        let own = folder.path().join(who);
        std::fs::create_dir(&own)?;
        let user = User::new(&own, &namespace, token).await?;
        kubeconfigs.push(user.kubeconfig().to_owned());
    }
    let program = folder.path().join("client.py");
    std::fs::write(&program, PROGRAM)?;
    let child = Command::new(variable("FLOPWATCH_PYTHON")?)
        .arg(&program)
        .args(&kubeconfigs)
        .arg(&stranger)
        .arg(folder.path().join("fetched"))
        .env("PYTHONPATH", &site)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env_remove("KUBECONFIG")
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(std::time::Duration::from_mins(5), child).await;
    let output = output.context("the program did not end")??;
    let (said, problems) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    ensure!(
        output.status.success() && said.ends_with("done\n"),
        "{said}\n{problems}"
    );
    println!("{said}");
    caller.end().await?;
    namespace.delete().await
}
