//! Installing the chart with the images that the local cluster has, until it is ready to profile.

use super::reach::Reach;
use anyhow::{Context as _, Result, bail};
use clap::Args;
use flopwatch_toolchain::command::{Run, wait_until};
use flopwatch_toolchain::progress::{say, step};
use flopwatch_toolchain::project;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The release, and the namespace that it is in.
const RELEASE: &str = "flopwatch";
const NAMESPACE: &str = "flopwatch-system";
const CHART: &str = "charts/flopwatch";
const VALUES: &str = "charts/local-cluster.yaml";
/// What the local cluster has beside these: a simulated GPU. Nodes of others may have real ones.
const SIMULATED_GPU: &str = "charts/simulated-gpu.yaml";
/// What the release has in the tests of the system, beside these.
const TEST_VALUES: &str = "tests/system/values.yaml";
/// What the fake NVML shows in those tests: one GPU, on which every process of the sample workload
/// computes.
const FAKE_NVML_STATE: &str = "tests/system/fake-nvml.json";
/// The folder of the node (this machine) that those values mount into the agent.
const FAKE_NVML_FOLDER: &str = "/var/lib/flopwatch-rig/fake-nvml";
/// A new leader writes admission's authority into the webhook some seconds after the pods are
/// ready.
const ADMISSION_TIMEOUT: Duration = Duration::from_mins(2);

/// What is installed.
#[derive(Debug, Args)]
pub struct InstallOptions {
    /// Another version of the chart.
    #[arg(long, value_name = "FOLDER")]
    chart: Option<PathBuf>,
    /// As the tests of the system have it: with their values, and this library in the place of
    /// NVML.
    #[arg(long, value_name = "LIBRARY")]
    for_tests: Option<PathBuf>,
    /// More options of `helm upgrade`, which win: -- --set controller.replicas=2
    #[arg(last = true)]
    helm: Vec<String>,
}

impl InstallOptions {
    /// The release as the tests of the system have it, with that library in the place of NVML.
    pub fn of_tests(library: PathBuf) -> Self {
        Self {
            chart: None,
            for_tests: Some(library),
            helm: Vec::new(),
        }
    }
}

/// Installs or upgrades the release, and waits until a pod that opts in is prepared.
pub(super) fn install(reach: &Reach, options: &InstallOptions) -> Result<()> {
    step("namespace", || {
        reach.kubectl().args(["apply", "-f", "-"]).fed(&namespace())
    })?;
    take_back(reach)?;
    if let Some(library) = &options.for_tests {
        place_fake_nvml(library).context("placing the fake NVML")?;
    }
    step("chart", || helm(reach, options)?.quiet())?;
    step("agents", || {
        let agents = ["rollout", "status", "daemonset/flopwatch-agent", "--timeout=120s"];
        reach.kubectl().args(["-n", NAMESPACE]).args(agents).quiet()
    })?;
    step("admission", || {
        let prepares = wait_until(ADMISSION_TIMEOUT, || prepares_pods(reach))?;
        if prepares {
            return Ok(());
        }
        bail!(
            "a pod with the label flopwatch.dev/prepare is created as it was after {ADMISSION_TIMEOUT:?}: kubectl -n {NAMESPACE} logs deployment/flopwatch-admission"
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

/// Takes back what a helm that was killed left unfinished: until then it refuses to change the
/// release.
fn take_back(reach: &Reach) -> Result<()> {
    let status = ["status", RELEASE, "--namespace", NAMESPACE, "--output", "json"];
    // A release that is not there, and a cluster that does not answer, are met again by what
    // follows.
    let Ok(status) = reach.helm().args(status).output() else {
        return Ok(());
    };
    let Some((what, words)) = unfinished(&status)? else {
        return Ok(());
    };
    step(what, || {
        let run = reach.helm().args(words).args(["--namespace", NAMESPACE]);
        run.args(["--wait", "--timeout", "180s"]).quiet()
    })
}

/// What ends a release that is neither there nor not: for people, and the words of helm. None where
/// it is one of the two.
fn unfinished(status: &str) -> Result<Option<(&'static str, [&'static str; 2])>> {
    let status: Value = serde_json::from_str(status).context("helm's status of the release")?;
    Ok(match status.pointer("/info/status").and_then(Value::as_str) {
        // There is no earlier revision.
        Some("pending-install") => Some(("removing an unfinished installation", ["uninstall", RELEASE])),
        Some("pending-upgrade" | "pending-rollback") => {
            Some(("rolling an unfinished upgrade back", ["rollback", RELEASE]))
        }
        _ => None,
    })
}

/// Puts the fake NVML library and the state that it shows where the agent finds them.
fn place_fake_nvml(library: &Path) -> Result<()> {
    let folder = Path::new(FAKE_NVML_FOLDER);
    fs::create_dir_all(folder)?;
    fs::copy(project::root()?.join(FAKE_NVML_STATE), folder.join("nvml.json"))?;
    // A library that a running agent has mapped must not be written to, so it is replaced.
    let fresh = folder.join("library.new");
    fs::copy(library, &fresh)?;
    Ok(fs::rename(fresh, folder.join("libflopwatch_fake_nvml.so"))?)
}

fn helm(reach: &Reach, options: &InstallOptions) -> Result<Run> {
    let root = project::root()?;
    let chart = options.chart.clone().unwrap_or_else(|| root.join(CHART));
    let run = reach.helm().args(["upgrade", "--install", RELEASE]).arg(chart);
    let run = run.args(["--namespace", NAMESPACE, "--wait", "--timeout", "180s"]);
    let run = value_files(reach.local, options)
        .into_iter()
        .fold(run, |run, file| run.arg("--values").arg(root.join(file)));
    Ok(run.args(&options.helm))
}

/// The files of values, of which a later one wins.
fn value_files(local: bool, options: &InstallOptions) -> Vec<&'static str> {
    let of_tests = options.for_tests.is_some().then_some(TEST_VALUES);
    values(local).iter().copied().chain(of_tests).collect()
}

/// The values for the local cluster, or for another's.
const fn values(local: bool) -> &'static [&'static str] {
    if local { &[VALUES, SIMULATED_GPU] } else { &[VALUES] }
}

/// Whether the API server reaches admission and trusts it: until then pods are created as they are
/// (`failurePolicy: Ignore`).
fn prepares_pods(reach: &Reach) -> Result<bool> {
    let pod = project::root()?.join("examples/trainer.yaml");
    let probe = ["-n", "default", "create", "--dry-run=server", "-o", "yaml", "-f"];
    let answer = reach.kubectl().args(probe).arg(pod).output();
    // An API server that is busy is asked again.
    Ok(answer.is_ok_and(|pod| pod.contains("flopwatch.dev/prepared-for:")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::Image;

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
    fn a_release_that_a_killed_helm_left_unfinished_is_taken_back_and_no_other() {
        let words = |status: &str| {
            let told = format!(r#"{{"name": "flopwatch", "info": {{"status": "{status}"}}, "version": 2}}"#);
            unfinished(&told).unwrap().map(|(_, [word, _])| word)
        };
        assert_eq!(words("pending-install"), Some("uninstall"));
        assert_eq!(words("pending-upgrade"), Some("rollback"));
        assert_eq!(words("pending-rollback"), Some("rollback"));
        assert_eq!(words("deployed"), None);
        assert_eq!(words("failed"), None);
        assert!(unfinished("Error: release: not found").is_err());
    }

    #[test]
    fn what_the_caller_gives_comes_after_our_values_and_so_wins() {
        let reach = Reach {
            kubeconfig: "/k".to_owned(),
            programs: Vec::new(),
            recipes: None,
            local: false,
        };
        let options = InstallOptions {
            chart: None,
            for_tests: None,
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

    #[test]
    fn the_tests_of_the_system_have_their_values_and_a_folder_of_the_node_that_these_mount() {
        let root = project::root().unwrap();
        let text = fs::read_to_string(root.join(TEST_VALUES)).unwrap();
        assert!(text.contains(&format!("path: {FAKE_NVML_FOLDER},")), "{text}");
        assert!(root.join(FAKE_NVML_STATE).is_file());
        let options = InstallOptions::of_tests("/t/libfake.so".into());
        assert_eq!(value_files(true, &options), [VALUES, SIMULATED_GPU, TEST_VALUES]);
    }

    #[test]
    fn drivers_that_no_gpu_has_proven_are_opened_in_the_local_cluster_alone() {
        let opens = |file: &str| {
            let values = fs::read_to_string(project::root().unwrap().join(file)).unwrap();
            values.contains("allowUnprovenCuda: true")
        };
        assert!(values(true).iter().any(|file| opens(file)));
        assert!(!values(false).iter().any(|file| opens(file)));
        assert!(!opens("charts/flopwatch/values.yaml"));
    }
}
