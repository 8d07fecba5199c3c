//! Adding up what cargo's test programs say.

use std::fmt;

/// How many tests ended how.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u32,
    pub(crate) failed: u32,
    pub(crate) skipped: u32,
}

impl Tally {
    pub(crate) fn add(&mut self, other: &Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{} passed, {} failed, {} skipped",
            self.passed, self.failed, self.skipped
        )
    }
}

/// Reads the lines of `cargo test -- --show-output`.
///
/// A test that passes may say `skipped: reason`: it then counts as skipped. The rest of what passing tests say is dropped.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    tally: Tally,
    section: Section,
    /// Passing tests of the current program that said they skipped.
    told: u32,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Section {
    #[default]
    Progress,
    /// The output of tests that passed; whether the current one has told of a skip.
    Passed { told: bool },
    /// The output of tests that failed.
    Failed,
}

impl Reader {
    /// Takes one line; gives back what of it is worth showing.
    pub(crate) fn read<'a>(&mut self, line: &'a str) -> Option<&'a str> {
        if let Some(counts) = line.strip_prefix("test result: ").and_then(parse_result) {
            self.section = Section::Progress;
            let told = std::mem::take(&mut self.told).min(counts.passed);
            self.tally.add(&Tally {
                passed: counts.passed - told,
                skipped: counts.skipped + told,
                ..counts
            });
            return Some(line);
        }
        match line {
            "successes:" => self.section = Section::Passed { told: false },
            "failures:" => self.section = Section::Failed,
            _ => {}
        }
        match &mut self.section {
            Section::Passed { told } => {
                if line.starts_with("---- ") {
                    *told = false;
                }
                let skip = line.starts_with("skipped: ");
                if skip && !*told {
                    *told = true;
                    self.told += 1;
                }
                skip.then_some(line)
            }
            Section::Failed => Some(line),
            Section::Progress => (!line.ends_with(" ... ok") && !line.is_empty()).then_some(line),
        }
    }

    pub(crate) fn finish(self) -> Tally {
        self.tally
    }
}

/// `ok. 5 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s`
fn parse_result(text: &str) -> Option<Tally> {
    let counts = text.split_once(". ")?.1;
    let count = |word: &str| {
        let part = counts
            .split(';')
            .map(str::trim)
            .find_map(|part| part.strip_suffix(word))?;
        part.trim().parse().ok()
    };
    Some(Tally {
        passed: count("passed")?,
        failed: count("failed")?,
        skipped: count("ignored")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Tally, Vec<&str>) {
        let mut reader = Reader::default();
        let shown = text.lines().filter_map(|line| reader.read(line)).collect();
        (reader.finish(), shown)
    }

    #[test]
    fn results_of_all_programs_are_added_up() {
        let text = "running 2 tests\ntest a ... ok\ntest b ... ok\n\nsuccesses:\n\nsuccesses:\n    a\n    b\n\n\
            test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\n\
            test c ... FAILED\n\nfailures:\n\n---- c stdout ----\nit broke\n\nfailures:\n    c\n\n\
            test result: FAILED. 3 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";
        let (tally, shown) = read(text);
        assert_eq!(
            tally,
            Tally {
                passed: 5,
                failed: 1,
                skipped: 1
            }
        );
        assert_eq!(tally.to_string(), "5 passed, 1 failed, 1 skipped");
        assert!(shown.contains(&"it broke") && shown.contains(&"test c ... FAILED"));
        assert!(!shown.contains(&"test a ... ok"));
    }

    #[test]
    fn a_test_that_says_it_skipped_does_not_count_as_passed() {
        let text = "successes:\n\n---- a stdout ----\nskipped: no corpus\nskipped: and no nsys\n---- b stdout ----\nchatter\n\n\
            successes:\n    a\n    b\n\n\
            test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";
        let (tally, shown) = read(text);
        assert_eq!(
            tally,
            Tally {
                passed: 1,
                failed: 0,
                skipped: 1
            }
        );
        assert!(shown.contains(&"skipped: no corpus") && !shown.contains(&"chatter"));
    }

    #[test]
    fn lines_that_only_look_like_results_count_nothing() {
        assert_eq!(
            read("test result: pending\ntest result: ok. many passed").0,
            Tally::default()
        );
    }
}
