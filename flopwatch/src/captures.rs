//! The captures that a local service holds: what its command line named, and what was dropped onto
//! its viewer. Each is published in the store under a name that is made of its file's.
//!
//! - `GET /v1/captures`: what is held, in the order of its coming, as JSON.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::State;
use axum::middleware;
use axum::routing::get;
use axum::{Json, Router};
use flopwatch_api::artifact::{TIMELINE, artifacts_path};
use flopwatch_api::capture::SessionReference;
use flopwatch_artifacts::{CaptureId, Publication, SourceFile, Store, StoreError};
use jiff::Timestamp;
use serde::Serialize;
use tokio::sync::Mutex;

use crate::guard::own_pages_only;

/// URL path of the list.
pub const PATH: &str = "/v1/captures";
/// Namespace of the store that the captures are in.
pub const NAMESPACE: &str = "local";

/// Longest part of a capture's name that comes from its file's, in characters.
const MAX_NAME_CHARS: usize = 200;
/// Name of a capture whose file's name has no letter of a DNS name.
const UNNAMED: &str = "capture";

/// Where a capture comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The command line; it is held as long as the service.
    CommandLine,
    /// The viewer; the oldest of these go.
    Dropped,
}

/// A capture that is held.
#[derive(Clone, Debug, Serialize)]
pub struct HeldCapture {
    /// Name of the file or folder that it was made of.
    pub file: String,
    /// The capture as `with=` of an analysis takes it: `NAMESPACE/NAME/UID`.
    pub capture: String,
    /// URL path of the timeline.
    pub path: String,
    /// Events of the timeline; null where it is made on the first request.
    pub events: Option<u64>,
    /// Whether it was dropped onto the viewer.
    pub dropped: bool,
    /// URL path of the list of its artifacts.
    #[serde(skip)]
    pub list_path: String,
    /// Names of its artifacts.
    #[serde(skip)]
    pub artifacts: Vec<String>,
    /// Name in the store.
    #[serde(skip)]
    name: String,
}

/// The answer to `GET`.
#[derive(Debug, Serialize)]
struct CaptureList {
    captures: Vec<HeldCapture>,
}

/// The captures of a local service, over the store that has their artifacts.
#[derive(Debug)]
pub struct Captures {
    store: Arc<Store>,
    held: Mutex<Vec<HeldCapture>>,
    /// Names that were given, to captures that are gone too: a link never leads to another one.
    names: Mutex<BTreeSet<String>>,
}

impl Captures {
    /// Holds nothing yet.
    pub fn new(store: Arc<Store>) -> Self {
        Self {
            store,
            held: Mutex::default(),
            names: Mutex::default(),
        }
    }

    /// Publishes the artifacts `files` of the capture that was made of `file`, with so many events.
    pub async fn publish(
        &self,
        origin: Origin,
        file: String,
        events: Option<u64>,
        files: &[SourceFile],
    ) -> Result<HeldCapture, StoreError> {
        let name = free_name(&name_of(&file), &mut *self.names.lock().await);
        let publication = Publication {
            capture: CaptureId {
                namespace: NAMESPACE.to_owned(),
                name: name.clone(),
                uid: name.clone(),
            },
            session: SessionReference {
                name: name.clone(),
                id: "00000000".to_owned(),
            },
            created: Timestamp::now(),
            captured: Vec::new(),
        };
        let manifest = self.store.publish(publication, files).await?;
        let list_path = artifacts_path(NAMESPACE, &name);
        let held = HeldCapture {
            file,
            capture: format!("{NAMESPACE}/{name}/{name}"),
            path: format!("{list_path}/{TIMELINE}"),
            events,
            dropped: origin == Origin::Dropped,
            list_path,
            artifacts: manifest.artifacts.into_iter().map(|artifact| artifact.name).collect(),
            name,
        };
        self.held.lock().await.push(held.clone());
        Ok(held)
    }

    /// Removes the oldest captures that were dropped, beyond the last `kept`.
    pub async fn keep_dropped(&self, kept: usize) -> Result<(), StoreError> {
        while let Some(oldest) = self.oldest_dropped_beyond(kept).await {
            self.store.delete(NAMESPACE, &oldest.name).await?;
        }
        Ok(())
    }

    /// Takes the oldest dropped capture out of the list where more than `kept` are in it.
    async fn oldest_dropped_beyond(&self, kept: usize) -> Option<HeldCapture> {
        let mut held = self.held.lock().await;
        let is_beyond = held.iter().filter(|capture| capture.dropped).count() > kept;
        let oldest = held.iter().position(|capture| capture.dropped && is_beyond)?;
        Some(held.remove(oldest))
    }

    /// The route, which answers requests of this machine alone.
    pub fn router(self: &Arc<Self>) -> Router {
        Router::new()
            .route(PATH, get(list))
            .layer(middleware::from_fn(own_pages_only))
            .with_state(Arc::clone(self))
    }
}

async fn list(State(captures): State<Arc<Captures>>) -> Json<CaptureList> {
    let captures = captures.held.lock().await.clone();
    Json(CaptureList { captures })
}

/// The name of a file as a lower-case DNS name: other characters become hyphens.
fn name_of(file: &str) -> String {
    let letters = file.chars().take(MAX_NAME_CHARS);
    let letters = letters.map(|letter| match letter.to_ascii_lowercase() {
        letter @ ('a'..='z' | '0'..='9' | '.') => letter,
        _ => '-',
    });
    let letters: String = letters.collect();
    let labels = letters.split('.').map(|label| label.trim_matches('-'));
    let labels: Vec<&str> = labels.filter(|label| !label.is_empty()).collect();
    if labels.is_empty() {
        UNNAMED.to_owned()
    } else {
        labels.join(".")
    }
}

/// The name itself or, where that was given, the first free one with a number behind it. It is
/// given then.
fn free_name(name: &str, given: &mut BTreeSet<String>) -> String {
    let mut free = name.to_owned();
    let mut number: u64 = 1;
    while !given.insert(free.clone()) {
        number = number.saturating_add(1);
        free = format!("{name}-{number}");
    }
    free
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_keeps_its_name_as_far_as_a_dns_name_can_say_it() {
        for (file, name) in [
            ("hta_control.json.gz", "hta-control.json.gz"),
            ("Run 7 (copy).nsys-rep", "run-7--copy.nsys-rep"),
            (".hidden..h5", "hidden.h5"),
            ("Ä_", "capture"),
            ("", "capture"),
        ] {
            assert_eq!(name_of(file), name);
            assert!(flopwatch_artifacts::check_name("capture", name).is_ok(), "{name}");
        }
        let long = name_of(&"a".repeat(400));
        assert_eq!(long.len(), MAX_NAME_CHARS);
    }

    #[test]
    fn two_files_of_one_name_are_told_apart() {
        let mut given = BTreeSet::new();
        let names = ["a.h5", "a.h5", "b.h5", "a.h5"].map(|name| free_name(name, &mut given));
        assert_eq!(names, ["a.h5", "a.h5-2", "b.h5", "a.h5-3"]);
    }
}
