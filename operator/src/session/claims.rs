//! Claims that a pod mounts, and whether pods on several nodes may have them at once: what a copy
//! of the pod holds, the pod itself cannot take along to another node.

use std::collections::BTreeMap;

use flopwatch_schedule::is_pod_name;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::api::Api;

use crate::controller::context::Context;
use crate::deadline::{CallError, bounded};

/// Most claims of a pod that are read; a pod with more is not copied.
pub const MAX_CLAIMS: usize = 32;
/// Access modes with which pods on several nodes may have a volume at once.
const OF_MANY: [&str; 2] = ["ReadWriteMany", "ReadOnlyMany"];
/// Access mode of a claim that one pod may have.
const OF_ONE_POD: &str = "ReadWriteOncePod";

/// The nodes whose pods may mount a claim at the same time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// Pods on several nodes.
    ManyNodes,
    /// Pods of one node, or one pod.
    OneNode {
        /// The claim's access modes, in words.
        modes: String,
    },
    /// The controller may not read the claim.
    Unread,
}

/// What is known of claims, by their names. One that is not there holds nothing.
pub type Claims = BTreeMap<String, Access>;

/// Reads the claims of those names.
pub async fn read(names: &[String], namespace: &str, context: &Context) -> Result<Claims, CallError> {
    let api: Api<PersistentVolumeClaim> = Api::namespaced(context.client.clone(), namespace);
    let mut claims = Claims::new();
    // Claims are named as pods are. The name of any other is foreign text, and would become part of
    // a path.
    for name in names.iter().take(MAX_CLAIMS).filter(|name| is_pod_name(name)) {
        let access = match bounded("reading a claim of the pod to copy", api.get_opt(name)).await {
            Ok(None) => continue,
            Ok(Some(claim)) => access(&claim),
            Err(error) if error.refusal().is_some_and(|(code, _)| code == 403) => Access::Unread,
            Err(error) => return Err(error),
        };
        claims.insert(name.clone(), access);
    }
    Ok(claims)
}

/// Who may have a claim at once: by the volume that it has, before that by what it asks for.
fn access(claim: &PersistentVolumeClaim) -> Access {
    let had = claim.status.as_ref().and_then(|status| status.access_modes.as_ref());
    let asked = claim.spec.as_ref().and_then(|spec| spec.access_modes.as_ref());
    let all = || asked.into_iter().chain(had).flatten().map(String::as_str);
    let known = had.filter(|modes| !modes.is_empty()).or(asked);
    let of_many = known.is_some_and(|modes| modes.iter().any(|mode| OF_MANY.contains(&mode.as_str())));
    if of_many && !all().any(|mode| mode == OF_ONE_POD) {
        return Access::ManyNodes;
    }
    let mut modes: Vec<&str> = all().collect();
    modes.sort_unstable();
    modes.dedup();
    Access::OneNode {
        modes: modes.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(asked: &[&str], had: &[&str]) -> Access {
        let claim = json!({"metadata": {"name": "c"}, "spec": {"accessModes": asked}, "status": {"accessModes": had}});
        access(&serde_json::from_value(claim).unwrap())
    }

    #[test]
    fn a_claim_is_for_many_nodes_only_where_its_volume_is() {
        let one = |modes: &str| Access::OneNode {
            modes: modes.to_owned(),
        };
        assert_eq!(of(&["ReadWriteMany"], &["ReadWriteMany"]), Access::ManyNodes);
        assert_eq!(of(&["ReadOnlyMany"], &[]), Access::ManyNodes);
        assert_eq!(
            of(&["ReadWriteOnce"], &["ReadWriteOnce", "ReadWriteMany"]),
            Access::ManyNodes
        );
        assert_eq!(of(&["ReadWriteOnce"], &["ReadWriteOnce"]), one("ReadWriteOnce"));
        assert_eq!(
            of(&["ReadWriteMany"], &["ReadWriteOnce"]),
            one("ReadWriteMany, ReadWriteOnce")
        );
        assert_eq!(
            of(&["ReadWriteOncePod"], &["ReadWriteMany"]),
            one("ReadWriteMany, ReadWriteOncePod")
        );
        assert_eq!(of(&[], &[]), one(""));
    }
}
