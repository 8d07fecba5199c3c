//! Adding up what cargo's test programs say.

use super::skip::{Kind, Skip};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// How many tests ended how.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u32,
    pub(crate) failed: u32,
    pub(crate) skipped: u32,
    /// How many of those that passed had failed before, and passed when they were run once more.
    pub(crate) mended: u32,
}

impl Tally {
    pub(crate) fn add(&mut self, other: &Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
        self.mended += other.mended;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} passed", self.passed)?;
        if self.mended > 0 {
            write!(out, " ({} of them at the second try)", self.mended)?;
        }
        write!(out, ", {} failed, {} skipped", self.failed, self.skipped)
    }
}

/// A test that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// Name of the test in its program.
    pub(crate) test: String,
    /// The beginning of what it said, where an error stands; at most [`MAX_FAILURE_LINES`] lines.
    pub(crate) output: Vec<String>,
}

/// What became of a run of tests.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) tally: Tally,
    pub(crate) failures: Vec<Failure>,
    pub(crate) skips: Vec<Skip>,
    /// How long each test took that told of it, by its program's name and its own.
    pub(crate) times: Vec<(String, Duration)>,
    /// How long each program took, by its name.
    pub(crate) programs: BTreeMap<String, Duration>,
}

impl Outcome {
    /// Takes along what became of other tests.
    pub(crate) fn add(&mut self, other: Self) {
        self.tally.add(&other.tally);
        self.failures.extend(other.failures);
        self.skips.extend(other.skips);
        self.times.extend(other.times);
        self.programs.extend(other.programs);
    }

    /// Takes the second try of the one test that failed: it counts as it ended then, and what it
    /// said is kept of both.
    pub(crate) fn mend(&mut self, second: Self) {
        let mended = u32::from(second.tally.failed == 0 && second.tally.passed > 0);
        self.tally.failed -= mended.min(self.tally.failed);
        self.tally.passed += mended;
        self.tally.mended += mended;
        self.failures.extend(second.failures);
        self.skips.extend(second.skips);
    }
}

/// Lines of a failure that are kept: an error, and the states that it names.
const MAX_FAILURE_LINES: usize = 60;

/// What the harness says of a test that runs for a minute. Nearly all of the system's wait so long
/// for their turns.
const RUNS_LONG: &str = " has been running for over ";
/// What a test says that waited until others had ended.
pub(crate) const WAITED: &str = "its turn came after ";

/// Reads the lines of a test program that was run with `--show-output` and `--report-time`.
///
/// A test that passes may say `skipped: reason` or `skipped (kind): reason`: it then counts as
/// skipped. The rest of what passing tests say is dropped.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    tally: Tally,
    failures: Vec<Failure>,
    skips: Vec<Skip>,
    times: Vec<(String, Duration)>,
    section: Section,
    /// Passing tests of the current program that said they skipped.
    told: u32,
    /// Programs that began and have given no result yet.
    begun: u32,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Section {
    #[default]
    Progress,
    /// The output of tests that passed: the name of the current one, and whether it has told of a
    /// skip.
    Passed { test: String, told: bool },
    /// The output of tests that failed.
    Failed,
}

impl Reader {
    /// Takes one line; gives back what of it is worth showing.
    pub(crate) fn read<'a>(&mut self, line: &'a str) -> Option<&'a str> {
        if let Some(counts) = line.strip_prefix("test result: ").and_then(parse_result) {
            self.section = Section::Progress;
            self.begun = self.begun.saturating_sub(1);
            let told = std::mem::take(&mut self.told).min(counts.passed);
            self.tally.add(&Tally {
                passed: counts.passed - told,
                skipped: counts.skipped + told,
                ..counts
            });
            return Some(line);
        }
        if self.section == Section::Progress && is_beginning(line) {
            self.begun += 1;
        }
        match line {
            "successes:" => {
                self.section = Section::Passed {
                    test: String::new(),
                    told: false,
                }
            }
            "failures:" => self.section = Section::Failed,
            _ => {}
        }
        match &mut self.section {
            Section::Passed { test, told } => {
                if let Some(name) = headed(line) {
                    (*test, *told) = (name.to_owned(), false);
                }
                if let Some(waited) = waited(line) {
                    let times = self.times.iter_mut().filter(|(name, _)| name == test);
                    times.for_each(|(_, took)| *took = took.saturating_sub(waited));
                }
                let kind = Kind::told(line)?;
                self.skips.push(Skip {
                    kind,
                    test: test.clone(),
                    line: line.to_owned(),
                });
                if !*told {
                    *told = true;
                    self.told += 1;
                }
                Some(line)
            }
            Section::Failed => {
                self.keep(line);
                Some(line)
            }
            // Which test takes long is told at the end, without what it waited for.
            Section::Progress if line.starts_with("test ") && line.contains(RUNS_LONG) => None,
            Section::Progress => {
                self.skips.extend(unread(line));
                let passed = match timed(line) {
                    Some((test, verdict, took)) => {
                        self.times.push((test.to_owned(), took));
                        verdict == "ok"
                    }
                    None => line.ends_with(" ... ok"),
                };
                (!passed && !line.is_empty()).then_some(line)
            }
        }
    }

    /// How many tests have told of their end.
    pub(crate) fn ended(&self) -> usize {
        self.times.len()
    }

    /// What came of the program of that name. One that gave no result fell over a test and counts
    /// as failed.
    pub(crate) fn finish(mut self, program: &str) -> Outcome {
        self.tally.failed += self.begun;
        let times = self.times.into_iter();
        Outcome {
            tally: self.tally,
            failures: self.failures,
            skips: self.skips,
            times: times.map(|(test, took)| (format!("{program} {test}"), took)).collect(),
            programs: BTreeMap::new(),
        }
    }

    /// Keeps a line of a failed test; the list of names after the last one holds nothing new.
    fn keep(&mut self, line: &str) {
        if let Some(test) = headed(line) {
            self.failures.push(Failure {
                test: test.to_owned(),
                output: Vec::new(),
            });
        } else if let Some(failure) = self.failures.last_mut()
            && line != "failures:"
            && line.trim() != failure.test
            && !line.is_empty()
            && failure.output.len() < MAX_FAILURE_LINES
        {
            failure.output.push(line.to_owned());
        }
    }
}

/// `---- name stdout ----`
fn headed(line: &str) -> Option<&str> {
    line.strip_prefix("---- ")?.strip_suffix(" stdout ----")
}

/// A skip among the results: a test that is ignored, or one that told from a thread whose output
/// nobody caught.
fn unread(line: &str) -> Option<Skip> {
    let ignored = || {
        let (test, verdict) = line.strip_prefix("test ")?.split_once(" ... ")?;
        verdict.starts_with("ignored").then(|| (Kind::Other, test.to_owned()))
    };
    let told = || Some((Kind::told(line)?, String::new()));
    let (kind, test) = ignored().or_else(told)?;
    Some(Skip {
        kind,
        test,
        line: line.to_owned(),
    })
}

/// `test a::b ... ok <0.250s>`: the test, the verdict and how long it took.
fn timed(line: &str) -> Option<(&str, &str, Duration)> {
    let (test, rest) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let (verdict, took) = rest.strip_suffix("s>")?.split_once(" <")?;
    let took = Duration::try_from_secs_f64(took.parse().ok()?).ok()?;
    Some((test, verdict, took))
}

/// `its turn came after 12.345 s`: how long a test waited before it began.
fn waited(line: &str) -> Option<Duration> {
    let seconds = line.strip_prefix(WAITED)?.strip_suffix(" s")?;
    Duration::try_from_secs_f64(seconds.parse().ok()?).ok()
}

/// `running 5 tests`
fn is_beginning(line: &str) -> bool {
    let count = line.strip_prefix("running ").and_then(|rest| rest.split_once(" test"));
    count.is_some_and(|(count, end)| count.parse::<u32>().is_ok() && matches!(end, "" | "s"))
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
        mended: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Tally, Vec<&str>) {
        let mut reader = Reader::default();
        let shown = text.lines().filter_map(|line| reader.read(line)).collect();
        (reader.finish("p").tally, shown)
    }

    #[test]
    fn a_failure_keeps_its_name_and_what_it_said_first() {
        let more = ["line"; 100].join("\n");
        let text = format!(
            "failures:\n\n---- a::b stdout ----\nError: it broke\n\n---- c stdout ----\n{more}\n\nfailures:\n    a::b\n    c\n\n\
             test result: FAILED. 0 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n"
        );
        let mut reader = Reader::default();
        for line in text.lines() {
            reader.read(line);
        }
        let Outcome { tally, failures, .. } = reader.finish("p");
        assert_eq!(tally.failed, 2);
        let names: Vec<&str> = failures.iter().map(|failure| failure.test.as_str()).collect();
        assert_eq!(names, ["a::b", "c"]);
        assert_eq!(failures[0].output, ["Error: it broke"]);
        assert_eq!(failures[1].output.len(), MAX_FAILURE_LINES);
        assert_eq!(failures[1].output[0], "line");
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
                skipped: 1,
                mended: 0
            }
        );
        assert_eq!(tally.to_string(), "5 passed, 1 failed, 1 skipped");
        let mended = Tally { mended: 2, ..tally };
        assert_eq!(
            mended.to_string(),
            "5 passed (2 of them at the second try), 1 failed, 1 skipped"
        );
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
                skipped: 1,
                mended: 0
            }
        );
        assert!(shown.contains(&"skipped: no corpus") && !shown.contains(&"chatter"));
    }

    #[test]
    fn a_program_that_falls_over_a_test_counts_as_failed_beside_the_tests_that_are_named() {
        let text = "running 1 test\ntest a ... FAILED\n\nfailures:\n\n---- a stdout ----\nit broke\n\nfailures:\n    a\n\n\
            test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\n\
            running 2 tests\ntest b ... ok\n";
        let (tally, _) = read(text);
        assert_eq!(tally.failed, 2);
    }

    #[test]
    fn every_skip_is_kept_with_its_kind_and_its_test() {
        let text = "running 3 tests\ntest c ... ignored, takes long\nskipped: told from a thread\ntest a ... ok\ntest b ... ok\n\n\
            successes:\n\n---- a stdout ----\nskipped (corpus): x\nskipped (gpu): y\n---- b stdout ----\nskipped: z\n\n\
            successes:\n    a\n    b\n\n\
            test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";
        let mut reader = Reader::default();
        for line in text.lines() {
            reader.read(line);
        }
        let outcome = reader.finish("p");
        assert_eq!((outcome.tally.passed, outcome.tally.skipped), (0, 3));
        let skips: Vec<(Kind, &str)> = outcome
            .skips
            .iter()
            .map(|skip| (skip.kind, skip.test.as_str()))
            .collect();
        assert_eq!(
            skips,
            [
                (Kind::Other, "c"),
                (Kind::Other, ""),
                (Kind::Corpus, "a"),
                (Kind::Gpu, "a"),
                (Kind::Other, "b")
            ]
        );
    }

    #[test]
    fn the_time_of_a_test_is_kept_whether_it_passed_or_failed_and_only_the_failure_is_shown() {
        let text = "running 2 tests\ntest a::b ... ok <1.250s>\ntest c ... FAILED <0.001s>\n\n\
            test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.30s\n";
        let mut reader = Reader::default();
        let shown: Vec<&str> = text.lines().filter_map(|line| reader.read(line)).collect();
        assert_eq!(shown[1], "test c ... FAILED <0.001s>");
        let milliseconds = Duration::from_millis;
        let times = [
            ("p a::b".to_owned(), milliseconds(1250)),
            ("p c".to_owned(), milliseconds(1)),
        ];
        assert_eq!(reader.finish("p").times, times);
    }

    #[test]
    fn what_a_test_waited_for_its_turn_is_none_of_its_time_and_nobody_is_told_that_it_waits() {
        let text = "running 2 tests\ntest a has been running for over 60 seconds\ntest a ... ok <90.500s>\ntest b ... ok <2.000s>\n\n\
            successes:\n\n---- a stdout ----\nits turn came after 80.250 s\n\nsuccesses:\n    a\n    b\n\n\
            test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 90.50s\n";
        let mut reader = Reader::default();
        let shown: Vec<&str> = text.lines().filter_map(|line| reader.read(line)).collect();
        assert!(!shown.iter().any(|line| line.contains("a has been")), "{shown:?}");
        let times = [("p a", 10_250), ("p b", 2000)].map(|(test, took)| (test.to_owned(), Duration::from_millis(took)));
        assert_eq!(reader.finish("p").times, times);
    }

    #[test]
    fn lines_that_only_look_like_results_count_nothing() {
        assert_eq!(
            read("test result: pending\ntest result: ok. many passed").0,
            Tally::default()
        );
    }
}
