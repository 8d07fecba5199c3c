//! The viewer: built with Node into `web/dist/site`, from where the programs that serve it embed
//! it; and its tests.

use crate::test::{Failure, Kind, Outcome, Skip, Tally};
use anyhow::{Context as _, Result, bail};
use clap::Args;
use flopwatch_toolchain::cache::{self, Cache};
use flopwatch_toolchain::node::{self, Node};
use flopwatch_toolchain::progress::{result, say, step};
use flopwatch_toolchain::{debian, project};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Far more than a busy machine takes for any of its steps.
const STEP_TIMEOUT: Duration = Duration::from_mins(15);
/// The stamps of a build whose types were checked, and of any other, below `web/dist`: what the
/// build was made of.
const CHECKED: &str = "built";
const UNCHECKED: &str = "built-unchecked";
/// What makes the site, and its argument.
const BUNDLER: (&str, &str) = ("vite/bin/vite.js", "build");
/// What the build is made of, below `web`.
const SOURCES: &[&str] = &[
    ".npmrc",
    "gateway.html",
    "index.html",
    "package-lock.json",
    "package.json",
    "src",
    "tests/data/synthetic.h5",
    "tsconfig.json",
    "vite.config.ts",
];

/// The tests, each by the file that configures it.
const SUITES: [(&str, &str); 2] = [
    ("viewer", "vite.config.ts"),
    ("viewer in a browser", "tests/vitest.config.ts"),
];
/// What the README shows of the viewer.
const PICTURE: &str = "docs/viewer.png";
/// How vitest calls a test that it did not run.
const NOT_RUN: [&str; 3] = ["pending", "skipped", "todo"];
/// Lines of a failure that are shown.
const MAX_FAILURE_LINES: usize = 20;

/// What to do beside building.
#[derive(Debug, Args)]
pub(crate) struct WebOptions {
    /// Run its tests too: the pure parts, and the whole of it in Debian's Chromium.
    #[arg(long)]
    test: bool,
    /// Take the README's picture of this timeline file.
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,
}

/// Builds the viewer, and tests it where that was asked.
pub(crate) fn run(cache: &Cache, options: &WebOptions) -> Result<()> {
    step("build", || build(cache))?;
    if options.test || options.picture.is_some() {
        debian::install(debian::BROWSER)?;
    }
    if let Some(file) = &options.picture {
        step("picture", || picture(cache, file))?;
    }
    if !options.test {
        return Ok(());
    }
    let Outcome { tally, failures, .. } = test(cache);
    for Failure { test, output } in &failures {
        say(format_args!("{test} failed:\n    {}", output.join("\n    ")));
    }
    result(&tally);
    if tally.failed > 0 {
        bail!("{} failed", tally.failed);
    }
    Ok(())
}

/// Builds the viewer unless what is there was made of the same sources.
pub(crate) fn build(cache: &Cache) -> Result<()> {
    make(cache, CHECKED, &[("typescript/bin/tsc", "--noEmit"), BUNDLER])
}

/// Builds it as [`build`] does, for somebody who waits for it and changes nothing: the types of its
/// sources are not checked.
pub(crate) fn build_quickly(cache: &Cache) -> Result<()> {
    make(cache, UNCHECKED, &[BUNDLER])
}

/// Runs tools of the viewer's packages, one after the other, unless the stamp says that they were
/// run on the same sources. What was checked serves who asks for no check.
fn make(cache: &Cache, stamp: &str, tools: &[(&str, &str)]) -> Result<()> {
    let web = folder()?;
    let dist = web.join("dist");
    let key = fingerprint(&web, SOURCES)?;
    let is_made = |stamp: &str| fs::read_to_string(dist.join(stamp)).is_ok_and(|known| known == key);
    if dist.join("site/index.html").exists() && (is_made(CHECKED) || is_made(stamp)) {
        return Ok(());
    }
    let _lock = cache.lock("web")?;
    let node = packages(cache, &web)?;
    for stamp in [CHECKED, UNCHECKED] {
        cache::remove(&dist.join(stamp))?;
    }
    // As `npm run build` does, without npm's own words in the place of theirs.
    for (tool, argument) in tools {
        node.run(&web.join("node_modules").join(tool))
            .arg(argument)
            .dir(&web)
            .deadline(STEP_TIMEOUT)
            .quiet()?;
    }
    let stamp = dist.join(stamp);
    fs::write(&stamp, key).with_context(|| format!("cannot write {}", stamp.display()))
}

fn picture(cache: &Cache, file: &Path) -> Result<()> {
    let web = folder()?;
    packages(cache, &web)?
        .run(&web.join("tests/picture.mjs"))
        .arg(std::path::absolute(file)?)
        .arg(project::root()?.join(PICTURE))
        .dir(&web)
        .deadline(STEP_TIMEOUT)
        .quiet()
}

/// Opens a timeline that `program` serves, and measures the viewer on it: a line of JSON.
pub(crate) fn measure(cache: &Cache, program: &Path, timeline: &Path) -> Result<String> {
    let web = folder()?;
    let run = packages(cache, &web)?.run(&web.join("tests/measure.mjs"));
    run.arg(program).arg(timeline).dir(&web).deadline(STEP_TIMEOUT).output()
}

/// Runs the tests of the pure parts and those in a browser.
pub(crate) fn test(cache: &Cache) -> Outcome {
    let mut outcome = Outcome::default();
    for (name, config) in SUITES {
        let ended = build(cache).and_then(|()| vitest(cache, config));
        let suite = ended.unwrap_or_else(|error| Outcome {
            // It did not come as far as its tests.
            tally: Tally {
                failed: 1,
                ..Tally::default()
            },
            failures: vec![failure(name, &format!("{error:#}"))],
            ..Outcome::default()
        });
        say(format_args!("{name}: {}", suite.tally));
        outcome.add(suite);
    }
    outcome
}

fn vitest(cache: &Cache, config: &str) -> Result<Outcome> {
    let web = folder()?;
    let node = packages(cache, &web)?;
    let report = web.join("node_modules/report.json");
    // That of an earlier run must not be taken for this one's.
    cache::remove(&report)?;
    let outcome = node
        .run(&web.join("node_modules/vitest/vitest.mjs"))
        .args(["run", "--config", config, "--reporter=json"])
        .arg(format!("--outputFile={}", report.display()))
        .dir(&web)
        .deadline(STEP_TIMEOUT)
        .quiet();
    let read = fs::read_to_string(&report).ok().and_then(|text| parse(&text));
    match (read, outcome) {
        (Some(read), outcome) if outcome.is_ok() || read.tally.failed > 0 => Ok(read),
        (_, Err(error)) => Err(error),
        (_, Ok(())) => bail!("vitest left no report that can be read"),
    }
}

/// What vitest reports: the counts, what failed and what was left out.
fn parse(report: &str) -> Option<Outcome> {
    let report: Value = serde_json::from_str(report).ok()?;
    let count = |name: &str| u32::try_from(report.get(name)?.as_u64()?).ok();
    let mut tally = Tally {
        passed: count("numPassedTests")?,
        failed: count("numFailedTests")?,
        skipped: count("numPendingTests")?.saturating_add(count("numTodoTests").unwrap_or(0)),
        ..Tally::default()
    };
    let (mut failures, mut skips) = (Vec::new(), Vec::new());
    for file in report.get("testResults")?.as_array()? {
        let tests = file.get("assertionResults").and_then(Value::as_array);
        let tests = tests.map(Vec::as_slice).unwrap_or_default();
        let failed: Vec<&Value> = tests.iter().filter(|test| text(test, "status") == "failed").collect();
        if text(file, "status") == "failed" && failed.is_empty() {
            // The file could not be read, or what its tests share failed.
            tally.failed = tally.failed.saturating_add(1);
            failures.push(failure(text(file, "name"), text(file, "message")));
        }
        let left_out = tests.iter().filter(|test| NOT_RUN.contains(&text(test, "status")));
        skips.extend(left_out.map(|test| Skip {
            kind: Kind::Other,
            test: text(test, "fullName").to_owned(),
            line: text(test, "status").to_owned(),
        }));
        for test in failed {
            let output = test.get("failureMessages").and_then(Value::as_array);
            let output = output.and_then(|all| all.first()).and_then(Value::as_str);
            failures.push(failure(text(test, "fullName"), output.unwrap_or_default()));
        }
    }
    Some(Outcome {
        tally,
        failures,
        skips,
        ..Outcome::default()
    })
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn failure(test: &str, output: &str) -> Failure {
    Failure {
        test: test.to_owned(),
        output: output.lines().take(MAX_FAILURE_LINES).map(str::to_owned).collect(),
    }
}

/// Node, and the packages that the lock file pins.
fn packages(cache: &Cache, web: &Path) -> Result<Node> {
    let node = node::ensure(cache)?;
    let stamp = web.join("node_modules/installed");
    let key = fingerprint(web, &["package-lock.json", "package.json"])?;
    if fs::read_to_string(&stamp).is_ok_and(|known| known == key) {
        return Ok(node);
    }
    let _lock = cache.lock("web-packages")?;
    say("fetching the viewer's packages from npm");
    node.npm()
        .args(["ci", "--no-audit", "--no-fund", "--ignore-scripts"])
        .dir(web)
        .deadline(STEP_TIMEOUT)
        .quiet()?;
    fs::write(&stamp, key).with_context(|| format!("cannot write {}", stamp.display()))?;
    Ok(node)
}

fn folder() -> Result<PathBuf> {
    Ok(project::root()?.join("web"))
}

/// Changes with any of the files.
fn fingerprint(web: &Path, names: &[&str]) -> Result<String> {
    let mut files = Vec::new();
    for name in names {
        collect(&web.join(name), &mut files)?;
    }
    files.sort();
    let mut pins = Vec::new();
    for file in files {
        pins.push(file.strip_prefix(web)?.display().to_string());
        pins.push(cache::file_hash(&file)?);
    }
    let pins: Vec<&str> = pins.iter().map(String::as_str).collect();
    Ok(cache::key(&pins))
}

fn collect(path: &Path, into: &mut Vec<PathBuf>) -> Result<()> {
    if !path.is_dir() {
        into.push(path.to_owned());
        return Ok(());
    }
    for entry in fs::read_dir(path).with_context(|| format!("cannot read {}", path.display()))? {
        collect(&entry?.path(), into)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_tells_counts_and_what_failed() {
        let report = r#"{"numPassedTests":3,"numFailedTests":1,"numPendingTests":1,"numTodoTests":0,"testResults":[
            {"name":"a.test.ts","status":"failed","message":"","assertionResults":[
                {"fullName":"it works","status":"passed","failureMessages":[]},
                {"fullName":"it waits","status":"skipped","failureMessages":[]},
                {"fullName":"it adds up","status":"failed","failureMessages":["expected 3 to be 4"]}]},
            {"name":"b.test.ts","status":"failed","message":"no such module","assertionResults":[]}]}"#;
        let Outcome {
            tally, failures, skips, ..
        } = parse(report).unwrap();
        assert_eq!((tally.passed, tally.failed, tally.skipped), (3, 2, 1));
        let told = [("it adds up", "expected 3 to be 4"), ("b.test.ts", "no such module")];
        assert_eq!(failures, told.map(|(test, output)| failure(test, output)));
        let skips: Vec<(Kind, &str)> = skips.iter().map(|skip| (skip.kind, skip.test.as_str())).collect();
        assert_eq!(skips, [(Kind::Other, "it waits")]);
    }

    #[test]
    fn what_is_no_report_counts_nothing() {
        assert!(parse("{}").is_none() && parse("killed").is_none());
    }

    #[test]
    fn the_build_is_stale_when_any_of_its_sources_changed() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        fs::create_dir(folder.path().join("src")).unwrap();
        write("src/a.ts", "1");
        let key = || fingerprint(folder.path(), &["src"]).unwrap();
        let first = key();
        assert_eq!(first, key());
        write("src/b.ts", "");
        let second = key();
        assert_ne!(first, second);
        write("src/a.ts", "2");
        assert_ne!(second, key());
    }
}
