//! Pods that run real PyTorch and real JAX: the toolchain's Pythons, mounted from the node.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

use crate::cluster::TestNamespace;
use crate::pods::{labelled, workload};
use crate::workload::field;

/// What the pod runs: a loop of PyTorch and of JAX in each process.
const PROGRAM: &str = include_str!("../programs/frameworks.py");
/// Port of the first process's profiler service; each further one has the next.
pub const JAX_PORT: u16 = 9517;

/// What a pod loads, as it lies on this machine.
struct Pythons {
    /// Python's own folder.
    home: PathBuf,
    /// Packages with PyTorch.
    torch: PathBuf,
    /// Packages with JAX.
    jax: PathBuf,
}

impl Pythons {
    /// The Pythons that the tests' environment names.
    fn of_environment() -> Result<Self> {
        let torch = environment_of("FLOPWATCH_TORCH")?;
        let jax = environment_of("FLOPWATCH_PYTHON")?;
        let written = std::fs::read_to_string(torch.join("pyvenv.cfg"))?;
        let home = written
            .lines()
            .find_map(|line| line.strip_prefix("home = "))
            .context("pyvenv.cfg names no home")?;
        let home = Path::new(home).parent().context("Python has no folder")?;
        Ok(Self {
            home: home.to_owned(),
            torch: packages(&torch)?,
            jax: packages(&jax)?,
        })
    }
}

/// The virtual environment whose Python a variable names.
fn environment_of(variable: &str) -> Result<PathBuf> {
    let python = std::env::var_os(variable).with_context(|| format!("{variable} is not set"))?;
    let folder = Path::new(&python).parent().and_then(Path::parent);
    folder.map(Path::to_owned).context("the Python lies in no environment")
}

/// The folder of a virtual environment's packages.
fn packages(environment: &Path) -> Result<PathBuf> {
    let versions = std::fs::read_dir(environment.join("lib"))?.flatten();
    let mut found = versions.map(|entry| entry.path().join("site-packages"));
    found.find(|path| path.is_dir()).context("no packages")
}

/// A pod of that many processes, each with a loop of PyTorch and JAX; `prepare` is the value of the
/// label.
///
/// # Errors
/// When the toolchain's Pythons are not there.
pub fn frameworks(name: &str, prepare: &str, processes: u16) -> Result<Value> {
    let pythons = Pythons::of_environment()?;
    let mut pod = labelled(workload(name, false, &[]), prepare);
    // PyTorch without a GPU has operators and no CUDA; its system calls are what nsys sees of it.
    pod["metadata"]["annotations"] = json!({ "flopwatch.dev/nsys-trace": "nvtx,osrt" });
    let folders = [
        ("python", "/python", pythons.home),
        ("torch", "/torch", pythons.torch),
        ("jax", "/jax", pythons.jax),
        ("libraries", "/libraries", PathBuf::from("/usr/lib/x86_64-linux-gnu")),
    ];
    let mut volumes = vec![json!({ "name": "tmp", "emptyDir": {} })];
    let mut mounts = vec![json!({ "name": "tmp", "mountPath": "/tmp" })];
    for (name, at, path) in folders {
        volumes.push(json!({ "name": name, "hostPath": { "path": path, "type": "Directory" } }));
        mounts.push(json!({ "name": name, "mountPath": at, "readOnly": true }));
    }
    pod["spec"]["volumes"] = json!(volumes);
    let container = &mut pod["spec"]["containers"][0];
    container["volumeMounts"] = json!(mounts);
    container["command"] = json!(["/python/bin/python3", "-c", PROGRAM]);
    container["args"] = json!([processes.to_string(), JAX_PORT.to_string()]);
    container["env"] = json!([
        { "name": "PYTHONHOME", "value": "/python" },
        { "name": "PYTHONPATH", "value": "/torch:/jax" },
        { "name": "LD_LIBRARY_PATH", "value": "/python/lib:/libraries" },
        { "name": "HOME", "value": "/tmp" },
        { "name": "OMP_NUM_THREADS", "value": "1" },
    ]);
    container["resources"] = json!({ "requests": { "cpu": "100m", "memory": "256Mi" }, "limits": { "memory": "6Gi" } });
    Ok(pod)
}

/// The longest step of any process by what the program printed, from the line with that time on.
///
/// # Errors
/// When no line tells of a step.
pub fn longest_step_micros(log: &str, from_unix_ns: u64) -> Result<u64> {
    let lines = log
        .lines()
        .filter_map(|line| Some((field(line, "t")?, field(line, "longest")?)));
    let steps = lines.filter(|(time, _)| *time >= from_unix_ns);
    let longest = steps.map(|(_, longest)| longest).max();
    longest.context("no steps")
}

impl TestNamespace {
    /// Lets pods of the namespace mount folders of the node, as an administrator would.
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn allow_host_folders(&self) -> Result<()> {
        let level = json!({ "metadata": { "labels": { "pod-security.kubernetes.io/enforce": "privileged" } } });
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let changed = namespaces
            .patch(&self.name, &PatchParams::default(), &Patch::Merge(level))
            .await?;
        ensure!(changed.metadata.labels.is_some(), "the namespace lost its labels");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_step_is_that_of_the_lines_from_a_time_on() -> Result<()> {
        let log =
            "pid=1 t=5 ranges=1 longest=900\npid=1 t=9 ranges=2 longest=30\nother\npid=2 t=10 ranges=2 longest=40\n";
        assert_eq!(longest_step_micros(log, 6)?, 40);
        assert_eq!(longest_step_micros(log, 0)?, 900);
        assert!(longest_step_micros(log, 11).is_err());
        Ok(())
    }
}
