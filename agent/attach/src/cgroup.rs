//! From `/proc/PID/cgroup` to the pod and the container.
//!
//! Kubelets and runtimes write the path in several forms, below prefixes of their own (nested
//! nodes, `system.slice`). What follows a container's own part is the container's to write, where
//! it may make cgroups: so the first part that names a container counts, or, for a caller that is
//! in a pod in a pod itself, the one as deep as its own.

/// Pod and container that a process's cgroup belongs to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContainerCgroup {
    /// UID of the pod, with dashes; a static pod's is 32 hex digits without.
    pub pod_uid: String,
    /// ID of the container, 64 hex digits, without the runtime's name.
    pub container_id: String,
}

/// Reads the text of `/proc/PID/cgroup`, cgroup v1 and v2; none when no line names a pod's
/// container (a process of the host, a runtime's monitor, or a view from inside another cgroup
/// namespace: read the host's procfs).
///
/// `depth` is that of the caller ([`depth`]): its own node's pods are as deep as it is.
pub fn parse(text: &str, depth: usize) -> Option<ContainerCgroup> {
    paths(text).find_map(|path| containers(path).nth(depth.saturating_sub(1)))
}

/// How many containers of pods, one in the other, a process with that `/proc/PID/cgroup` is in; at
/// least 1, as the way to the outer ones is not shown to who has a cgroup namespace.
pub fn depth(text: &str) -> usize {
    paths(text)
        .map(|path| containers(path).count())
        .max()
        .unwrap_or(0)
        .max(1)
}

/// `hierarchy:controllers:path`; a path may hold colons itself.
fn paths(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| line.splitn(3, ':').nth(2))
}

/// The containers that a path names, from the outermost on.
fn containers(path: &str) -> impl Iterator<Item = ContainerCgroup> {
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let named: Vec<ContainerCgroup> = (0..segments.len())
        .filter_map(|at| {
            let segment = segments.get(at)?;
            let (pod, container) = match segments.get(at + 1) {
                Some(next) if pod_uid(segment).is_some() && container_id(next).is_some() => (*segment, *next),
                // `kubepods-burstable-podUID.slice:cri-containerd:ID` stands in one segment.
                _ => segment.split_once(':')?,
            };
            Some(ContainerCgroup {
                pod_uid: pod_uid(pod)?,
                container_id: container_id(container)?,
            })
        })
        .collect();
    named.into_iter()
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
    // `cri-containerd-ID`, `cri-containerd:ID`, `crio-ID`, `docker-ID` or the bare ID. The monitor
    // of CRI-O is no container although its name ends in one's ID.
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
            assert_eq!(parse(&text, 1), Some(expected), "{what}: {text}");
        }
    }

    #[test]
    fn a_container_that_makes_cgroups_cannot_name_itself_another() {
        let other = "ffffffff-1111-2222-3333-444455556666";
        let victim = ID.replace('0', "f");
        let own = ContainerCgroup {
            pod_uid: UID.into(),
            container_id: ID.into(),
        };
        let flat = UID.replace('-', "_");
        for path in [
            format!("/kubepods/pod{UID}/{ID}/kubepods/pod{other}/{victim}"),
            format!("/kubepods/pod{UID}/{ID}/pod{other}/{victim}"),
            format!("/kubepods/pod{UID}/{ID}/kubepods-pod{other}.slice:cri-containerd:{victim}"),
            format!("/system.slice/kubepods-pod{flat}.slice:cri-containerd:{ID}/pod{other}/{victim}"),
            format!("/../../pod{UID}/{ID}/pod{other}/{victim}"),
        ] {
            assert_eq!(parse(&format!("0::{path}"), 1), Some(own.clone()), "{path}");
        }
    }

    #[test]
    fn an_agent_whose_node_is_a_pod_itself_knows_its_own_pods() {
        let node = format!("/kubepods/pod{UID}/{ID}/kubelet");
        let (agent, pod) = (
            "aaaaaaaa-1111-2222-3333-444455556666",
            "bbbbbbbb-1111-2222-3333-444455556666",
        );
        let depth = depth(&format!("4:memory:{node}/kubepods/pod{agent}/{ID}\n0::/\n"));
        assert_eq!(depth, 2);
        let found = parse(
            &format!("4:memory:{node}/kubepods/pod{pod}/{ID}/pod{agent}/{ID}\n"),
            depth,
        );
        assert_eq!(found.unwrap().pod_uid, pod);
        // The node's own processes are in no pod of it.
        assert_eq!(parse(&format!("4:memory:{node}/system.slice\n"), depth), None);
        assert_eq!(super::depth("0::/\n"), 1);
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
            assert_eq!(parse(&text, 1), None, "{what}: {text}");
        }
    }
}
