//! Names and sentences that tell a reader nothing: constants that do not say what they bound, and
//! docs that say what their item's name says.
//!
//! docs/glossary.md has the project's words. What can be told from a line alone is held here.

use super::tracked;
use anyhow::{Result, bail};

/// First words of constants that are a verb or a pronoun in the place of a bound.
const PRIVATE_WORDS: [&str; 8] = ["AGAIN", "GIVE", "LOOK", "MISSED", "MOST", "ROOM", "TRIED", "TURN"];
/// What the name of a constant of the type `Duration` says: what the time is of.
const OF_TIMES: [&str; 15] = [
    "AGE", "BUDGET", "COST", "DEADLINE", "DELAY", "DURATION", "GRACE", "INTERVAL", "LIFETIME", "MARGIN", "PAUSE",
    "SILENCE", "TIME", "TIMEOUT", "TTL",
];
/// What begins a name that bounds a time.
const BOUNDS: [&str; 2] = ["MAX", "MIN"];
/// Docs that name nothing.
const FILLERS: [&str; 8] = [
    "Its name.",
    "Its end.",
    "Its number.",
    "The result.",
    "Their names.",
    "What it is.",
    "What it said.",
    "What the operating system said.",
];

/// Fails on such a name or sentence in a source.
pub(super) fn check() -> Result<()> {
    let mut found = Vec::new();
    for (file, content) in tracked(&["*.rs"])? {
        found.extend(faults(&content).map(|(number, fault)| format!("{file}:{number}: {fault}")));
    }
    if found.is_empty() {
        return Ok(());
    }
    bail!(
        "names and docs that tell nothing (docs/glossary.md has the words):\n{}",
        found.join("\n")
    )
}

/// The faults of a source, each with its line, from 1.
fn faults(content: &str) -> impl Iterator<Item = (usize, String)> {
    (1..).zip(content.lines()).filter_map(|(number, line)| {
        let fault = of_constant(line).or_else(|| of_doc(line))?;
        Some((number, fault))
    })
}

/// What is wrong with the constant that a line declares.
fn of_constant(line: &str) -> Option<String> {
    let (before, rest) = line.split_once("const ").or_else(|| line.split_once("static "))?;
    let (name, rest) = rest.split_once(": ")?;
    let is_declared = before.trim_start().is_empty() || before.trim_start().starts_with("pub");
    let is_constant = name
        .bytes()
        .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
    if !is_declared || !is_constant {
        return None;
    }
    let words: Vec<&str> = name.split('_').collect();
    let first = words.first().copied().unwrap_or_default();
    if PRIVATE_WORDS.contains(&first) {
        return Some(format!("{name} does not say what it bounds"));
    }
    let says_time = BOUNDS.contains(&first) || words.iter().any(|word| OF_TIMES.contains(word));
    (rest.starts_with("Duration") && !says_time).then(|| format!("{name} does not say what its time is of"))
}

/// What is wrong with the doc that a line is.
fn of_doc(line: &str) -> Option<String> {
    let doc = line.trim_start().strip_prefix("/// ")?;
    FILLERS.contains(&doc).then(|| format!("{doc:?} names nothing"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_names_what_it_means() {
        check().unwrap();
    }

    #[test]
    fn constants_and_docs_that_tell_nothing_are_found_and_no_others() {
        let source = [
            "const MOST: usize = 4;",
            "    pub(super) const LOOK_EVERY: u64 = 1;",
            "const MAX_READS: usize = 4;",
            "const START: Duration = Duration::ZERO;",
            "const START_TIMEOUT: Duration = Duration::ZERO;",
            "fn f<const MOST: usize>() {}",
            "    /// Its name.",
            "    /// Its name in the cluster.",
            "static TURN: Mutex<()> = Mutex::new(());",
        ]
        .join("\n");
        let lines: Vec<usize> = faults(&source).map(|(number, _)| number).collect();
        assert_eq!(lines, [1, 2, 4, 7, 9]);
    }
}
