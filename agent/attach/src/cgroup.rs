//! From `/proc/PID/cgroup` to the pod and the container.
//!
//! Kubelets and runtimes write the path in several forms, below prefixes of their own (nested nodes, `system.slice`): so
//! the tail is matched, not the head.

/// Whose cgroup a process is in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContainerCgroup {
    /// UID of the pod, with dashes; a static pod's is 32 hex digits without.
    pub pod_uid: String,
    /// ID of the container, 64 hex digits, without the runtime's name.
    pub container_id: String,
}

/// Reads the text of `/proc/PID/cgroup`, cgroup v1 and v2; none when no line names a pod's container (a process of the
/// host, a runtime's monitor, or a view from inside another cgroup namespace: read the host's procfs).
pub fn parse(text: &str) -> Option<ContainerCgroup> {
    // `hierarchy:controllers:path`; a path may hold colons itself.
    text.lines()
        .filter_map(|line| line.splitn(3, ':').nth(2))
        .find_map(parse_path)
}

/// Reads one cgroup path.
pub fn parse_path(path: &str) -> Option<ContainerCgroup> {
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    segments
        .windows(2)
        .rev()
        .find_map(|pair| {
            let [pod, container] = pair else { return None };
            // `kubepods-burstable-podUID.slice:cri-containerd:ID` stands in one segment.
            Some(ContainerCgroup {
                pod_uid: pod_uid(pod)?,
                container_id: container_id(container)?,
            })
        })
        .or_else(|| {
            segments.iter().rev().find_map(|segment| {
                let (pod, container) = segment.split_once(':')?;
                Some(ContainerCgroup {
                    pod_uid: pod_uid(pod)?,
                    container_id: container_id(container)?,
                })
            })
        })
}

fn pod_uid(segment: &str) -> Option<String> {
    let name = segment.strip_suffix(".slice").unwrap_or(segment);
    let uid = match name.strip_prefix("pod") {
        Some(uid) => uid,
        None => name
            .contains("kubepods")
            .then(|| name.rsplit_once("-pod"))
            .flatten()
            .map(|(_, uid)| uid)?,
    };
    let uid = uid.replace('_', "-");
    let hex = |text: &str| {
        text.bytes()
            .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    };
    let groups: Vec<&str> = uid.split('-').collect();
    let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
    let well_formed = groups.iter().all(|group| hex(group)) && matches!(lengths.as_slice(), [32] | [8, 4, 4, 4, 12]);
    well_formed.then_some(uid)
}

fn container_id(segment: &str) -> Option<String> {
    let name = segment.strip_suffix(".scope").unwrap_or(segment);
    // `cri-containerd-ID`, `cri-containerd:ID`, `crio-ID`, `docker-ID` or the bare ID. The monitor of CRI-O is no
    // container although its name ends in one's ID.
    let (runtime, id) = name.rsplit_once(['-', ':']).unwrap_or(("", name));
    let container = !runtime.ends_with("conmon");
    let hex = id
        .bytes()
        .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    (container && id.len() == 64 && hex).then(|| id.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const UID: &str = "0a1b2c3d-1111-2222-3333-444455556666";
    const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    #[test]
    fn every_form_names_its_pod_and_container() {
        let flat = UID.replace('-', "_");
        let hash = "ffeeddccbbaa99887766554433221100";
        let cases = [
            ("cgroupfs, guaranteed", format!("0::/kubepods/pod{UID}/{ID}"), UID),
            (
                "cgroupfs, burstable, v1",
                format!("4:memory:/kubepods/burstable/pod{UID}/{ID}\n0::/"),
                UID,
            ),
            (
                "named hierarchy",
                format!("1:name=systemd:/kubepods/besteffort/pod{UID}/{ID}"),
                UID,
            ),
            (
                "systemd, besteffort",
                format!(
                    "0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{flat}.slice/cri-containerd-{ID}.scope"
                ),
                UID,
            ),
            (
                "systemd, guaranteed",
                format!("0::/kubepods.slice/kubepods-pod{flat}.slice/crio-{ID}.scope"),
                UID,
            ),
            (
                "docker",
                format!("0::/kubepods.slice/kubepods-pod{flat}.slice/docker-{ID}.scope"),
                UID,
            ),
            ("static pod", format!("0::/kubepods/burstable/pod{hash}/{ID}"), hash),
            (
                "static pod, systemd",
                format!(
                    "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{hash}.slice/cri-containerd-{ID}.scope"
                ),
                hash,
            ),
            (
                "kind",
                format!(
                    "0::/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod{flat}.slice/cri-containerd-{ID}.scope"
                ),
                UID,
            ),
            ("nested node", format!("0::/docker/{ID}/kubepods/pod{UID}/{ID}"), UID),
            (
                "system slice",
                format!(
                    "9:devices:/system.slice/containerd.service/kubepods-burstable-pod{flat}.slice:cri-containerd:{ID}"
                ),
                UID,
            ),
            (
                "a cgroup of the container's own below",
                format!("0::/kubepods/pod{UID}/{ID}/init.scope"),
                UID,
            ),
            (
                "a later line",
                format!("2:cpu:/\n1:name=systemd:/kubepods/pod{UID}/{ID}"),
                UID,
            ),
        ];
        for (what, text, uid) in cases {
            let expected = ContainerCgroup {
                pod_uid: uid.into(),
                container_id: ID.into(),
            };
            assert_eq!(parse(&text), Some(expected), "{what}: {text}");
        }
    }

    #[test]
    fn what_is_no_container_is_none() {
        let flat = UID.replace('-', "_");
        let cases = [
            ("empty", String::new()),
            ("host", "0::/init.scope".into()),
            (
                "CRI-O's monitor",
                format!("0::/kubepods.slice/kubepods-pod{flat}.slice/crio-conmon-{ID}.scope"),
            ),
            ("private cgroup namespace", "0::/../..".into()),
            ("the pod itself", format!("0::/kubepods/pod{UID}")),
            ("short ID", format!("0::/kubepods/pod{UID}/{}", &ID[1..])),
            ("plain docker", format!("0::/docker/{ID}")),
            ("not a UID", format!("0::/kubepods/podx/{ID}")),
            ("no path", "0".into()),
        ];
        for (what, text) in cases {
            assert_eq!(parse(&text), None, "{what}: {text}");
        }
    }
}
