//! The kubectl plugin in the hands of a user who may profile in one namespace and knows nothing else of the cluster.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use flopwatch_api::session::ProfilingSession;
use flopwatch_system_tests::chart;
use flopwatch_system_tests::cluster::{Cluster, TestNamespace, run};
use flopwatch_system_tests::fetch::reader_token;
use flopwatch_system_tests::pods::workload;
use flopwatch_trace::ReadLimits;
use flopwatch_trace::model::Category;
use kube::api::Api;
use serde_json::{Value, json};
use tokio::process::Command;

/// What a program said, and how it ended.
#[derive(Debug)]
struct Said {
    code: Option<i32>,
    out: String,
    problems: String,
}

/// A user with a kubeconfig of their own, and `kubectl flopwatch` on the PATH.
struct User {
    kubeconfig: PathBuf,
    path: String,
}

impl User {
    /// Takes the tests' kubeconfig with the token of that account alone.
    async fn new(folder: &Path, namespace: &TestNamespace, token: &str) -> Result<Self> {
        let plugin =
            std::env::var("FLOPWATCH_PLUGIN").context("FLOPWATCH_PLUGIN: cargo xtask test names the program")?;
        let programs = Path::new(&plugin).parent().context("no folder")?.display().to_string();
        let text = run("kubectl", &["config", "view", "--raw", "--minify", "--output", "json"]).await?;
        let mut config: Value = serde_json::from_str(&text)?;
        config["users"] = json!([{ "name": "user", "user": { "token": token } }]);
        config["contexts"][0]["context"]["user"] = json!("user");
        config["contexts"][0]["context"]["namespace"] = json!(namespace.name);
        let kubeconfig = folder.join("kubeconfig");
        std::fs::write(&kubeconfig, config.to_string())?;
        Ok(Self {
            kubeconfig,
            path: format!("{programs}:{}", std::env::var("PATH")?),
        })
    }

    async fn flopwatch(&self, arguments: &[&str]) -> Result<Said> {
        let child = Command::new("kubectl")
            .env("KUBECONFIG", &self.kubeconfig)
            .env("PATH", &self.path)
            .arg("flopwatch")
            .args(arguments)
            .kill_on_drop(true)
            .output();
        let output = tokio::time::timeout(std::time::Duration::from_mins(3), child).await;
        let output = output.with_context(|| format!("{arguments:?} did not end"))??;
        Ok(Said {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            problems: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }
}

#[tokio::test]
async fn a_user_profiles_and_fetches_with_the_plugin_alone() -> Result<()> {
    let Some(cluster) = Cluster::connect().await? else {
        return Ok(());
    };
    let namespace = cluster.namespace("plugin").await?;
    namespace
        .create_pod(workload("trainer", true, &["--range-micros", "2000"]))
        .await?;
    namespace.launch_state("trainer").await?;
    let token = reader_token(&namespace, "user", "flopwatch-user").await?;
    let account = format!("--serviceaccount={}:user", namespace.name);
    let bind = [
        "create",
        "rolebinding",
        "sees-pods",
        "--clusterrole=view",
        account.as_str(),
    ];
    run("kubectl", &[&["-n", namespace.name.as_str()], &bind[..]].concat()).await?;
    let folder = tempfile::tempdir()?;
    let user = User::new(folder.path(), &namespace, &token).await?;

    let looked = user.flopwatch(&["doctor", "pod/trainer"]).await?;
    ensure!(looked.code == Some(0), "{looked:?}");
    let profiled = user
        .flopwatch(&["profile", "pod/trainer", "--duration", "1s", "--name", "mine", "--wait"])
        .await?;
    ensure!(profiled.code == Some(0), "{profiled:?}");
    let listed = user.flopwatch(&["sessions", "-o", "name"]).await?;
    ensure!(
        listed.code == Some(0) && listed.out.trim().ends_with("/mine"),
        "{listed:?}"
    );
    let described = user.flopwatch(&["describe", "mine"]).await?;
    ensure!(
        described.code == Some(0) && described.out.contains("timeline.h5"),
        "{described:?}"
    );

    let output = folder.path().join("fetched");
    let fetch = ["fetch", "mine", "--output", output.to_str().context("a path")?];
    let refused = user.flopwatch(&fetch).await?;
    ensure!(
        refused.code == Some(1) && refused.problems.contains("flopwatch-gateway-caller"),
        "whoever may not reach the gateway hears of the role that allows it: {refused:?}"
    );
    ensure!(!output.exists(), "nothing was fetched");
    // What the chart does for whom `access.gatewayCallers` names.
    let binding = namespace.name.as_str();
    let bind = [
        "create",
        "rolebinding",
        binding,
        "--role=flopwatch-gateway-caller",
        account.as_str(),
    ];
    run("kubectl", &[&["-n", chart::NAMESPACE], &bind[..]].concat()).await?;
    let fetched = user.flopwatch(&fetch).await?;
    run("kubectl", &["-n", chart::NAMESPACE, "delete", "rolebinding", binding]).await?;
    ensure!(fetched.code == Some(0), "{fetched:?}");
    let timeline = output.join("timeline.h5");
    let recording = flopwatch_trace::timeline_file::read(&timeline, &ReadLimits::default())?.capture;
    let ranges = recording.events.get(&Category::NvtxRange).context("no NVTX ranges")?;
    ensure!(!ranges.is_empty(), "an empty timeline");

    let sessions: Api<ProfilingSession> = namespace.api();
    let before = sessions.get("mine").await?;
    let again = user.flopwatch(&["profile", "trainer", "--name", "mine"]).await?;
    ensure!(again.code == Some(1), "a name that is taken is refused: {again:?}");
    ensure!(sessions.get("mine").await?.metadata.uid == before.metadata.uid);
    namespace.delete().await
}
