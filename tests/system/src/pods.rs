//! Pods of the tests, and looking into them.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use flopwatch_api::preparation::{PREPARE_LABEL, PREPARED_ANNOTATION};
use flopwatch_api::session::ProfilingSession;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use k8s_openapi::api::node::v1::RuntimeClass;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, LogParams, PostParams};
use serde_json::{Value, json};

use crate::cluster::{STATE_TIMEOUT, TestNamespace, dry_run, eventually};
use crate::node;
use crate::workload::counts;

/// Where the launcher writes its state, from the container's root.
const LAUNCH_STATE: &str = "flopwatch/run/state";
/// What kubectl says of an API server that does not answer.
const UNREACHABLE: &str = "Unable to connect to the server";

/// A sample workload that Pod Security "restricted" admits: no user of its own, no capability,
/// read-only root.
pub fn workload(name: &str, prepared: bool, arguments: &[&str]) -> Value {
    let mut labels = json!({ "app": name });
    if prepared {
        labels["flopwatch.dev/prepare"] = json!("nsys");
    }
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "labels": labels },
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 10,
            "securityContext": {
                "runAsNonRoot": true, "runAsUser": 1234, "runAsGroup": 1234, "seccompProfile": { "type": "RuntimeDefault" }
            },
            "containers": [{
                "name": "main",
                "image": "localhost/flopwatch/workload:dev",
                "imagePullPolicy": "Never",
                "command": ["/usr/local/bin/flopwatch-sample-workload"],
                "args": arguments,
                "env": [{ "name": "WORKLOADS_OWN", "value": "kept" }],
                "securityContext": {
                    "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": { "drop": ["ALL"] }
                },
                "resources": { "requests": { "cpu": "50m", "memory": "32Mi" }, "limits": { "memory": "256Mi" } }
            }]
        }
    })
}

/// A prepared workload with ranges of 2 ms.
pub fn sample(name: &str) -> Value {
    workload(name, true, &["--range-micros", "2000"])
}

/// A workload with ranges of 2 ms, prepared for these words.
pub fn prepared_for(name: &str, words: &str) -> Value {
    labelled(workload(name, false, &["--range-micros", "2000"]), words)
}

/// A pod that asks to be prepared for these words.
#[must_use]
pub fn labelled(mut pod: Value, words: &str) -> Value {
    pod["metadata"]["labels"][PREPARE_LABEL] = json!(words);
    pod
}

/// A pod of the workload's image whose program is a script of a shell.
pub fn shell(name: &str, prepared: bool, script: &str) -> Value {
    let mut pod = workload(name, prepared, &[script]);
    pod["spec"]["containers"][0]["command"] = json!(["/bin/sh", "-c"]);
    pod
}

/// A pod whose container is started anew whenever it ends.
#[must_use]
pub fn restarting(mut pod: Value) -> Value {
    pod["spec"]["restartPolicy"] = json!("Always");
    pod
}

/// The same as a template of a session's own pod, which admission is to prepare.
pub fn template(arguments: &[&str]) -> Value {
    let pod = workload("trainer", false, arguments);
    json!({ "metadata": { "labels": { "app": "trainer" } }, "spec": pod["spec"] })
}

/// Has the test double of Nsight Compute start a pod's program in the place of the real one, which
/// makes no report without a GPU (`tests/rig/ncu-double`).
pub fn with_ncu_double(mut pod: Value) -> Value {
    pod["spec"]["containers"][0]["env"] = json!([{ "name": "FLOPWATCH_NCU_DOUBLE", "value": "1" }]);
    pod
}

/// Whether the pod's condition says that it is ready.
pub fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    let mut all = conditions.into_iter().flatten();
    all.any(|one| one.type_ == "Ready" && one.status == "True")
}

/// Status of a pod's first container; none before the kubelet has told it.
pub fn first_status(pod: &Pod) -> Option<&ContainerStatus> {
    pod.status.as_ref()?.container_statuses.as_ref()?.first()
}

/// How often the containers of a pod were started anew.
pub fn restarts(pod: &Pod) -> i32 {
    let statuses = pod
        .status
        .as_ref()
        .and_then(|status| status.container_statuses.as_ref());
    statuses.into_iter().flatten().map(|one| one.restart_count).sum()
}

impl TestNamespace {
    /// Creates a pod and returns it as admission left it.
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn create_pod(&self, manifest: Value) -> Result<Pod> {
        let pod: Pod = serde_json::from_value(manifest)?;
        Ok(self.api::<Pod>().create(&PostParams::default(), &pod).await?)
    }

    /// Creates a pod on the node that tests do not lose, and returns it as admission left it.
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn create_kept(&self, manifest: Value) -> Result<Pod> {
        self.create_pod(self.on_kept_node(manifest).await?).await
    }

    /// Creates a pod and waits until it runs.
    ///
    /// # Errors
    /// When the API server refuses it, or it does not run in time.
    pub async fn run(&self, manifest: Value) -> Result<Pod> {
        let name = self.create_pod(manifest).await?.name_any();
        self.running(&name).await
    }

    /// Creates a prepared pod and waits until its launcher has decided, whatever that is
    /// ([`Self::launch_state`]).
    ///
    /// # Errors
    /// When the API server refuses it, or the launcher wrote nothing in time.
    pub async fn launch(&self, manifest: Value) -> Result<Value> {
        let name = self.create_pod(manifest).await?.name_any();
        self.launch_state(&name).await
    }

    /// Creates a prepared pod and waits until its start was grafted. Gives what its launcher says.
    ///
    /// # Errors
    /// When the API server refuses it, or it starts plainly.
    pub async fn graft(&self, manifest: Value) -> Result<Value> {
        let name = self.create_pod(manifest).await?.name_any();
        self.grafted(&name).await
    }

    /// Waits until the start of a prepared pod was grafted, and gives what its launcher says.
    ///
    /// # Errors
    /// When it started plainly.
    pub async fn grafted(&self, name: &str) -> Result<Value> {
        let state = self.launch_state(name).await?;
        ensure!(state["grafted"] == true, "the start of {name} was not grafted: {state}");
        Ok(state)
    }

    /// Has admission copy the tools into a pod also where the cluster mounts images: the pod's
    /// runtime has a class of its own by name, and is the usual one. The class stays, as other
    /// tests use it.
    ///
    /// # Errors
    /// When the API server does not take the class.
    pub async fn copied(&self, mut pod: Value) -> Result<Value> {
        const CLASS: &str = "flopwatch-test-copied";
        let class = json!({ "metadata": { "name": CLASS }, "handler": "runc" });
        let class: RuntimeClass = serde_json::from_value(class)?;
        let classes: Api<RuntimeClass> = Api::all(self.client.clone());
        match classes.create(&PostParams::default(), &class).await {
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            made => drop(made?),
        }
        pod["spec"]["runtimeClassName"] = json!(CLASS);
        Ok(pod)
    }

    /// What the API server would make of a pod, admission heard.
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn admitted(&self, manifest: Value) -> Result<Pod> {
        let pod: Pod = serde_json::from_value(manifest)?;
        Ok(self.api::<Pod>().create(&dry_run(), &pod).await?)
    }

    /// Deletes a pod, with so many seconds for its end.
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn delete_pod(&self, name: &str, seconds: u32) -> Result<()> {
        let parameters = DeleteParams::default().grace_period(seconds);
        self.api::<Pod>().delete(name, &parameters).await?;
        Ok(())
    }

    /// Waits until a pod's first container has printed this.
    ///
    /// # Errors
    /// When it does not in time.
    pub async fn says(&self, pod: &str, text: &str) -> Result<()> {
        eventually(&format!("pod {pod} to say {text}"), || async {
            Ok(self.logs(pod).await?.contains(text).then_some(()))
        })
        .await
    }

    /// Waits until admission prepares pods. After a node was missed it has no endpoint for some
    /// seconds, and pods that are created then start as they are.
    ///
    /// # Errors
    /// When it does not in time.
    pub async fn prepares_pods(&self) -> Result<()> {
        eventually("admission to prepare pods", || async {
            let made = self.admitted(workload("asked", true, &[])).await?;
            Ok(made.annotations().contains_key(PREPARED_ANNOTATION).then_some(()))
        })
        .await
    }

    /// Waits until the pod's containers run.
    ///
    /// # Errors
    /// When they do not in time.
    pub async fn running(&self, name: &str) -> Result<Pod> {
        eventually(&format!("pod {name} to run"), || async {
            let pod = self.api::<Pod>().get(name).await?;
            let running = pod
                .status
                .as_ref()
                .and_then(|status| status.container_statuses.as_ref())
                .is_some_and(|all| {
                    all.iter()
                        .all(|one| one.state.as_ref().is_some_and(|state| state.running.is_some()))
                });
            Ok(running.then_some(pod))
        })
        .await
    }

    /// Waits until the sample workload in a pod has run for that long, by its own lines.
    ///
    /// # Errors
    /// When it does not in time.
    pub async fn has_run(&self, pod: &str, length: Duration) -> Result<()> {
        eventually(&format!("pod {pod} to have run for {length:?}"), || async {
            let log = self.logs(pod).await?;
            let ran = counts(&log).into_values().filter_map(|lines| {
                let (first, last) = lines.first().zip(lines.last())?;
                Some(Duration::from_nanos(last.unix_ns.saturating_sub(first.unix_ns)))
            });
            Ok(ran.max().is_some_and(|ran| ran >= length).then_some(()))
        })
        .await
    }

    /// The pod that a session made for itself, once it is there.
    ///
    /// # Errors
    /// When it is not made in time.
    pub async fn own_pod(&self, session: &str) -> Result<Pod> {
        eventually(&format!("the own pod of {session}"), || async {
            let session = self.api::<ProfilingSession>().get(session).await?;
            let Some(name) = session.status.and_then(|status| status.pod_name) else {
                return Ok(None);
            };
            Ok(self.api::<Pod>().get_opt(&name).await?)
        })
        .await
    }

    /// Waits until a pod is there no more.
    ///
    /// # Errors
    /// When it does not go in time.
    pub async fn pod_gone(&self, name: &str) -> Result<()> {
        eventually(&format!("pod {name} to be gone"), || async {
            Ok(self.api::<Pod>().get_opt(name).await?.is_none().then_some(()))
        })
        .await
    }

    /// Waits until the pod ended and returns the exit code of its first container.
    ///
    /// # Errors
    /// When it does not end in time.
    pub async fn exit_code(&self, name: &str) -> Result<i32> {
        eventually(&format!("pod {name} to end"), || async {
            let pod = self.api::<Pod>().get(name).await?;
            let state = first_status(&pod).and_then(|one| one.state.as_ref());
            let ended = state.and_then(|state| state.terminated.as_ref());
            Ok(ended.map(|ended| ended.exit_code))
        })
        .await
    }

    /// What the pod's first container printed so far.
    ///
    /// # Errors
    /// When the kubelet does not answer.
    pub async fn logs(&self, name: &str) -> Result<String> {
        let parameters = LogParams {
            container: Some("main".into()),
            ..LogParams::default()
        };
        self.api::<Pod>().logs(name, &parameters).await.context("reading logs")
    }

    /// Runs a shell command in the pod's container, as `kubectl exec` does.
    ///
    /// # Errors
    /// When the command fails.
    pub async fn shell(&self, name: &str, command: &str) -> Result<String> {
        let until = Instant::now() + STATE_TIMEOUT;
        loop {
            let arguments = ["exec", name, "-c", "main", "--", "/bin/sh", "-c", command];
            match self.kubectl(&arguments).await {
                // Nothing was run: a fault has stopped the API server for a while.
                Err(error) if error.to_string().contains(UNREACHABLE) && Instant::now() < until => {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
                ended => return ended,
            }
        }
    }

    /// Waits until the container of a prepared pod says in its run folder that its start was
    /// grafted, or why not.
    ///
    /// # Errors
    /// When the launcher wrote nothing in time.
    pub async fn launch_state(&self, name: &str) -> Result<Value> {
        let pod = self.running(name).await?;
        eventually(&format!("the launcher's state in pod {name}"), || async {
            // A command in a container takes the API server, the kubelet and the runtime.
            let text = if let Ok(process) = node::first_process(&pod) {
                std::fs::read_to_string(process.root().join(LAUNCH_STATE)).unwrap_or_default()
            } else {
                let command = format!("cat /{LAUNCH_STATE} 2>/dev/null || true");
                self.shell(name, &command).await?
            };
            Ok(serde_json::from_str(&text).ok())
        })
        .await
    }
}

/// Whether two listings of a container differ only in lines that `allowed` accepts; returns the
/// others.
pub fn differences<'a>(before: &'a str, after: &'a str, allowed: impl Fn(&str) -> bool) -> Vec<&'a str> {
    let before: std::collections::BTreeSet<&str> = before.lines().collect();
    let after: std::collections::BTreeSet<&str> = after.lines().collect();
    before
        .symmetric_difference(&after)
        .copied()
        .filter(|line| !allowed(line))
        .collect()
}
