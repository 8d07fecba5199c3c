//! One thing that is tried, and what came of it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde::Serialize;

use super::until::Until;

/// How a try ended, where nothing broke off.
pub(super) enum Ended {
    /// It went its whole way.
    Done,
    /// This machine does not have what it needs.
    NotRun(String),
}

/// What an item found on its way: kept when it breaks off.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Found {
    /// Numbers by name; the name has their unit.
    pub(crate) figures: BTreeMap<String, u64>,
    /// Sentences.
    pub(crate) said: Vec<String>,
    /// What does not hold.
    pub(crate) failures: Vec<String>,
}

impl Found {
    pub(super) fn figure(&mut self, name: &str, value: u64) {
        self.figures.insert(name.to_owned(), value);
    }

    pub(super) fn say(&mut self, sentence: impl Into<String>) {
        self.said.push(sentence.into());
    }

    /// Notes what does not hold.
    pub(super) fn must(&mut self, holds: bool, failure: impl FnOnce() -> String) {
        if !holds {
            self.failures.push(failure());
        }
    }

    /// Notes two counts that must be the same.
    pub(super) fn must_equal(&mut self, what: &str, found: u64, expected: u64) {
        self.must(found == expected, || {
            format!("{what}: {found} in the place of {expected}")
        });
    }
}

/// How a thing is tried.
type Work<'a> = Box<dyn Fn(Until, &mut Found) -> Result<Ended> + 'a>;

/// One thing that is tried.
pub(super) struct Item<'a> {
    pub(super) name: String,
    /// How long it may take.
    pub(super) limit: Duration,
    pub(super) work: Work<'a>,
}

/// What came of an item.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ItemResult {
    pub(crate) name: String,
    /// Why it was not tried.
    pub(crate) not_run: Option<String>,
    pub(crate) found: Found,
    pub(crate) milliseconds: u64,
}

impl Item<'_> {
    /// Tries it within its own time and that of all items.
    pub(super) fn run(&self, all: Until) -> ItemResult {
        let begin = Instant::now();
        let mut found = Found::default();
        let mut not_run = None;
        if all.left().is_none() {
            not_run = Some("the time of the whole check was over".to_owned());
        } else {
            match (self.work)(all.or_after(self.limit), &mut found) {
                Ok(Ended::Done) => {}
                Ok(Ended::NotRun(reason)) => not_run = Some(reason),
                Err(error) => found.failures.push(format!("{error:#}")),
            }
        }
        ItemResult {
            name: self.name.clone(),
            not_run,
            found,
            milliseconds: u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX),
        }
    }
}

impl ItemResult {
    /// Whether it holds, as far as it was tried.
    pub(crate) fn passed(&self) -> bool {
        self.found.failures.is_empty()
    }

    /// What came of it, on one line.
    pub(crate) fn outcome(&self) -> String {
        let found = &self.found;
        if !self.passed() {
            return format!("FAILED: {}", found.failures.join("; ")).replace('\n', " ");
        }
        match &self.not_run {
            Some(reason) => format!("not run: {reason}"),
            None => "holds".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(all: Duration, work: impl Fn(Until, &mut Found) -> Result<Ended>) -> ItemResult {
        let item = Item {
            name: "an item".to_owned(),
            limit: Duration::from_mins(1),
            work: Box::new(work),
        };
        item.run(Until::after(all))
    }

    #[test]
    fn an_item_that_breaks_off_keeps_what_it_found() {
        let result = run(Duration::from_mins(1), |_, found| {
            found.figure("begin us", 7);
            anyhow::bail!("the program ended")
        });
        assert!(!result.passed() && result.found.figures["begin us"] == 7);
        assert_eq!(result.outcome(), "FAILED: the program ended");
    }

    #[test]
    fn counts_that_differ_fail_and_what_was_not_run_is_said() {
        let result = run(Duration::from_mins(1), |_, found| {
            found.must_equal("kernels", 49, 50);
            Ok(Ended::Done)
        });
        assert_eq!(result.outcome(), "FAILED: kernels: 49 in the place of 50");
        let result = run(Duration::from_mins(1), |_, _| {
            Ok(Ended::NotRun("no PyTorch".to_owned()))
        });
        assert!(result.passed() && result.outcome() == "not run: no PyTorch");
        let result = run(Duration::ZERO, |_, _| Ok(Ended::Done));
        assert!(result.outcome().contains("was over"));
    }
}
