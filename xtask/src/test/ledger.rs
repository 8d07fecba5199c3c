//! The second tries of system tests in the last rounds: a file in the cache folder, which outlives clones.

use anyhow::{Context as _, Result, bail};
use flopwatch_toolchain::cache::Cache;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::PathBuf;

/// Rounds that are remembered.
const ROUNDS: usize = 10;
/// Second tries of one test within them that are no chance any more.
const TOO_OFTEN: usize = 2;

/// What the system tests of the last rounds needed, the oldest first.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Ledger {
    rounds: Vec<Round>,
}

/// One round of the system tests.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Round {
    /// When it ended, in seconds since 1970.
    pub(crate) ended: u64,
    /// The tests that were run a second time.
    pub(crate) again: BTreeSet<String>,
}

impl Ledger {
    fn parse(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        let round = |round: &Value| {
            let again = round.get("again")?.as_array()?.iter();
            Some(Round {
                ended: round.get("ended")?.as_u64()?,
                again: again
                    .map(|test| test.as_str().map(str::to_owned))
                    .collect::<Option<_>>()?,
            })
        };
        let rounds = value.get("rounds")?.as_array()?.iter();
        Some(Self {
            rounds: rounds.map(round).collect::<Option<_>>()?,
        })
    }

    fn to_json(&self) -> Value {
        let rounds = self.rounds.iter();
        let rounds: Vec<Value> = rounds
            .map(|round| json!({ "ended": round.ended, "again": round.again }))
            .collect();
        json!({ "rounds": rounds })
    }

    /// With one round more; those before the last ten are forgotten.
    fn with(mut self, round: Round) -> Self {
        self.rounds.push(round);
        let old = self.rounds.len().saturating_sub(ROUNDS);
        self.rounds.drain(..old);
        self
    }

    fn tries(&self, test: &str) -> usize {
        self.rounds.iter().filter(|round| round.again.contains(test)).count()
    }

    /// Tests that needed a second try in the last round, and too often before: a fault that nobody looked for.
    pub(crate) fn unreliable(&self) -> Vec<&str> {
        let last = self.rounds.last().into_iter().flat_map(|round| &round.again);
        last.map(String::as_str)
            .filter(|test| self.tries(test) >= TOO_OFTEN)
            .collect()
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
    cache.root().join("ledger.json")
}

/// Writes down one round more and gives the ledger with it.
pub(crate) fn record(cache: &Cache, round: Round) -> Result<Ledger> {
    let _lock = cache.lock("ledger")?;
    let path = path(cache);
    let before = if path.exists() {
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let Some(before) = Ledger::parse(&text) else {
            bail!("{} is no ledger; remove it", path.display());
        };
        before
    } else {
        Ledger::default()
    };
    let ledger = before.with(round);
    let part = path.with_extension("part");
    fs::write(&part, ledger.to_json().to_string()).with_context(|| format!("cannot write {}", part.display()))?;
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
        }
    }

    fn ledger(rounds: &[&[&str]]) -> Ledger {
        let rounds = rounds.iter().enumerate();
        rounds.fold(Ledger::default(), |ledger, (at, again)| {
            ledger.with(round(u64::try_from(at).unwrap(), again))
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
        assert_eq!(forgotten.rounds.len(), ROUNDS);
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
    fn it_outlives_the_round_in_the_cache_and_what_is_no_ledger_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        record(&cache, round(1, &["a"])).unwrap();
        let second = record(&cache, round(2, &["a"])).unwrap();
        assert_eq!(second.unreliable(), ["a"]);
        assert_eq!(Ledger::parse(&second.to_json().to_string()).unwrap(), second);
        fs::write(path(&cache), "{\"rounds\":[{}]}").unwrap();
        let error = record(&cache, round(3, &[])).unwrap_err().to_string();
        assert!(error.contains("ledger.json is no ledger"), "{error}");
    }
}
