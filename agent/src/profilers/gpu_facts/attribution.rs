//! Which GPUs a container has, and how: by the kubelet's word, and by the processes that NVML shows
//! on them.

use std::collections::BTreeMap;

use flopwatch_api::capture::{CaptureGpu, GpuShare};

use super::DeviceFacts;

/// GPUs of one container that are told of.
const MAX_GPUS: usize = 64;
/// Letters of a name that are told.
const MAX_NAME_CHARS: usize = 128;

/// The GPUs of a container, of the ids that the kubelet `assigned` to it and of those on which its
/// processes were `seen`. Where the kubelet says how a GPU is had, that holds; what it gave to
/// nobody, such as all GPUs of a privileged pod, goes by its processes.
pub(super) fn gpus(assigned: &[String], seen: &[DeviceFacts]) -> Vec<CaptureGpu> {
    let mut found: BTreeMap<String, GpuShare> = BTreeMap::new();
    for id in assigned {
        let (uuid, share) = read(id);
        found
            .entry(
                uuid.chars()
                    .filter(|letter| !letter.is_control())
                    .take(MAX_NAME_CHARS)
                    .collect(),
            )
            .and_modify(|known| *known = (*known).max(share))
            .or_insert(share);
    }
    for device in seen {
        let share = match device {
            DeviceFacts { others: true, .. } => GpuShare::Shared,
            DeviceFacts { partition: true, .. } => GpuShare::MigDevice,
            _ => GpuShare::Container,
        };
        found.entry(device.uuid.clone()).or_insert(share);
    }
    let gpus = found.into_iter().map(|(uuid, share)| CaptureGpu { uuid, share });
    gpus.take(MAX_GPUS).collect()
}

/// Which device an id of a device plugin is of, and how it is had: `GPU-...` and `MIG-...` are
/// UUIDs, `::N` behind one is a replica of a GPU that takes turns or is shared by the Multi-Process
/// Service, and GKE says `nvidia0/gi1` of a partition and `/vgpu2` of a replica.
fn read(id: &str) -> (&str, GpuShare) {
    if let Some((uuid, _)) = id.split_once("::").or_else(|| id.split_once("/vgpu")) {
        return (uuid, GpuShare::Shared);
    }
    if id.starts_with("MIG-") || id.contains("/gi") {
        return (id, GpuShare::MigDevice);
    }
    (id, GpuShare::Container)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(assigned: &[&str], seen: &[DeviceFacts]) -> Vec<(String, GpuShare)> {
        let assigned: Vec<_> = assigned.iter().map(|id| (*id).to_owned()).collect();
        gpus(&assigned, seen)
            .into_iter()
            .map(|gpu| (gpu.uuid, gpu.share))
            .collect()
    }

    fn gpu(uuid: &str, share: GpuShare) -> (String, GpuShare) {
        (uuid.to_owned(), share)
    }

    #[test]
    fn an_id_says_which_gpu_it_is_of_and_how_it_is_had() {
        use GpuShare::{Container, MigDevice, Shared};
        for (id, uuid, share) in [
            ("GPU-1", "GPU-1", Container),
            ("MIG-2", "MIG-2", MigDevice),
            ("GPU-1::7", "GPU-1", Shared),
            ("MIG-2::0", "MIG-2", Shared),
            ("nvidia0", "nvidia0", Container),
            ("nvidia0/gi3", "nvidia0/gi3", MigDevice),
            ("nvidia0/gi3/vgpu1", "nvidia0/gi3", Shared),
            ("nvidia0/vgpu1", "nvidia0", Shared),
        ] {
            assert_eq!(of(&[id], &[]), [gpu(uuid, share)], "{id}");
        }
        assert_eq!(
            of(&["GPU-1::0", "GPU-1::1"], &[]),
            [gpu("GPU-1", Shared)],
            "two replicas of one"
        );
    }

    #[test]
    fn the_kubelets_word_goes_before_the_processes_and_they_tell_the_rest() {
        let seen = |uuid: &str, partition, others| DeviceFacts {
            uuid: uuid.to_owned(),
            partition,
            others,
            ..DeviceFacts::default()
        };
        let all = [
            seen("GPU-1", false, true),
            seen("GPU-2", false, false),
            seen("MIG-3", true, false),
            seen("GPU-4", false, true),
        ];
        let expected = [
            gpu("GPU-1", GpuShare::Container),
            gpu("GPU-2", GpuShare::Container),
            gpu("GPU-4", GpuShare::Shared),
            gpu("MIG-3", GpuShare::MigDevice),
        ];
        assert_eq!(of(&["GPU-1"], &all), expected);
        assert_eq!(of(&[], &[]), []);
    }

    #[test]
    fn a_kubelet_that_tells_of_too_many_fills_no_status() {
        let ids: Vec<_> = (0..1000).map(|at| format!("GPU-{at}\n{}", "x".repeat(1000))).collect();
        let told = gpus(&ids, &[]);
        assert_eq!(told.len(), MAX_GPUS);
        assert!(
            told.iter()
                .all(|gpu| gpu.uuid.len() <= MAX_NAME_CHARS && !gpu.uuid.contains('\n'))
        );
    }
}
