//! What a test program needs of the machine, as its package declares it.
//!
//! ```toml
//! # One table per program of `tests/`; `lib` is the library's own, a program's own tests have its name.
//! [package.metadata.tests.suite]
//! load = "waits"            # most of its time it waits: for processes, timers, a browser
//! resources = ["profilers"] # what one program at a time may use
//! alone = true              # nothing else may run beside it
//! patient = true            # it holds nothing to a time, so it may run behind the system's tests
//! threads = 8               # how many of its tests run at once, where the machine does not decide
//! seconds = 200             # what it takes on two processors, until a round has measured it
//! ```
//!
//! A program without a table keeps the processor busy, shares nothing and runs beside others.

use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The key of a package's declarations in `cargo metadata`.
const KEY: &str = "tests";
/// The name that a library's own tests have in a declaration.
const LIBRARY: &str = "lib";

/// What a program does with its time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Load {
    /// It computes: it takes as many threads as there are processors.
    #[default]
    Busy,
    /// It waits: its tests may be more at once than there are processors.
    Waits,
}

/// What one program at a time may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Resource {
    /// The machine's list of running profilers.
    Profilers,
    /// Chromium.
    Browser,
    /// The local cluster.
    Cluster,
}

/// What a program needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Need {
    pub(crate) load: Load,
    pub(crate) resources: BTreeSet<Resource>,
    pub(crate) alone: bool,
    /// Nothing in it is held to a time: a round runs it by what the system's tests leave of the
    /// processor.
    pub(crate) patient: bool,
    /// How many of its tests run at once; by the load and the machine where nothing is declared.
    pub(crate) threads: Option<usize>,
    /// What the program takes where no round has measured it: on a fresh machine the longest goes
    /// first too.
    pub(crate) expected: Option<Duration>,
}

/// What the workspace's packages declare, by the folder of the package.
#[derive(Debug, Default)]
pub(crate) struct Needs {
    packages: BTreeMap<PathBuf, Package>,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Package {
    name: String,
    needs: BTreeMap<String, Need>,
}

impl Needs {
    /// Reads what `cargo metadata --no-deps` printed.
    pub(crate) fn parse(metadata: &str) -> Result<Self> {
        let metadata: Value = serde_json::from_str(metadata).context("`cargo metadata` gave no JSON")?;
        let packages = metadata.get("packages").and_then(Value::as_array);
        let packages = packages.context("`cargo metadata` names no packages")?;
        let packages = packages.iter().map(package).collect::<Result<_>>()?;
        Ok(Self { packages })
    }

    /// What is declared for a target of the package in that folder; the default where nothing is.
    pub(crate) fn of(&self, folder: &Path, target: &str, library: bool) -> Need {
        let needs = self.packages.get(folder).map(|package| &package.needs);
        let key = if library { LIBRARY } else { target };
        needs.and_then(|needs| needs.get(key)).cloned().unwrap_or_default()
    }

    /// The name of the package in that folder.
    pub(crate) fn package(&self, folder: &Path) -> &str {
        self.packages.get(folder).map_or("", |package| &package.name)
    }
}

fn package(value: &Value) -> Result<(PathBuf, Package)> {
    let text = |name: &str| value.get(name).and_then(Value::as_str);
    let name = text("name").context("a package without a name")?.to_owned();
    let manifest = text("manifest_path").context("a package without a manifest")?;
    let folder = Path::new(manifest).parent().context("a manifest without a folder")?;
    let declared = value.pointer(&format!("/metadata/{KEY}")).and_then(Value::as_object);
    let targets = value.get("targets").and_then(Value::as_array);
    let targets: Vec<&str> = targets
        .into_iter()
        .flatten()
        .filter_map(|target| target.get("name")?.as_str())
        .collect();
    let needs = declared.into_iter().flatten().map(|(target, value)| {
        let place = || format!("[package.metadata.{KEY}.{target}] of {name}");
        if target != LIBRARY && !targets.contains(&target.as_str()) {
            bail!("{}: the package has no such target", place());
        }
        Ok((target.clone(), need(value).with_context(place)?))
    });
    let needs = needs.collect::<Result<_>>()?;
    Ok((folder.to_owned(), Package { name, needs }))
}

fn need(value: &Value) -> Result<Need> {
    let mut need = Need::default();
    for (key, value) in value.as_object().context("not a table")? {
        match (key.as_str(), value) {
            ("load", Value::String(word)) if word == "waits" => need.load = Load::Waits,
            ("load", Value::String(word)) if word == "busy" => need.load = Load::Busy,
            ("alone", Value::Bool(alone)) => need.alone = *alone,
            ("patient", Value::Bool(patient)) => need.patient = *patient,
            ("threads", Value::Number(threads)) => {
                let threads = threads.as_u64().and_then(|threads| usize::try_from(threads).ok());
                need.threads = Some(
                    threads
                        .filter(|threads| *threads > 0)
                        .context("threads are a positive number")?,
                );
            }
            ("seconds", Value::Number(seconds)) => {
                let seconds = seconds.as_u64().context("seconds are a whole number")?;
                need.expected = Some(Duration::from_secs(seconds));
            }
            ("resources", Value::Array(names)) => {
                need.resources = names.iter().map(resource).collect::<Result<_>>()?;
            }
            _ => bail!("{key} = {value} is not known here"),
        }
    }
    Ok(need)
}

fn resource(name: &Value) -> Result<Resource> {
    Ok(match name.as_str() {
        Some("profilers") => Resource::Profilers,
        Some("browser") => Resource::Browser,
        Some("cluster") => Resource::Cluster,
        _ => bail!("{name} is no resource of the machine"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(tests: &str) -> Result<Needs> {
        Needs::parse(&format!(
            r#"{{"packages":[{{"name":"p","manifest_path":"/w/p/Cargo.toml","targets":[{{"name":"suite"}}],"metadata":{{"tests":{tests}}}}},
                {{"name":"q","manifest_path":"/w/q/Cargo.toml","metadata":null}}]}}"#
        ))
    }

    #[test]
    fn a_program_has_what_its_package_declares_and_any_other_the_default() {
        let needs = needs(
            r#"{"suite":{"load":"waits","resources":["profilers"],"threads":8,"seconds":90},"lib":{"alone":true,"patient":true}}"#,
        )
        .unwrap();
        let suite = needs.of(Path::new("/w/p"), "suite", false);
        assert_eq!((suite.load, suite.alone, suite.threads), (Load::Waits, false, Some(8)));
        assert_eq!(suite.resources, BTreeSet::from([Resource::Profilers]));
        assert_eq!(suite.expected, Some(Duration::from_secs(90)));
        let library = needs.of(Path::new("/w/p"), "p", true);
        assert!(library.alone && library.patient && !suite.patient);
        assert_eq!(needs.of(Path::new("/w/p"), "other", false), Need::default());
        assert_eq!(needs.of(Path::new("/w/q"), "suite", false), Need::default());
        assert_eq!(needs.package(Path::new("/w/q")), "q");
    }

    #[test]
    fn a_declaration_for_a_program_that_is_not_there_is_an_error() {
        let error = needs(r#"{"suit":{"alone":true}}"#).unwrap_err().to_string();
        assert_eq!(
            error,
            "[package.metadata.tests.suit] of p: the package has no such target"
        );
    }

    #[test]
    fn a_word_that_nobody_knows_is_an_error_that_names_its_place() {
        for wrong in [
            r#"{"suite":{"load":"heavy"}}"#,
            r#"{"suite":{"resources":["gpu"]}}"#,
            r#"{"suite":1}"#,
        ] {
            let error = format!("{:#}", needs(wrong).unwrap_err());
            assert!(error.contains("[package.metadata.tests.suite] of p"), "{error}");
        }
    }
}
