//! Says which GPUs the container of a capture has, and how.

use flopwatch_nvml::ContainerIdentity;
use kube::ResourceExt;

use super::Work;
use crate::profilers::containers::Probed;

impl Work<'_> {
    /// Asks the kubelet, and keeps what it says beside what the probe saw.
    pub(super) async fn attribute(&mut self, probed: &mut Probed) {
        let spec = &self.capture.spec;
        let container = ContainerIdentity {
            namespace: self.capture.namespace().unwrap_or_default(),
            pod: spec.pod_ref.name.clone(),
            container: spec.container_name.clone(),
        };
        let gpu = &mut probed.facts.gpu;
        gpu.assigned = self.node.containers.assigned(&container).await;
        self.draft.gpus(gpu.gpus());
    }
}
