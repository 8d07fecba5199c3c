//! What a change can reach: the packages whose tests may tell of it, the viewer, the system's
//! tests.

use super::need::Needs;
use anyhow::{Context as _, Result};
use flopwatch_toolchain::project;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// Files that decide how everything is built.
const OF_EVERYTHING: [&str; 4] = ["Cargo.toml", "Cargo.lock", "rust-toolchain.toml", ".cargo/config.toml"];
/// The package of the system's tests, and where their modules are.
const SYSTEM: (&str, &str) = ("flopwatch-system-tests", "tests/system/tests");
/// The viewer, less the package that embeds it.
const VIEWER: (&str, &str) = ("web/", "web/embed/");

/// A package of the workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Package {
    /// Folder of the package, below the workspace's.
    folder: String,
    /// The workspace's packages that its code is made with.
    uses: BTreeSet<String>,
    /// The workspace's packages that its tests alone are made with.
    tests_use: BTreeSet<String>,
}

/// The workspace's packages by their names.
#[derive(Debug, Default)]
pub(crate) struct Workspace {
    packages: BTreeMap<String, Package>,
}

/// What a change reaches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Reach {
    /// The packages whose tests may tell of the change.
    pub(crate) packages: BTreeSet<String>,
    /// Whether the viewer's tests may.
    pub(crate) viewer: bool,
    /// Whether documents changed, whose links are held against each other.
    pub(crate) documents: bool,
    /// The modules of the system's tests that name a package which was changed.
    pub(crate) system: BTreeSet<String>,
}

impl Reach {
    /// Whether the change reaches the package in that folder.
    pub(crate) fn holds(&self, needs: &Needs, folder: &Path) -> bool {
        self.packages.contains(needs.package(folder))
    }
}

impl fmt::Display for Reach {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |names: &BTreeSet<String>| names.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        let mut parts = Vec::new();
        if !self.packages.is_empty() {
            parts.push(list(&self.packages));
        }
        if self.viewer {
            parts.push("the viewer".to_owned());
        }
        if self.documents {
            parts.push("the documents".to_owned());
        }
        if !self.system.is_empty() {
            parts.push(format!("the system's tests {}", list(&self.system)));
        }
        if parts.is_empty() {
            return write!(out, "the change reaches no test");
        }
        write!(out, "the change reaches {}", parts.join("; "))
    }
}

impl Workspace {
    /// Reads what `cargo metadata --no-deps` printed of the workspace in the folder `root`.
    pub(crate) fn parse(metadata: &str, root: &Path) -> Result<Self> {
        let metadata: Value = serde_json::from_str(metadata).context("`cargo metadata` gave no JSON")?;
        let packages = metadata.get("packages").and_then(Value::as_array);
        let packages = packages.context("`cargo metadata` names no packages")?.iter();
        let packages = packages.filter_map(|value| package(value, root)).collect();
        Ok(Self { packages })
    }

    /// The package that a file is of: the one with the longest folder around it.
    fn of(&self, file: &str) -> Option<&str> {
        let around = self.packages.iter().filter(|(_, package)| {
            file.strip_prefix(package.folder.as_str())
                .is_some_and(|rest| rest.starts_with('/'))
        });
        around
            .max_by_key(|(_, package)| package.folder.len())
            .map(|(name, _)| name.as_str())
    }

    /// What a change of these files reaches. `naming` gives the files of the workspace that name a
    /// file which is of no package.
    pub(crate) fn reach(&self, files: &[String], naming: impl Fn(&str) -> Vec<String>) -> Reach {
        let mut reach = Reach::default();
        let mut changed = BTreeSet::new();
        for file in files {
            reach.documents |= Path::new(file).extension().is_some_and(|end| end == "md");
            if OF_EVERYTHING.contains(&file.as_str()) {
                changed.extend(self.packages.keys().cloned());
                reach.viewer = true;
            } else if file.starts_with(VIEWER.0) && !file.starts_with(VIEWER.1) {
                reach.viewer = true;
            } else if let Some(package) = self.of(file) {
                changed.insert(package.to_owned());
            } else {
                let naming = naming(file);
                reach
                    .packages
                    .extend(naming.iter().filter_map(|file| self.of(file)).map(str::to_owned));
            }
        }
        reach.packages.extend(self.dependents(&changed));
        reach
    }

    /// The packages, and all whose code or tests are made with one of them.
    fn dependents(&self, changed: &BTreeSet<String>) -> BTreeSet<String> {
        let mut code = changed.clone();
        loop {
            let more = self
                .packages
                .iter()
                .filter(|(_, package)| !package.uses.is_disjoint(&code));
            let more: BTreeSet<String> = more.map(|(name, _)| name.clone()).collect();
            if more.is_subset(&code) {
                break;
            }
            code.extend(more);
        }
        let tests = self
            .packages
            .iter()
            .filter(|(_, package)| !package.tests_use.is_disjoint(&code));
        let tests: BTreeSet<String> = tests.map(|(name, _)| name.clone()).collect();
        code.into_iter().chain(tests).collect()
    }

    /// The packages that these files are of.
    fn packages_of(&self, files: &[String]) -> BTreeSet<&str> {
        files.iter().filter_map(|file| self.of(file)).collect()
    }
}

fn package(value: &Value, root: &Path) -> Option<(String, Package)> {
    let folder = Path::new(value.get("manifest_path")?.as_str()?).parent()?;
    let mut package = Package {
        folder: folder.strip_prefix(root).ok()?.to_str()?.to_owned(),
        ..Package::default()
    };
    for dependency in value.get("dependencies")?.as_array()? {
        let name = dependency.get("name")?.as_str()?.to_owned();
        // Those of a registry have no folder.
        if dependency.get("path").and_then(Value::as_str).is_none() {
            continue;
        }
        if dependency.get("kind")?.as_str() == Some("dev") {
            package.tests_use.insert(name);
        } else {
            package.uses.insert(name);
        }
    }
    Some((value.get("name")?.as_str()?.to_owned(), package))
}

/// What the changes since `base` reach, with those that are not committed; `base` is a revision.
pub(crate) fn since(base: &str, metadata: &str) -> Result<Reach> {
    let root = project::root()?;
    let workspace = Workspace::parse(metadata, &root)?;
    let mut files = project::git(&["diff", "--name-only", base, "--"])?;
    files.extend(project::git(&["ls-files", "--others", "--exclude-standard"])?);
    let mut reach = workspace.reach(&files, naming);
    let changed = workspace.packages_of(&files);
    reach.system = modules(&root.join(SYSTEM.1), &changed)?;
    Ok(reach)
}

/// Sources and tests that name a file, by its path or, where nobody does, by its own name.
fn naming(file: &str) -> Vec<String> {
    let sources = ["--", "*.rs", "*.py", "*.ts"];
    let own = file.rsplit('/').next().unwrap_or(file);
    let names = [file, own].map(|name| {
        let arguments: Vec<&str> = ["grep", "-l", "-F", name].into_iter().chain(sources).collect();
        // It fails where it finds nothing.
        project::git(&arguments).unwrap_or_default()
    });
    names.into_iter().find(|files| !files.is_empty()).unwrap_or_default()
}

/// The modules of the system's tests whose text names one of the packages, as filters of their
/// program.
fn modules(folder: &Path, packages: &BTreeSet<&str>) -> Result<BTreeSet<String>> {
    if packages.contains(SYSTEM.0) {
        return Ok(BTreeSet::from([String::new()]));
    }
    let mut found = BTreeSet::new();
    for file in sources(folder)? {
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let names = packages
            .iter()
            .any(|name| text.contains(*name) || text.contains(&name.replace('-', "_")));
        let module = file
            .file_stem()
            .and_then(|stem| stem.to_str())
            .filter(|stem| *stem != "main");
        found.extend(module.filter(|_| names).map(|module| format!("{module}::")));
    }
    Ok(found)
}

fn sources(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `agent` is made with `trace`, which is made with `model`; the tests of `cli` alone are made
    /// with `trace`.
    fn workspace() -> Workspace {
        let metadata = r#"{"packages":[
            {"name":"model","manifest_path":"/w/model/Cargo.toml","dependencies":[{"name":"serde","kind":null}]},
            {"name":"trace","manifest_path":"/w/trace/Cargo.toml","dependencies":[{"name":"model","kind":null,"path":"/w/model"}]},
            {"name":"ring","manifest_path":"/w/trace/ring/Cargo.toml","dependencies":[]},
            {"name":"agent","manifest_path":"/w/agent/Cargo.toml","dependencies":[{"name":"trace","kind":null,"path":"/w/trace"}]},
            {"name":"cli","manifest_path":"/w/cli/Cargo.toml","dependencies":[{"name":"trace","kind":"dev","path":"/w/trace"}]},
            {"name":"python","manifest_path":"/w/python/Cargo.toml","dependencies":[{"name":"cli","kind":null,"path":"/w/cli"}]}]}"#;
        Workspace::parse(metadata, Path::new("/w")).unwrap()
    }

    fn reach(files: &[&str]) -> Reach {
        let files: Vec<String> = files.iter().map(|&file| file.to_owned()).collect();
        workspace().reach(&files, |file| match file {
            "docs/formats.md" => vec!["trace/tests/suite/exports.rs".to_owned()],
            _ => Vec::new(),
        })
    }

    fn packages(reach: &Reach) -> Vec<&str> {
        reach.packages.iter().map(String::as_str).collect()
    }

    #[test]
    fn a_change_reaches_what_is_made_with_it_and_tests_that_are_but_not_what_is_made_with_those() {
        assert_eq!(
            packages(&reach(&["model/src/lib.rs"])),
            ["agent", "cli", "model", "trace"]
        );
        assert_eq!(packages(&reach(&["agent/src/main.rs"])), ["agent"]);
    }

    #[test]
    fn a_file_is_of_the_innermost_package_around_it() {
        assert_eq!(packages(&reach(&["trace/ring/src/lib.rs"])), ["ring"]);
    }

    #[test]
    fn a_document_reaches_the_tests_that_name_it() {
        let reach = reach(&["docs/formats.md"]);
        assert_eq!(packages(&reach), ["trace"]);
        assert!(reach.documents && !reach.viewer);
    }

    #[test]
    fn the_viewers_sources_reach_its_tests_and_the_lock_file_reaches_everything() {
        let viewer = reach(&["web/src/main.ts"]);
        assert!(viewer.viewer && viewer.packages.is_empty());
        let all = reach(&["Cargo.lock"]);
        assert_eq!((all.packages.len(), all.viewer), (6, true));
    }

    #[test]
    fn a_module_of_the_systems_tests_is_reached_by_the_packages_that_it_names() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("system")).unwrap();
        fs::write(folder.path().join("system/access.rs"), "use flopwatch_api::x;").unwrap();
        fs::write(folder.path().join("system/plugin.rs"), "run(\"kubectl-flopwatch\")").unwrap();
        let modules = |name: &str| modules(folder.path(), &BTreeSet::from([name])).unwrap();
        assert_eq!(modules("flopwatch-api"), BTreeSet::from(["access::".to_owned()]));
        assert_eq!(modules("kubectl-flopwatch"), BTreeSet::from(["plugin::".to_owned()]));
        assert_eq!(modules(SYSTEM.0), BTreeSet::from([String::new()]));
    }
}
