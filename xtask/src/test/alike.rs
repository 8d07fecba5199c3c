//! Failures in the same words, which are said once: where a cluster cannot be made ready, a hundred
//! tests fail by it, and the one cause would be lost among them.

use super::tally::{Failure, WAITED};
use std::fmt;

/// Most tests that are named of those that failed in the same words as another.
const MAX_NAMED: usize = 5;

/// Tests that failed in the same words, in their order.
pub(crate) struct Alike<'a> {
    tests: Vec<&'a str>,
    output: &'a [String],
}

/// The failures, those in the same words together.
pub(crate) fn alike(failures: &[Failure]) -> Vec<Alike<'_>> {
    let mut groups: Vec<Alike<'_>> = Vec::new();
    for Failure { test, output } in failures {
        let known = groups.iter_mut().find(|group| words(group.output).eq(words(output)));
        match known {
            Some(group) if words(output).next().is_some() => group.tests.push(test),
            _ => groups.push(Alike {
                tests: vec![test],
                output,
            }),
        }
    }
    groups
}

/// What a test said, without what is of this test alone: how long it waited, and its thread.
fn words(output: &[String]) -> impl Iterator<Item = &str> {
    let lines = output.iter().map(|line| line.trim());
    lines.filter(|line| !line.is_empty() && !line.starts_with(WAITED) && !line.starts_with("thread '"))
}

impl fmt::Display for Alike<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, others) = self.tests.split_first().unwrap_or((&"a test", &[]));
        write!(out, "{first} failed")?;
        if !others.is_empty() {
            let named = others.get(..MAX_NAMED).unwrap_or(others);
            write!(
                out,
                ", and {} more in the same words: {}",
                others.len(),
                named.join(", ")
            )?;
            if others.len() > named.len() {
                write!(out, ", ...")?;
            }
        }
        write!(out, ":\n    {}", self.output.join("\n    "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(test: &str, output: &[&str]) -> Failure {
        Failure {
            test: test.to_owned(),
            output: output.iter().map(|&line| line.to_owned()).collect(),
        }
    }

    #[test]
    fn what_failed_by_one_cause_is_said_once_with_how_many_there_are() {
        let mut failures: Vec<Failure> = (0..8)
            .map(|at| {
                let waited = format!("{WAITED}{at}.000 s");
                failure(&format!("t{at}"), &[&waited, "Error: no chart"])
            })
            .collect();
        failures.insert(1, failure("other", &["Error: another"]));
        let told: Vec<String> = alike(&failures).iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "t0 failed, and 7 more in the same words: t1, t2, t3, t4, t5, ...:\n    its turn came after 0.000 s\n    Error: no chart",
                "other failed:\n    Error: another",
            ]
        );
    }

    #[test]
    fn tests_that_said_nothing_are_each_told() {
        let failures = [failure("a", &[]), failure("b", &["thread 'b' (4) panicked at b.rs:1"])];
        assert_eq!(alike(&failures).len(), 2);
    }
}
