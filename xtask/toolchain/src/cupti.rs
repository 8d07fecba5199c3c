//! NVIDIA's libcupti, from PyPI in the cache folder (10 to 14 MB a release): the tracer's tests
//! load them behind a driver that is none, a bundle takes them to a machine with a GPU, and the
//! agent's image has them for pods.

use crate::cache::Cache;
use crate::progress::say;
use crate::wheel::{self, Requirements};
use anyhow::{Context as _, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};

/// The newest of each major version.
const REQUIREMENTS: Requirements = Requirements::Cupti;
/// Where the packages have their libraries.
const FOLDER: &str = "nvidia";
/// How the tests are told where they are.
const VARIABLE: &str = "FLOPWATCH_CUPTI_WHEELS";

/// A release of libcupti that is tried on a GPU.
#[derive(Debug, Clone, Copy)]
pub struct Release {
    /// Such as `13.5`.
    pub name: &'static str,
    /// The library's file name.
    pub file: &'static str,
    requirements: Requirements,
    /// Where the package has the library.
    path: &'static str,
}

/// Where packages of CUDA 12 have the library.
const OF_12: (&str, &str) = ("libcupti.so.12", "nvidia/cuda_cupti/lib/libcupti.so.12");
/// Where packages of CUDA 13 have it.
const OF_13: (&str, &str) = ("libcupti.so.13", "nvidia/cu13/lib/libcupti.so.13");

const fn release(name: &'static str, requirements: Requirements, places: (&'static str, &'static str)) -> Release {
    Release {
        name,
        file: places.0,
        requirements,
        path: places.1,
    }
}

/// The releases that are tried on a GPU; 13.2 ends programs, and is none of them.
pub const RELEASES: [Release; 5] = [
    release("12.8", Requirements::CuptiFirst, OF_12),
    release("12.9", Requirements::Cupti, OF_12),
    release("13.0", Requirements::CuptiFirst, OF_13),
    release("13.3", Requirements::CuptiMiddle, OF_13),
    release("13.5", Requirements::Cupti, OF_13),
];

impl Release {
    /// The library as its package has it, fetched where it is not there.
    pub fn library(&self, cache: &Cache) -> Result<PathBuf> {
        let environment = self.requirements.environment(cache)?;
        let library = wheel::file(&environment, self.path);
        if !library.is_file() {
            bail!(
                "{} holds no {}; remove it and try again",
                environment.display(),
                self.path
            );
        }
        Ok(library)
    }
}

/// What pods get: the name by which the tracer looks for it, its package, and where that has it.
const COPIES: [(&str, &str, &str); 3] = [
    (
        "libcupti.so.11.8",
        "nvidia_cuda_cupti_cu11",
        "nvidia/cuda_cupti/lib/libcupti.so.11.8",
    ),
    (OF_12.0, "nvidia_cuda_cupti_cu12", OF_12.1),
    (OF_13.0, "nvidia_cuda_cupti", OF_13.1),
];
/// Where packages have NVIDIA's license, of old packages and of new ones.
const LICENSES: [&str; 2] = ["License.txt", "licenses/License.txt"];
/// Folder of the agent's image below that of the pods' tools.
pub const FOLDER_NAME: &str = "cupti";

/// The newest libcupti of each major version, each with its license, as the agent's image has them:
/// where it lies, and its name in the image.
pub fn files(cache: &Cache) -> Result<Vec<(PathBuf, String)>> {
    let environment = REQUIREMENTS.environment(cache)?;
    let mut files = Vec::new();
    for (name, package, path) in COPIES {
        files.push((wheel::file(&environment, path), name.to_owned()));
        files.push((license(&environment, package)?, format!("{name}.license.txt")));
    }
    Ok(files)
}

/// The license in a package.
fn license(environment: &Path, package: &str) -> Result<PathBuf> {
    let inside = wheel::file(environment, FOLDER);
    let packages = inside.parent().context("the packages lie in a folder")?;
    for entry in fs::read_dir(packages).with_context(|| format!("cannot list {}", packages.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_its = name.strip_prefix(package).is_some_and(|rest| rest.starts_with('-'));
        if is_its && name.ends_with(".dist-info") {
            let mut places = LICENSES.iter().map(|place| entry.path().join(place));
            if let Some(license) = places.find(|place| place.is_file()) {
                return Ok(license);
            }
        }
    }
    bail!(
        "{} holds no license of {package}; remove it and try again",
        environment.display()
    )
}

/// Copies [`files`] into a folder, as they are.
pub fn run(cache: &Cache, output: &Path) -> Result<()> {
    fs::create_dir_all(output).with_context(|| format!("cannot make {}", output.display()))?;
    for (file, name) in files(cache)? {
        let to = output.join(name);
        let bytes = fs::copy(&file, &to).with_context(|| format!("cannot copy {}", file.display()))?;
        say(format_args!("{} ({} KiB)", to.display(), bytes >> 10));
    }
    Ok(())
}

/// The folder that is there already.
fn find(cache: &Cache) -> Option<PathBuf> {
    let folder = wheel::file(&REQUIREMENTS.place(cache), FOLDER);
    folder.is_dir().then_some(folder)
}

/// Sees to it that the newest of each major version is there; gives the folder of their libraries
/// and headers.
pub fn ensure(cache: &Cache) -> Result<PathBuf> {
    let environment = REQUIREMENTS.environment(cache)?;
    let Some(folder) = find(cache) else {
        bail!("{} holds no libcupti; remove it and try again", environment.display());
    };
    Ok(folder)
}

/// How tests are told where it is, where it is there.
pub(crate) fn environment(cache: &Cache) -> Option<(String, String)> {
    Some((VARIABLE.to_owned(), find(cache)?.display().to_string()))
}
