//! Selectors of pods by their labels: Kubernetes' own, or what stands for it in a program without
//! Kubernetes.

#[cfg(feature = "resources")]
pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
#[cfg(not(feature = "resources"))]
pub use read::{LabelSelector, LabelSelectorRequirement};

/// What a manifest can say, read the same way.
#[cfg(not(feature = "resources"))]
mod read {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Serialize};

    /// Selects pods by their labels.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "camelCase")]
    pub struct LabelSelector {
        /// Requirements that a pod's labels must all meet.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub match_expressions: Option<Vec<LabelSelectorRequirement>>,
        /// Labels that a pod must have, with these values.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub match_labels: Option<BTreeMap<String, String>>,
    }

    /// A requirement that a pod's labels must meet.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "camelCase")]
    pub struct LabelSelectorRequirement {
        /// Label key.
        pub key: String,
        /// Relation of the label to the values.
        pub operator: String,
        /// Values for In and NotIn.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub values: Option<Vec<String>>,
    }
}
