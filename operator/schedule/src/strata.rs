//! What pods of a stratum have in common.

use flopwatch_api::schedule::Stratum;

use crate::pod::Pod;

/// Longest value in a key as people read it.
const MAX_VALUE: usize = 160;

/// What pods of a stratum have in common: a value for each of `stratifyBy`, in its order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key<'a>(Vec<(Stratum, &'a str)>);

impl<'a> Key<'a> {
    /// Key of the stratum that a pod belongs to.
    pub(crate) fn of(pod: &'a Pod, stratify_by: &[Stratum]) -> Self {
        let value = |stratum: &Stratum| {
            let value = match stratum {
                Stratum::ImageDigest => &pod.class.image_digest,
                Stratum::Node => &pod.node,
                Stratum::Workload => &pod.workload,
            };
            (*stratum, value.as_str())
        };
        Self(stratify_by.iter().map(value).collect())
    }

    /// As it stands in statuses: `ImageDigest=sha256:...,Node=gpu-1`, or `All` where nothing is
    /// asked for.
    pub(crate) fn text(&self) -> String {
        if self.0.is_empty() {
            return "All".to_owned();
        }
        let part = |(stratum, value): &(Stratum, &str)| {
            let value: String = value.chars().take(MAX_VALUE).collect();
            format!("{}={value}", stratum.as_str())
        };
        self.0.iter().map(part).collect::<Vec<_>>().join(",")
    }
}
