//! Removes what no capture of this node owns: at start, and from time to time.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use flopwatch_api::capture::Capture;
use flopwatch_artifacts::object_store::Bucket;
use flopwatch_artifacts::{CaptureId, Store};
use flopwatch_pipeline::failure::chain;
use flopwatch_pipeline::folder;
use flopwatch_pipeline::steps::ChildRunner;
use kube::api::ListParams;
use kube::core::DeserializeGuard;
use kube::{Api, Client, ResourceExt};
use tokio::sync::Notify;
use tokio::time::{Interval, sleep};
use tracing::{info, warn};

use crate::node::capture_id::capture_id;
use crate::node::captures::Captures;
use crate::node::fleet_outbox::noted;
use crate::node::{Node, journal, orphans};

/// Captures in one answer of the API server.
const CAPTURES_PER_PAGE: u32 = 500;

/// Pause before a container that was started again is looked into for what its former life left: it
/// must run by then.
const RESTARTED_CONTAINER_DELAY: Duration = Duration::from_secs(15);

/// Resolves when a sweep is due: from time to time, and soon after something was left behind.
pub(super) async fn due(ticks: &mut Interval, left_behind: &Notify) {
    let early = async {
        left_behind.notified().await;
        sleep(RESTARTED_CONTAINER_DELAY).await;
    };
    tokio::select! { _ = ticks.tick() => {}, () = early => {} }
}

/// The captures of a node.
#[derive(Debug, Default)]
pub struct Listed {
    /// All that exist.
    all: HashSet<CaptureId>,
    /// UIDs of those that have not ended.
    undecided: HashSet<String>,
}

/// The captures of a node that exist now. Asked of the API server rather than of the watch: what is
/// missing from the answer is deleted from the store and the spool.
pub async fn list_captures(client: &Client, node: &str) -> Result<Listed, kube::Error> {
    let api = Api::<DeserializeGuard<Capture>>::all(client.clone());
    let fields = ListParams::default()
        .fields(&format!("spec.nodeName={node}"))
        .limit(CAPTURES_PER_PAGE);
    let mut listed = Listed::default();
    let mut page = fields.clone();
    loop {
        let list = api.list(&page).await?;
        for capture in &list.items {
            listed.all.insert(capture_id(capture));
            let decided = match &capture.0 {
                Ok(capture) => capture.is_decided(),
                // It exists: what is kept of it stays.
                Err(invalid) => {
                    warn!(capture = capture.name_any(), error = %invalid.error, "a capture cannot be read; nothing of it is swept");
                    false
                }
            };
            if !decided {
                listed.undecided.extend(capture.uid());
            }
        }
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = fields.clone().continue_token(&token),
            None => return Ok(listed),
        }
    }
}

/// Removes from the store, the pods and the spool what belongs to none of the captures that were
/// `listed`. Safe to run twice.
pub async fn sweep(node: &Arc<Node>, captures: &Arc<Captures>, listed: Listed) {
    sweep_store(&node.store, &listed.all).await;
    sweep_remote_captures(&node.store, node.storage.bucket()).await;
    let ours = ours(&node.spool, &listed.all).await;
    let (watched, undecided) = (Arc::clone(captures), Arc::new(listed.undecided));
    let keep = move |uid: &str| undecided.contains(uid) || watched.is_live(uid);
    // By what journals name, so that it is looked for again where this agent ends meanwhile.
    orphans::sweep(node, ours, keep.clone()).await;
    let unsettled = noted::recover(node, &keep).await;
    let keep = |uid: &str| keep(uid) || unsettled.contains(uid);
    sweep_spool(&node.spool, &node.steps, keep).await;
}

/// UIDs of the captures that are or were this node's: of `all` that exist, and of those that the
/// spool still has something of.
async fn ours(spool: &Path, all: &HashSet<CaptureId>) -> HashSet<String> {
    let mut ours: HashSet<String> = all.iter().map(|capture| capture.uid.clone()).collect();
    let mut entries = match tokio::fs::read_dir(spool).await {
        Ok(entries) => entries,
        Err(error) => {
            warn!(spool = %spool.display(), %error, "whose captures the journals name is not known");
            return ours;
        }
    };
    while let Ok(Some(entry)) = entries.next_entry().await {
        let name = entry.file_name();
        ours.extend(name.to_str().map(|name| journal::owner(name).to_owned()));
    }
    ours
}

/// Sweeps the store once; a failure is tried again with the next sweep.
async fn sweep_store(store: &Store, live: &HashSet<CaptureId>) {
    match store.sweep(live).await {
        Ok(swept) if swept == flopwatch_artifacts::Swept::default() => {}
        Ok(swept) => info!(
            manifests = swept.manifests,
            objects = swept.objects,
            bytes = swept.object_bytes,
            temporary = swept.temporary,
            "swept artifacts that belong to no capture"
        ),
        Err(error) => warn!(error = %chain(&error), "sweeping the store failed and is tried again"),
    }
}

/// Releases derived artifacts of other nodes' captures that the object store holds no longer.
async fn sweep_remote_captures(store: &Store, bucket: Option<&Bucket>) {
    let Some(bucket) = bucket else { return };
    let remote_captures = match store.remote_captures().await {
        Ok(remote_captures) => remote_captures,
        Err(error) => {
            warn!(error = %chain(&error), "derived artifacts of other nodes' captures cannot be swept");
            return;
        }
    };
    for remote in remote_captures {
        // What cannot be told goes when it is too old.
        if matches!(bucket.has_manifest(&remote).await, Ok(false))
            && let Err(error) = store.forget_remote_capture(&remote).await
        {
            warn!(capture = remote.name, error = %chain(&error), "derived artifacts of another node's capture stay for now");
        }
    }
}

/// Removes folders and journals of the spool whose captures ended or are gone; `keep` is asked for
/// each by its capture's UID.
async fn sweep_spool(spool: &Path, steps: &ChildRunner, keep: impl Fn(&str) -> bool) {
    let mut entries = match tokio::fs::read_dir(spool).await {
        Ok(entries) => entries,
        Err(error) => {
            warn!(spool = %spool.display(), %error, "the spool cannot be swept");
            return;
        }
    };
    while let Ok(Some(entry)) = entries.next_entry().await {
        let name = entry.file_name();
        // What is not named after a capture is nobody's.
        if name.to_str().is_some_and(|name| keep(journal::owner(name))) {
            continue;
        }
        let path = entry.path();
        info!(path = %path.display(), "swept what belongs to no capture under way");
        if path.is_dir() {
            folder::remove(&path, steps).await;
        } else {
            journal::remove(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use flopwatch_pipeline::steps::Limits;

    use super::*;
    use crate::node::watched::tests::{api_server, stored, unreadable};

    #[tokio::test]
    async fn a_capture_that_cannot_be_read_stops_no_sweep_and_loses_nothing_to_it() {
        let mut ended = stored("ended");
        ended["status"]["conditions"] = serde_json::json!([{
            "type": "Succeeded", "status": "True", "reason": "Succeeded", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z"
        }]);
        let server = api_server(&[stored("a"), unreadable("b"), ended]);
        let listed = list_captures(&server.client("team"), "n").await.unwrap();
        let mut names: Vec<&str> = listed.all.iter().map(|id| id.name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["a", "b", "ended"]);
        assert_eq!(
            listed.undecided,
            HashSet::from(["uid-a".to_owned(), "uid-b".to_owned()])
        );
    }

    #[tokio::test]
    async fn a_nodes_captures_are_those_of_the_list_and_of_its_journals() {
        let spool = tempfile::tempdir().unwrap();
        std::fs::write(spool.path().join("uid-gone.json"), "{}").unwrap();
        std::fs::create_dir(spool.path().join("uid-gone")).unwrap();
        // Listed for this node alone.
        let server = api_server(&[stored("a"), stored("b")]);
        let listed = list_captures(&server.client("team"), "n").await.unwrap();
        let ours = ours(spool.path(), &listed.all).await;
        let expected = ["uid-a", "uid-b", "uid-gone"].map(str::to_owned);
        assert_eq!(ours, HashSet::from(expected));
        let none = super::ours(&spool.path().join("absent"), &HashSet::new()).await;
        assert_eq!(none, HashSet::new());
    }

    #[tokio::test]
    async fn only_what_belongs_to_a_capture_under_way_stays_in_the_spool() {
        let spool = tempfile::tempdir().unwrap();
        let at = |name: &str| spool.path().join(name);
        for folder in ["live", "gone"] {
            std::fs::create_dir(at(folder)).unwrap();
            std::fs::write(at(folder).join("capture.qdstrm"), "raw").unwrap();
            std::fs::write(at(&format!("{folder}.json")), "{}").unwrap();
        }
        std::fs::write(at("gone.json.12.tmp"), "{").unwrap();
        let steps = ChildRunner::new("/nonexistent".into(), None, Limits::default());
        for _ in 0..2 {
            sweep_spool(spool.path(), &steps, |uid| uid == "live").await;
            let mut left: Vec<_> = std::fs::read_dir(spool.path())
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            left.sort();
            assert_eq!(left, ["live", "live.json"]);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_sweep_is_due_soon_after_something_was_left_behind_and_once_for_it() {
        let (left_behind, rare) = (Notify::new(), Duration::from_mins(10));
        let mut ticks = tokio::time::interval(rare);
        due(&mut ticks, &left_behind).await;
        let begin = tokio::time::Instant::now();
        left_behind.notify_one();
        due(&mut ticks, &left_behind).await;
        assert_eq!(begin.elapsed(), RESTARTED_CONTAINER_DELAY);
        due(&mut ticks, &left_behind).await;
        assert_eq!(begin.elapsed(), rare);
    }
}
