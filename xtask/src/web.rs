//! The viewer: built with Node into `web/dist/site`, from where the programs that serve it embed it; and its tests.

use crate::cache::{self, Cache};
use crate::command::Run;
use crate::node::{self, Node};
use crate::progress::{result, say, step};
use crate::test::Tally;
use crate::{debian, project};
use anyhow::{Context as _, Result, bail};
use clap::Args;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Far more than a busy machine takes for any of its steps.
const DEADLINE: Duration = Duration::from_mins(15);
/// What the build is made of, below `web`.
const SOURCES: &[&str] = &[
    ".npmrc",
    "index.html",
    "package-lock.json",
    "package.json",
    "src",
    "tsconfig.json",
    "vite.config.ts",
];

/// What to do beside building.
#[derive(Debug, Args)]
pub(crate) struct WebOptions {
    /// Run its tests too: the pure parts, and the whole of it in Debian's Chromium.
    #[arg(long)]
    test: bool,
}

/// Builds the viewer, and tests it where that was asked.
pub(crate) fn run(cache: &Cache, options: &WebOptions) -> Result<()> {
    step("build", || build(cache))?;
    if !options.test {
        return Ok(());
    }
    debian::install(debian::BROWSER)?;
    let (tally, outcome) = test(cache);
    result(&tally);
    outcome
}

/// Builds the viewer unless what is there was made of the same sources.
pub(crate) fn build(cache: &Cache) -> Result<()> {
    let web = folder()?;
    let stamp = web.join("dist/built");
    let key = fingerprint(&web, SOURCES)?;
    if web.join("dist/site/index.html").exists() && fs::read_to_string(&stamp).is_ok_and(|known| known == key) {
        return Ok(());
    }
    let _lock = cache.lock("web")?;
    let node = packages(cache, &web)?;
    remove_stamp(&stamp)?;
    node.npm()?.args(["run", "build"]).dir(&web).deadline(DEADLINE).quiet()?;
    fs::write(&stamp, key).with_context(|| format!("cannot write {}", stamp.display()))
}

/// Runs the tests of the pure parts and those in a browser.
pub(crate) fn test(cache: &Cache) -> (Tally, Result<()>) {
    let mut tally = Tally::default();
    let mut failed = Vec::new();
    for (name, config) in [("viewer", "vite.config.ts"), ("viewer in a browser", "tests/vitest.config.ts")] {
        let (more, outcome) = vitest(cache, config);
        say(format_args!("{name}: {more}"));
        tally.add(&more);
        if let Err(error) = outcome {
            say(format_args!("{name}: {error:#}"));
            failed.push(name);
        }
    }
    if failed.is_empty() {
        (tally, Ok(()))
    } else {
        (tally, Err(anyhow::anyhow!("failed: {}", failed.join(", "))))
    }
}

fn vitest(cache: &Cache, config: &str) -> (Tally, Result<()>) {
    let mut read = None;
    let outcome = folder().and_then(|web| {
        let node = packages(cache, &web)?;
        let report = web.join("node_modules/report.json");
        // That of an earlier run must not be taken for this one's.
        cache::remove(&report)?;
        let outcome =
        node.run(&web.join("node_modules/vitest/vitest.mjs"))?
            .args(["run", "--config", config, "--reporter=json"])
            .arg(format!("--outputFile={}", report.display()))
            .dir(&web)
            .deadline(DEADLINE)
            .quiet()
    })();
    let read = fs::read_to_string(&report).ok().and_then(|text| parse(&text));
    match (read, outcome) {
        (Some((tally, complaints)), outcome) => {
            complaints.iter().for_each(say);
            let failed = tally.failed;
            let outcome = if failed > 0 {
                Err(anyhow::anyhow!("{failed} failed"))
            } else {
                outcome
            };
            (tally, outcome)
        }
        // It did not come as far as its tests.
        (None, outcome) => {
            let tally = Tally {
                failed: 1,
                ..Tally::default()
            };
            (tally, outcome.and_then(|()| bail!("it left no report")))
        }
    }
}


/// What vitest reports: the counts, and of each failed test its name and what it said.
fn parse(report: &str) -> Option<(Tally, Vec<String>)> {
    let report: Value = serde_json::from_str(report).ok()?;
    let count = |name: &str| u32::try_from(report.get(name)?.as_u64()?).ok();
    let mut tally = Tally {
        passed: count("numPassedTests")?,
        failed: count("numFailedTests")?,
        skipped: count("numPendingTests")?.saturating_add(count("numTodoTests").unwrap_or(0)),
    };
    let mut complaints = Vec::new();
    for file in report.get("testResults")?.as_array()? {
        let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let tests = file.get("assertionResults").and_then(Value::as_array);
        let tests = tests.map(Vec::as_slice).unwrap_or_default();
        if text(file, "status") == "failed" && tests.iter().all(|test| text(test, "status") != "failed") {
            // The file could not be read, or what its tests share failed.
            tally.failed = tally.failed.saturating_add(1);
            complaints.push(format!("{}: {}", text(file, "name"), text(file, "message")));
        }
        for test in tests.iter().filter(|test| text(test, "status") == "failed") {
            let said = test.get("failureMessages").and_then(Value::as_array);
            let said = said.and_then(|all| all.first()).and_then(Value::as_str);
            complaints.push(format!("{}: {}", text(test, "fullName"), said.unwrap_or_default()));
        }
    }
    Some((tally, complaints))
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
    node.npm()?
        .args(["ci", "--no-audit", "--no-fund", "--ignore-scripts"])
        .dir(web)
        .deadline(DEADLINE)
        .quiet()?;
    fs::write(&stamp, key).with_context(|| format!("cannot write {}", stamp.display()))?;
    Ok(node)
}

fn remove_stamp(stamp: &Path) -> Result<()> {
    cache::remove(stamp)
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
                {"fullName":"it adds up","status":"failed","failureMessages":["expected 3 to be 4"]}]},
            {"name":"b.test.ts","status":"failed","message":"no such module","assertionResults":[]}]}"#;
        let (tally, complaints) = parse(report).unwrap();
        assert_eq!((tally.passed, tally.failed, tally.skipped), (3, 2, 1));
        assert_eq!(complaints, ["it adds up: expected 3 to be 4", "b.test.ts: no such module"]);
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
