//! Goes on with a capture that an earlier life of this agent began.

use std::time::Duration;

use flopwatch_api::capture::Stage;
use flopwatch_api::profiler::ProfilerType;
use flopwatch_api::reason::CaptureReason;
use flopwatch_artifacts::Manifest;
use flopwatch_attach::graft::GraftError;
use tracing::{info, warn};

use super::collect::{RAW, SAMPLES, blocking, utc_ns};
use super::{Failed, Published, Work, produce};
use crate::adoption::{Adoption, Attached, Container, Journal, World, adopt};
use crate::failure::{Failure, chain};
use crate::node::containers::Collector;
use crate::node::spool;
use crate::node::sweep::remove_folder;
use crate::transform::Samples;

/// How often a session is asked again that does not answer.
const ATTEMPTS: u32 = 3;

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
                remove_folder(&self.spool, &self.node.steps).await;
                return self.begin().await;
            }
            (adoption, Some(attached)) => {
                self.remember().await?;
                spool::make(&self.spool)?;
                match adoption {
                    Adoption::Window { left } => self.close(&attached, left).await?,
                    Adoption::Fetch => {
                        if !world.samples {
                            self.keep_samples(&self.no_samples())?;
                        }
                        self.fetch(&attached).await?;
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
            },
            Some(_) if !self.is_handed_over() => {
                produce::withdraw(self).await;
                failure.into()
            }
            _ => failure.into(),
        }
    }

    /// What is found of the capture in its folder and in its container.
    async fn observe(&self, journal: Option<&Journal>, stored: bool) -> Result<World, Failure> {
        let has = |name: &str| self.spool.join(name).is_file();
        let raw = has(RAW);
        // The container is asked only where its answer matters.
        let attached = journal
            .filter(|journal| journal.opened_utc_ns.is_some() && journal.failed.is_none() && !raw && !stored)
            .and_then(|journal| journal.attached.as_ref())
            .filter(|attached| attached.profiler == ProfilerType::Nsys && self.is_pinned(attached));
        let container = match attached {
            Some(attached) if self.interrupted().is_ok() => self.observe_container(attached).await?,
            _ => None,
        };
        Ok(World {
            now_utc_ns: utc_ns(),
            raw,
            samples: has(SAMPLES),
            stored,
            container,
            interrupt: *self.interrupts.borrow(),
        })
    }

    async fn observe_container(&self, attached: &Attached) -> Result<Option<Container>, Failure> {
        let (collector, name) = (self.collector(attached), self.file_name());
        blocking(CaptureReason::AttachFailed, move || {
            // A stop that the earlier agent began may still be writing the capture.
            if let Err(error) = collector.await_quiet() {
                warn!(%error, "whether a control command is at work cannot be told");
            }
            for attempt in 1..=ATTEMPTS {
                match look(collector.as_ref(), &name) {
                    Ok(container) => return Ok(Some(container)),
                    // It ended between the two looks.
                    Err(_) if !collector.is_alive() => return Ok(None),
                    Err(error) if attempt == ATTEMPTS => {
                        return Err(Failure::new(CaptureReason::AttachFailed, chain(&error)));
                    }
                    Err(error) => warn!(error = %chain(&error), "the session does not answer, asking again"),
                }
            }
            Ok(None)
        })
        .await
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

fn look(collector: &dyn Collector, name: &str) -> Result<Container, GraftError> {
    let session = collector.session()?;
    let raw = collector.has(name)?;
    Ok(Container { session, raw })
}
