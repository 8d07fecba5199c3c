//! Events that a pod was told.

use anyhow::Result;
use k8s_openapi::api::events::v1::Event;
use kube::api::ListParams;

use crate::cluster::{TestNamespace, eventually};

impl TestNamespace {
    /// Waits for an Event of that reason about that pod, and returns its type and what it says.
    ///
    /// # Errors
    /// When there is none in time.
    pub async fn event(&self, pod: &str, reason: &str) -> Result<(String, String)> {
        eventually(&format!("an Event {reason} about pod {pod}"), || async {
            let fields = format!("regarding.kind=Pod,regarding.name={pod},reason={reason}");
            let events = self.api::<Event>().list(&ListParams::default().fields(&fields)).await?;
            let found = events.items.into_iter().next();
            Ok(found.map(|event| (event.type_.unwrap_or_default(), event.note.unwrap_or_default())))
        })
        .await
    }
}
