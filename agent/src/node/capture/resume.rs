//! Resumes a capture that an earlier agent process began.

use std::time::Duration;

use flopwatch_api::capture::Stage;
use flopwatch_api::reason::CaptureReason;
use flopwatch_artifacts::Manifest;
use tracing::info;

use super::collect::{blocking, utc_ns};
use super::{Failed, Published, Work, produce};
use crate::adoption::{Adoption, Attached, Journal, World, adopt};
use crate::failure::Failure;
use crate::folder;
use crate::profilers::Observed;
use crate::transform::{SAMPLES, Samples};

impl Work<'_> {
    /// Looks at what is there, and goes on from it.
    pub(super) async fn resume(&mut self, journal: Option<&Journal>) -> Result<Published, Failed> {
        let manifest = produce::stored(self).await;
        let world = self.observe(journal, manifest.is_some()).await?;
        let adoption = adopt(&self.capture.spec, self.draft.stage(), journal, &world);
        info!(
            stage = self.draft.stage().as_str(),
            ?adoption,
            "found a capture that an earlier agent began"
        );
        if let Adoption::Fail(failure) = adoption {
            return Err(self.fail_again(failure, manifest).await);
        }
        self.journal.adoptions = self.journal.adoptions.saturating_add(1);
        if let (Adoption::Publish, Some(manifest)) = (&adoption, manifest) {
            self.remember().await?;
            self.enter(Stage::Publishing, "telling of the artifacts that are stored");
            return self.conclude(manifest).await;
        }
        let attached = match (adoption, self.journal.attached.clone()) {
            (Adoption::Begin, _) | (_, None) => {
                folder::remove(&self.spool, &self.node.steps).await;
                return self.begin().await;
            }
            (adoption, Some(attached)) => {
                if matches!(adoption, Adoption::Window { .. } | Adoption::Fetch) {
                    self.claim.take()?;
                }
                self.remember().await?;
                folder::make(&self.spool)?;
                match adoption {
                    Adoption::Window { left } => self.close(&attached, left).await?,
                    Adoption::Fetch => {
                        if !self.spool.join(SAMPLES).is_file() {
                            self.keep_samples(&self.no_samples())?;
                        }
                        self.fetch(&attached).await?;
                    }
                    // The earlier agent ended between the last copy and its note of it: what it left in the container goes.
                    _ if !self.journal.recorded => {
                        self.claim.leaving();
                        self.clean_container().await;
                        self.journal.recorded = true;
                        self.remember().await?;
                    }
                    // What the earlier agent's children had made, whole or not, is made again.
                    _ => {}
                }
                attached
            }
        };
        self.produce(&attached).await
    }

    /// Fails with what is on the node, where that was part of how it was to end; else nothing stays of it.
    async fn fail_again(&self, failure: Failure, stored: Option<Manifest>) -> Failed {
        match stored {
            Some(manifest) if self.journal.failed.is_some() && self.interrupted().is_ok() => Failed {
                failure,
                summary: self.journal.made.clone().map(|made| made.summary),
                kept: manifest.artifacts,
                storage: None,
            },
            Some(_) if !self.is_handed_over() => {
                produce::withdraw(self).await;
                failure.into()
            }
            _ => failure.into(),
        }
    }

    /// What is found of the capture in its folder, and of its collection by its profiler.
    async fn observe(&self, journal: Option<&Journal>, stored: bool) -> Result<World, Failure> {
        // The profiler is asked only where its answer matters.
        let attached = journal
            .filter(|journal| journal.opened_utc_ns.is_some() && journal.failed.is_none() && !stored)
            .and_then(|journal| journal.attached.as_ref())
            .filter(|_| self.interrupted().is_ok());
        let (raw, collection) = match attached {
            Some(attached) => self.observe_collection(attached).await?,
            None => (false, Observed::Gone(None)),
        };
        Ok(World {
            now_utc_ns: utc_ns(),
            raw,
            stored,
            collection,
            interrupt: *self.interrupts.borrow(),
        })
    }

    /// Whether the raw files are here, else where the collection stands.
    async fn observe_collection(&self, attached: &Attached) -> Result<(bool, Observed), Failure> {
        let profiler = self.profiler(attached)?;
        if profiler.raw_files(&self.spool).is_some() {
            return Ok((true, Observed::Done));
        }
        let site = self.is_pinned(attached).then(|| self.site_of(attached));
        let state = attached.profiler.clone();
        let observed = blocking(CaptureReason::AttachFailed, move || {
            profiler.observe(site.as_ref(), &state)
        });
        Ok((false, observed.await?))
    }

    /// What stands in place of the samples that were in the memory of the earlier agent.
    fn no_samples(&self) -> Samples {
        let start = self.journal.opened_utc_ns.unwrap_or_else(utc_ns);
        let absent = Duration::from_nanos(utc_ns().saturating_sub(start));
        Samples {
            window_start_utc_ns: start,
            window_ns: u64::try_from(absent.as_nanos()).unwrap_or(u64::MAX),
            missed: self.missed_samples(absent.min(self.length())),
            ..Samples::default()
        }
    }
}
