//! A volume in memory for the file of a library that a container's programs load.
//!
//! The file is read from outside: nobody but the kernel may answer for it.

use std::ops::RangeInclusive;

use k8s_openapi::api::core::v1::{Container, Pod, Volume};
use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::candidates;
use crate::admission::quantity;
use crate::admission::refusal::Refusal;

/// Medium of the volume.
const MEMORY: &str = "Memory";
/// Bytes of the volume beside the file.
const OVERHEAD_BYTES: u64 = 1 << 20;
/// Bytes that a container's memory limit has at least for each byte of the file, which counts
/// towards that limit.
const MIN_LIMIT_BYTES_PER_FILE_BYTE: u128 = 8;

/// The volume of one container.
#[derive(Debug)]
pub(super) struct MemoryVolume {
    name: String,
    folder: &'static str,
}

impl MemoryVolume {
    /// The volume of the `index`-th container, which sees it as `folder`.
    pub(super) fn of(prefix: &str, index: usize, folder: &'static str) -> Self {
        Self {
            name: format!("{prefix}{index}"),
            folder,
        }
    }

    /// Whether an earlier review added it to the pod and the container.
    pub(super) fn is_there(&self, pod: &Pod, container: &Container) -> Result<bool, Refusal> {
        let mut volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
        let Some(volume) = volumes.find(|volume| volume.name == self.name) else {
            return Ok(false);
        };
        let mut mounts = container.volume_mounts.iter().flatten();
        let is_mounted = mounts.any(|mount| mount.name == self.name && mount.mount_path == self.folder);
        if !is_mounted || !is_in_memory(volume) {
            return Err(Refusal::NameTaken(self.name.clone()));
        }
        match self.covered(container) {
            None => Ok(true),
            Some(path) => Err(Refusal::PathTaken(path.to_owned())),
        }
    }

    /// Where something else is mounted in the folder or around it.
    fn covered<'a>(&self, container: &'a Container) -> Option<&'a str> {
        let mounts = container.volume_mounts.iter().flatten();
        let mut paths = mounts.map(|mount| mount.mount_path.as_str());
        paths.find(|path| {
            let path = path.trim_end_matches('/');
            let below = path.strip_prefix(self.folder);
            path == "/flopwatch" || below.is_some_and(|below| below.starts_with('/'))
        })
    }

    /// The volume and its mount for a file of so many bytes, as JSON of the pod's specification and
    /// of the container.
    pub(super) fn added(&self, bytes: u64) -> (Value, Value) {
        let (name, folder) = (&self.name, self.folder);
        let limit = bytes.saturating_add(OVERHEAD_BYTES).to_string();
        let volume = json!({"name": name, "emptyDir": {"medium": MEMORY, "sizeLimit": limit}});
        (volume, json!({"name": name, "mountPath": folder}))
    }
}

/// Whether a volume is an `emptyDir` in memory.
fn is_in_memory(volume: &Volume) -> bool {
    let folder = volume.empty_dir.as_ref();
    folder.is_some_and(|folder| folder.medium.as_deref() == Some(MEMORY))
}

/// The size of a file that an annotation of the pod asks for, or `default` where there is none; the
/// annotation's text where it is no size within `bounds`.
pub(super) fn bytes(pod: &Pod, annotation: &str, bounds: &RangeInclusive<u64>, default: u64) -> Result<u64, String> {
    let Some(text) = pod.annotations().get(annotation) else {
        return Ok(default);
    };
    let bytes = quantity::bytes(text.trim()).and_then(|bytes| u64::try_from(bytes).ok());
    let bytes = bytes.filter(|bytes| bounds.contains(bytes));
    bytes.ok_or_else(|| text.clone())
}

/// A container's memory limit that is too small for a file of so many bytes, and the least one.
pub(super) fn too_small(container: &Container, bytes: u64) -> Option<(u128, u128)> {
    let limit = candidates::limit(container, "memory")?;
    let needed = u128::from(bytes).saturating_mul(MIN_LIMIT_BYTES_PER_FILE_BYTE);
    (limit < needed).then_some((limit, needed))
}
