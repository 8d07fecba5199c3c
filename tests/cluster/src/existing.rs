//! The cluster that KUBECONFIG names, used as it is.

use super::reach::{self, Reach};
use super::{ClusterCommand, install};
use anyhow::{Context as _, Result, bail};
use flopwatch_toolchain::cache::Cache;
use flopwatch_toolchain::command::find_program;
use flopwatch_toolchain::golang::{HELM, KUBERNETES};
use flopwatch_toolchain::progress::say;
use flopwatch_toolchain::project;
use std::time::Duration;

/// The way to it; kubectl and helm are built where the machine has none.
pub(crate) fn reach(cache: &Cache) -> Result<Reach> {
    let kubeconfig = std::env::var("KUBECONFIG").ok().filter(|path| !path.is_empty());
    let kubeconfig = kubeconfig.context("--use-kubeconfig was given, but KUBECONFIG is not set")?;
    let mut programs = Vec::new();
    for (name, module) in [("kubectl", &KUBERNETES), ("helm", &HELM)] {
        if find_program(name).is_none() {
            programs.push(module.build(cache)?);
        }
    }
    Ok(Reach {
        kubeconfig,
        programs,
        recipes: Some(project::own_program()?),
        local: false,
    })
}

/// The recipes that make sense there.
pub(crate) fn run(cache: &Cache, command: &ClusterCommand) -> Result<()> {
    match command {
        ClusterCommand::Up(_) | ClusterCommand::Status => {
            let reach = reach(cache)?;
            let nodes = reach
                .kubectl()
                .args(["get", "nodes", "-o", "wide"])
                .deadline(Duration::from_secs(30))
                .output();
            let nodes = nodes.with_context(|| format!("the cluster of {} does not answer", reach.kubeconfig))?;
            say(format_args!(
                "the cluster of KUBECONFIG answers; nothing is started\n{}",
                nodes.trim_end()
            ));
            say("its nodes pull images from a registry: push them there and name them in the chart's values");
            Ok(())
        }
        ClusterCommand::Down => {
            say("the cluster of KUBECONFIG is not ours to stop");
            Ok(())
        }
        ClusterCommand::Env => {
            reach::print(&reach(cache)?);
            Ok(())
        }
        ClusterCommand::Install(options) => {
            say(
                "its nodes must have the images of charts/local-cluster.yaml, or name others: -- --set images.agent.repository=...",
            );
            install::install(&reach(cache)?, options)
        }
        ClusterCommand::Images(options) => super::up::images(cache, &options.chosen()).map(drop),
        ClusterCommand::RestartApi => bail!("the API server of KUBECONFIG is not ours to end"),
        ClusterCommand::Node { .. } => bail!("the nodes of the cluster of KUBECONFIG are not ours to lose"),
        ClusterCommand::Load(_) => {
            bail!(
                "images cannot be imported into the cluster of KUBECONFIG: push them to a registry that its nodes reach"
            )
        }
    }
}
