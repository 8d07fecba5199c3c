//! How soon pods are ready: unprepared, and prepared for Nsight Systems and for the CUDA tracer,
//! with what they need mounted and copied.

use anyhow::{Result, ensure};
use flopwatch_api::preparation::{CUDA_BYTES_ANNOTATION, PREPARED_FOR_ANNOTATION};
use flopwatch_system_tests::cluster::{Group, TestNamespace, eventually_each};
use flopwatch_system_tests::pods::{is_ready, labelled, workload};
use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::figures::{Figures, seconds};
use super::{ALONE, POLL_INTERVAL, now_ms, rounds};

/// A pod of the sample workload.
struct Kind {
    name: &'static str,
    /// What it is prepared for.
    word: Option<&'static str>,
    /// Whether admission is made to copy where the cluster mounts images.
    is_copied: bool,
}

/// What is told of, by turns and in this order.
const KINDS: [Kind; 5] = [
    Kind::new("unprepared", None, false),
    Kind::new("nsys-mounted", Some("nsys"), false),
    Kind::new("nsys-copied", Some("nsys"), true),
    Kind::new("cuda-mounted", Some("cuda"), false),
    Kind::new("cuda-copied", Some("cuda"), true),
];

#[tokio::test]
async fn prepared_pods_and_unprepared_ones_become_ready() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "ready").await? else {
        return Ok(());
    };
    let _alone = ALONE.lock().await;
    namespace.prepares_pods().await?;
    let mut all: [Vec<u64>; KINDS.len()] = Default::default();
    for round in 0..rounds()? {
        for (kind, times) in KINDS.iter().zip(&mut all) {
            let mut pod = kind.pod(round);
            if kind.is_copied {
                pod = namespace.copied(pod).await?;
            }
            times.extend(ready_after(&namespace, kind, pod).await?);
        }
    }
    tell(&all);
    namespace.delete().await
}

impl Kind {
    const fn new(name: &'static str, word: Option<&'static str>, is_copied: bool) -> Self {
        Self { name, word, is_copied }
    }

    fn pod(&self, round: usize) -> Value {
        let mut pod = workload(&format!("{}-{round}", self.name), false, &[]);
        if let Some(word) = self.word {
            pod = labelled(pod, word);
        }
        // A file of the usual size asks for more memory than the pod has.
        pod["metadata"]["annotations"] = json!({ CUDA_BYTES_ANNOTATION: "8Mi" });
        pod
    }
}

/// Creates a pod, and gives the time in ms until its condition said that it is ready; none where
/// admission copied what was to be mounted. The pod is gone then.
async fn ready_after(namespace: &TestNamespace, kind: &Kind, pod: Value) -> Result<Option<u64>> {
    let begin = now_ms()?;
    let made = namespace.create_pod(pod).await?;
    let name = made.name_any();
    let ready = ready(namespace, &name).await?.saturating_sub(begin);
    let is_prepared = made.annotations().contains_key(PREPARED_FOR_ANNOTATION);
    ensure!(is_prepared == kind.word.is_some(), "{name}: {:?}", made.annotations());
    let init = made.spec.and_then(|spec| spec.init_containers).unwrap_or_default();
    let is_copied = !init.is_empty();
    ensure!(is_copied || !kind.is_copied, "{name}: nothing was copied");
    namespace.delete_pod(&name, 0).await?;
    namespace.pod_gone(&name).await?;
    Ok((is_copied == kind.is_copied).then_some(ready))
}

/// When the pod was seen to be ready, in Unix ms. Its conditions have whole seconds.
async fn ready(namespace: &TestNamespace, name: &str) -> Result<u64> {
    eventually_each(POLL_INTERVAL, &format!("pod {name} to be ready"), || async {
        Ok(is_ready(&namespace.api().get(name).await?).then_some(()))
    })
    .await?;
    now_ms()
}

/// A table of seconds: least, median and most of each kind, and what its median has more than that
/// of an unprepared pod.
#[expect(clippy::print_stdout, reason = "the recipe shows the table")]
fn tell(all: &[Vec<u64>; KINDS.len()]) {
    let unprepared = Figures::of(all[0].clone()).median;
    println!("stages: least, median, most in seconds until a pod is ready; more than unprepared");
    for (kind, times) in KINDS.iter().zip(all) {
        let name = kind.name;
        if times.is_empty() {
            println!("stages: {name}: no figures, since this cluster mounts no images: it copied");
            continue;
        }
        let figures = Figures::of(times.clone());
        let (median, sign) = match figures.median.checked_sub(unprepared) {
            Some(more) => (more, ""),
            None => (unprepared - figures.median, "-"),
        };
        println!("stages: {name}: {figures}; {sign}{}", seconds(median));
    }
}
