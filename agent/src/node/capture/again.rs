//! A second collection, where the first one missed what it was to record.

use tracing::warn;

use super::{Failed, Published, Work};
use crate::adoption::{Attached, Missed};
use crate::failure::Failure;
use crate::folder;
use crate::plan::tries_again;
use flopwatch_api::capture::Stage;

impl Work<'_> {
    /// Makes, checks and publishes the files, of a second collection where the first missed what it was to record.
    pub(super) async fn produce(&mut self, attached: &Attached) -> Result<Published, Failed> {
        let made = self.make(attached).await;
        self.or_once_more(attached, made).await
    }

    /// How a collection ended, or a second one where the first missed what it was to record.
    pub(super) async fn or_once_more(
        &mut self,
        attached: &Attached,
        ended: Result<Published, Failed>,
    ) -> Result<Published, Failed> {
        let failed = match ended {
            Ok(published) => return Ok(published),
            Err(failed) => failed,
        };
        let tries = self.journal.missed.as_ref().map_or(0, |missed| missed.tries);
        let (interrupt, reason) = (*self.interrupts.borrow(), failed.failure.reason);
        // Whoever was slowed too much by one window is not given another.
        let costly = self.journal.over_budget.is_some();
        if costly || !tries_again(&self.capture.spec, tries, interrupt, reason) {
            return Err(self.told_of_both(failed));
        }
        if let Err(busy) = self.claim.take() {
            let mut failed = self.told_of_both(failed);
            let why = format!(" (no further window was recorded: {})", busy.message);
            failed.failure.message.push_str(&why);
            return Err(failed);
        }
        warn!(reason = %reason, why = failed.failure.message, "the collection is tried once more");
        self.journal.missed = Some(Missed {
            tries: tries.saturating_add(1),
            reason: reason.as_str().to_owned(),
        });
        let attached = self.second_try(attached.clone())?;
        self.journal.attached = Some(attached.clone());
        (self.journal.opened_utc_ns, self.journal.signs) = (None, None);
        self.journal.recorded = false;
        self.remember().await?;
        self.clean_container().await;
        folder::remove(&self.spool, &self.node.steps).await;
        self.enter(Stage::Attaching, &format!("recording once more after {reason}"));
        let collected = self.collect(&attached, None).await;
        collected.map_err(|failure| self.told_of_both(failure.into()))?;
        let attached = self.journal.attached.clone().unwrap_or(attached);
        self.make(&attached).await.map_err(|failed| self.told_of_both(failed))
    }

    /// Says of a failure of a second collection what became of the first.
    pub(super) fn told_of_both(&self, mut failed: Failed) -> Failed {
        if let Some(missed) = &self.journal.missed {
            let first = format!(" (a second window was recorded, after {} of the first)", missed.reason);
            failed.failure.message.push_str(&first);
        }
        failed
    }

    /// What a collection is attached with: its profiler's second way, where the first one missed what it was to record.
    pub(super) fn second_try(&self, mut attached: Attached) -> Result<Attached, Failure> {
        if self.journal.missed.is_some() {
            attached.profiler = self.profiler(&attached)?.second_try(attached.profiler);
        }
        Ok(attached)
    }
}
