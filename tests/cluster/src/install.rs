//! Installing the chart with the images that the local cluster has, until it is ready to profile.

use super::reach::Reach;
use anyhow::{Result, bail};
use clap::Args;
use flopwatch_toolchain::command::{Run, wait_until};
use flopwatch_toolchain::progress::{say, step};
use flopwatch_toolchain::project;
use std::path::PathBuf;
use std::time::Duration;

/// The release, and the namespace that it is in.
const RELEASE: &str = "flopwatch";
const NAMESPACE: &str = "flopwatch-system";
const CHART: &str = "charts/flopwatch";
const VALUES: &str = "charts/local-cluster.yaml";
/// A new leader writes admission's authority into the webhook some seconds after the pods are ready.
const ADMISSION: Duration = Duration::from_mins(2);

/// What is installed.
#[derive(Debug, Args)]
pub struct InstallOptions {
    /// Another version of the chart.
    #[arg(long, value_name = "FOLDER")]
    chart: Option<PathBuf>,
    /// More options of `helm upgrade`, which win: -- --set controller.replicas=2
    #[arg(last = true)]
    helm: Vec<String>,
}

/// Installs or upgrades the release, and waits until a pod that opts in is prepared.
pub(super) fn install(reach: &Reach, options: &InstallOptions) -> Result<()> {
    step("namespace", || {
        reach.kubectl().args(["apply", "-f", "-"]).fed(&namespace())
    })?;
    step("chart", || helm(reach, options)?.quiet())?;
    step("agents", || {
        let agents = ["rollout", "status", "daemonset/flopwatch-agent", "--timeout=120s"];
        reach.kubectl().args(["-n", NAMESPACE]).args(agents).quiet()
    })?;
    step("admission", || {
        let prepares = wait_until(ADMISSION, || prepares_pods(reach))?;
        if prepares {
            return Ok(());
        }
        bail!(
            "a pod with the label flopwatch.dev/prepare is created as it was after {ADMISSION:?}: kubectl -n {NAMESPACE} logs deployment/flopwatch-admission"
        )
    })?;
    say(format_args!(
        "Flopwatch runs in namespace {NAMESPACE}; a first session: eval \"$(cargo xtask cluster env)\", then \"A first session\" in README.md"
    ));
    Ok(())
}

/// The agents need the level "privileged"; nothing else does.
fn namespace() -> String {
    format!(
        "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {NAMESPACE}\n  labels: {{ pod-security.kubernetes.io/enforce: privileged }}\n"
    )
}

fn helm(reach: &Reach, options: &InstallOptions) -> Result<Run> {
    let root = project::root()?;
    let chart = options.chart.clone().unwrap_or_else(|| root.join(CHART));
    let run = reach.helm().args(["upgrade", "--install", RELEASE]).arg(chart);
    Ok(run
        .args(["--namespace", NAMESPACE, "--wait", "--timeout", "180s", "--values"])
        .arg(root.join(VALUES))
        .args(&options.helm))
}

/// Whether the API server reaches admission and trusts it: until then pods are created as they are (`failurePolicy: Ignore`).
fn prepares_pods(reach: &Reach) -> Result<bool> {
    let pod = project::root()?.join("examples/trainer.yaml");
    let probe = ["-n", "default", "create", "--dry-run=server", "-o", "yaml", "-f"];
    let answer = reach.kubectl().args(probe).arg(pod).output();
    // An API server that is busy is asked again.
    Ok(answer.is_ok_and(|pod| pod.contains("flopwatch.dev/prepared:")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::Image;
    use std::fs;

    #[test]
    fn the_values_name_the_images_that_the_cluster_imports() {
        let values = fs::read_to_string(project::root().unwrap().join(VALUES)).unwrap();
        for (part, image) in [
            ("operator", Image::Operator),
            ("agent", Image::Agent),
            ("tools", Image::Nsys),
        ] {
            let reference = image.reference();
            let (repository, tag) = reference.rsplit_once(':').unwrap();
            let line = format!("  {part}: {{ repository: {repository}, tag: {tag} }}");
            assert!(values.lines().any(|found| found == line), "{line}");
        }
        let pod = fs::read_to_string(project::root().unwrap().join("examples/trainer.yaml")).unwrap();
        assert!(pod.contains(&Image::Workload.reference()), "{pod}");
    }

    #[test]
    fn what_the_caller_gives_comes_after_our_values_and_so_wins() {
        let reach = Reach {
            kubeconfig: "/k".to_owned(),
            programs: Vec::new(),
            recipes: None,
            local: true,
        };
        let options = InstallOptions {
            chart: None,
            helm: vec!["--set".to_owned(), "gateway.enabled=false".to_owned()],
        };
        let message = helm(&reach, &options).unwrap().describe();
        let (ours, theirs) = message.split_once("local-cluster.yaml ").unwrap();
        assert!(
            ours.contains("charts/flopwatch --namespace flopwatch-system --wait"),
            "{message}"
        );
        assert_eq!(theirs, "--set gateway.enabled=false");
    }
}
