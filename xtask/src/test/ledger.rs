//! What the last rounds took and needed: a file in the cache folder, which outlives clones.

use anyhow::{Context as _, Result, bail};
use flopwatch_toolchain::cache::Cache;
use flopwatch_toolchain::progress::human;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// Rounds that are remembered.
const MAX_ROUNDS: usize = 10;
/// Second tries of one test within them that are no chance any more.
const MAX_SECOND_TRIES: usize = 1;
/// Earlier rounds that a step needs before it is held against their median.
const MIN_ROUNDS: usize = 3;
/// Steps shorter than this, in seconds, vary with the machine's mood and are held against nothing.
const MIN_STEP_SECONDS: f64 = 20.0;

/// What the last rounds took, the oldest first.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ledger {
    rounds: Vec<Round>,
}

/// One round.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Round {
    /// When it ended, in seconds since 1970.
    pub(crate) ended: u64,
    /// The system tests that were run a second time.
    pub(crate) again: BTreeSet<String>,
    /// Seconds that each step took, by its name.
    pub(crate) steps: BTreeMap<String, f64>,
    /// Seconds that each test program took, by its name.
    pub(crate) programs: BTreeMap<String, f64>,
}

/// A step that took a third more than it used to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Slower<'a> {
    step: &'a str,
    seconds: f64,
    median: f64,
}

impl Ledger {
    /// With one round more; those before the last ten are forgotten.
    fn with(mut self, round: Round) -> Self {
        self.rounds.push(round);
        let old = self.rounds.len().saturating_sub(MAX_ROUNDS);
        self.rounds.drain(..old);
        self
    }

    fn tries(&self, test: &str) -> usize {
        self.rounds.iter().filter(|round| round.again.contains(test)).count()
    }

    /// Tests that needed a second try in the last round, and too often before: a fault that nobody
    /// looked for.
    pub(crate) fn unreliable(&self) -> Vec<&str> {
        let last = self.rounds.last().into_iter().flat_map(|round| &round.again);
        last.map(String::as_str)
            .filter(|test| self.tries(test) > MAX_SECOND_TRIES)
            .collect()
    }

    /// The steps of the last round that took a third more than the median of the rounds before it.
    pub(crate) fn slower(&self) -> Vec<Slower<'_>> {
        let Some((last, before)) = self.rounds.split_last() else {
            return Vec::new();
        };
        let steps = last.steps.iter().filter_map(|(step, &seconds)| {
            let earlier: Vec<f64> = before
                .iter()
                .filter_map(|round| round.steps.get(step).copied())
                .collect();
            let median = median(earlier)?;
            (seconds >= MIN_STEP_SECONDS && seconds > median * 4.0 / 3.0).then_some(Slower { step, seconds, median })
        });
        steps.collect()
    }

    /// How long each program took in the last round that ran it.
    pub(crate) fn programs(&self) -> BTreeMap<String, Duration> {
        let rounds = self.rounds.iter().flat_map(|round| &round.programs);
        let known = rounds.filter_map(|(name, seconds)| {
            let took = Duration::try_from_secs_f64(*seconds).ok()?;
            Some((name.clone(), took))
        });
        known.collect()
    }
}

/// The median of at least [`MIN_ROUNDS`] numbers: the mean of both in the middle where their count
/// is even.
fn median(mut numbers: Vec<f64>) -> Option<f64> {
    if numbers.len() < MIN_ROUNDS {
        return None;
    }
    numbers.sort_by(f64::total_cmp);
    let middle = numbers.len() / 2;
    let upper = *numbers.get(middle)?;
    if numbers.len() % 2 == 1 {
        return Some(upper);
    }
    Some(f64::midpoint(upper, *numbers.get(middle.checked_sub(1)?)?))
}

impl fmt::Display for Slower<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |seconds: f64| human(Duration::try_from_secs_f64(seconds).unwrap_or_default());
        write!(
            out,
            "{} took {}, a third more than the median of the rounds before, {}",
            self.step,
            seconds(self.seconds),
            seconds(self.median)
        )
    }
}

impl fmt::Display for Ledger {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "second tries in the last {} rounds of system tests: ",
            self.rounds.len()
        )?;
        let mut tests: Vec<&str> = self
            .rounds
            .iter()
            .flat_map(|round| &round.again)
            .map(String::as_str)
            .collect();
        tests.sort_unstable();
        tests.dedup();
        if tests.is_empty() {
            return write!(out, "none");
        }
        for (number, test) in tests.into_iter().enumerate() {
            let comma = if number == 0 { "" } else { ", " };
            write!(out, "{comma}{test} {}", self.tries(test))?;
        }
        Ok(())
    }
}

fn path(cache: &Cache) -> PathBuf {
    cache.root().join("rounds.json")
}

/// The ledger as it is; an empty one where no round was written down.
pub(crate) fn read(cache: &Cache) -> Result<Ledger> {
    let path = path(cache);
    if !path.exists() {
        return Ok(Ledger::default());
    }
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let Ok(ledger) = serde_json::from_str(&text) else {
        bail!("{} is no ledger; remove it", path.display());
    };
    Ok(ledger)
}

/// Writes down one round more and gives the ledger with it.
pub(crate) fn record(cache: &Cache, round: Round) -> Result<Ledger> {
    let _lock = cache.lock("ledger")?;
    let ledger = read(cache)?.with(round);
    let path = path(cache);
    let part = path.with_extension("part");
    fs::write(&part, serde_json::to_string(&ledger)?).with_context(|| format!("cannot write {}", part.display()))?;
    fs::rename(&part, &path).with_context(|| format!("cannot put {} into place", path.display()))?;
    Ok(ledger)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(ended: u64, again: &[&str]) -> Round {
        Round {
            ended,
            again: again.iter().map(|&test| test.to_owned()).collect(),
            ..Round::default()
        }
    }

    fn ledger(rounds: &[&[&str]]) -> Ledger {
        let rounds = rounds.iter().enumerate();
        rounds.fold(Ledger::default(), |ledger, (at, again)| {
            ledger.with(round(u64::try_from(at).unwrap(), again))
        })
    }

    fn timed(steps: &[f64]) -> Ledger {
        steps.iter().fold(Ledger::default(), |ledger, seconds| {
            ledger.with(Round {
                steps: BTreeMap::from([("lint".to_owned(), *seconds)]),
                programs: BTreeMap::from([("trace suite".to_owned(), *seconds)]),
                ..Round::default()
            })
        })
    }

    #[test]
    fn a_second_try_is_chance_once_and_a_fault_the_second_time() {
        assert!(ledger(&[&["a"]]).unreliable().is_empty());
        assert_eq!(ledger(&[&["a"], &["a", "b"]]).unreliable(), ["a"]);
        assert_eq!(ledger(&[&["a"], &[], &[], &["a"]]).unreliable(), ["a"]);
    }

    #[test]
    fn a_test_that_was_mended_does_not_fail_rounds_that_it_passes() {
        assert!(ledger(&[&["a"], &["a"], &[]]).unreliable().is_empty());
    }

    #[test]
    fn only_the_last_ten_rounds_count() {
        let mut rounds: Vec<&[&str]> = vec![&["a"]];
        let calm: &[&str] = &[];
        rounds.extend([calm; 8]);
        rounds.push(&["a"]);
        assert_eq!(ledger(&rounds).unreliable(), ["a"]);
        rounds.insert(1, calm);
        let forgotten = ledger(&rounds);
        assert!(forgotten.unreliable().is_empty());
        assert_eq!(forgotten.rounds.len(), MAX_ROUNDS);
        assert_eq!(forgotten.rounds[0].ended, 1);
    }

    #[test]
    fn the_round_prints_who_needed_how_many() {
        assert_eq!(
            ledger(&[&["b"], &["a"], &["b"]]).to_string(),
            "second tries in the last 3 rounds of system tests: a 1, b 2"
        );
        assert_eq!(
            ledger(&[&[]]).to_string(),
            "second tries in the last 1 rounds of system tests: none"
        );
    }

    #[test]
    fn a_step_that_took_a_third_more_than_the_median_is_named_with_both() {
        assert!(
            timed(&[60.0, 60.0, 100.0]).slower().is_empty(),
            "two rounds are no median"
        );
        assert!(timed(&[60.0, 90.0, 60.0, 80.0]).slower().is_empty());
        let ledger = timed(&[60.0, 90.0, 60.0, 81.0]);
        let told: Vec<String> = ledger.slower().iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            ["lint took 1 min 21 s, a third more than the median of the rounds before, 1 min 00 s"]
        );
        let even = timed(&[60.0, 60.0, 62.0, 62.0, 90.0]);
        assert!(
            even.slower()[0].to_string().ends_with("1 min 01 s"),
            "the mean of both in the middle"
        );
        assert!(timed(&[1.0, 1.0, 1.0, 5.0]).slower().is_empty(), "short steps vary");
    }

    #[test]
    fn a_program_takes_what_it_took_last() {
        let ledger = timed(&[5.0, 7.0]);
        assert_eq!(ledger.programs()["trace suite"], Duration::from_secs(7));
    }

    #[test]
    fn it_outlives_the_round_in_the_cache_and_what_is_no_ledger_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        assert_eq!(read(&cache).unwrap(), Ledger::default());
        record(&cache, round(1, &["a"])).unwrap();
        let second = record(&cache, round(2, &["a"])).unwrap();
        assert_eq!(second.unreliable(), ["a"]);
        assert_eq!(read(&cache).unwrap(), second);
        fs::write(path(&cache), "{\"rounds\":[{}]}").unwrap();
        let error = record(&cache, round(3, &[])).unwrap_err().to_string();
        assert!(error.contains("rounds.json is no ledger"), "{error}");
    }
}
