//! Finds the Nsight Systems of this machine.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use flopwatch_attach::nsys::HostTools;

/// Folder of what runs beside the workload; the command line tool refuses to start from a folder of
/// another name.
pub const TARGET_DIR: &str = "target-linux-x64";
/// Folder of the importer and the exporter.
pub const HOST_DIR: &str = "host-linux-x64";

/// Makes a report of a raw capture.
const IMPORTER: &str = "QdstrmImporter";

/// Where NVIDIA has it.
pub const HOME: &str = "https://developer.nvidia.com/nsight-systems";

/// Where Debian's packages put the command line tool.
const DEBIAN_NSYS: &str = "/usr/lib/x86_64-linux-gnu/nsight-systems/target-linux-x64/nsys";

/// Why there is no Nsight Systems to use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No command line tool.
    #[error(
        "{}: install it (Debian: packages nsight-systems and nsight-systems-target of the component \
         non-free; elsewhere: {HOME}), or name its nsys with --nsys or FLOPWATCH_NSYS",
        no_nsys(.0.as_deref())
    )]
    NoNsys(Option<PathBuf>),
    /// The folder of the tools has no importer.
    #[error(
        "{}: install the host part of Nsight Systems (Debian: package nsight-systems), or name its folder \
         {HOST_DIR} with --nsys-host or FLOPWATCH_NSYS_HOST",
        no_importer(.0)
    )]
    NoImporter(PathBuf),
}

impl Error {
    /// What is missing, without what to install: not every version will do for every file.
    pub fn missing(&self) -> String {
        match self {
            Self::NoNsys(path) => no_nsys(path.as_deref()),
            Self::NoImporter(folder) => no_importer(folder),
        }
    }
}

fn no_nsys(path: Option<&Path>) -> String {
    let place = path.map(|path| format!(" at {}", path.display())).unwrap_or_default();
    format!("Nsight Systems was not found{place}")
}

fn no_importer(folder: &Path) -> String {
    format!("{} holds no {IMPORTER}", folder.display())
}

/// The tools in a folder that holds both halves side by side, as NVIDIA's own installation does.
pub fn in_folder(folder: &Path) -> Result<HostTools, Error> {
    checked(folder.join(TARGET_DIR).join("nsys"), &folder.join(HOST_DIR))
}

/// Finds the tools: those that are named, else the `nsys` on `path` (as in `PATH`), else Debian's,
/// else what the project's recipes fetched into their cache.
pub fn find(nsys: Option<&Path>, host: Option<&Path>, path: Option<&OsString>) -> Result<HostTools, Error> {
    find_beside(nsys, host, path, cache().as_deref())
}

/// The cache folder of the project's recipes (`cargo xtask demo`).
fn cache() -> Option<PathBuf> {
    let set = |name: &str| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    set("FLOPWATCH_CACHE")
        .or_else(|| set("XDG_CACHE_HOME").map(|folder| folder.join("flopwatch")))
        .or_else(|| set("HOME").map(|home| home.join(".cache/flopwatch")))
}

/// The programs that recipes fetched: a folder for each release, `nsys-RELEASE-HASH`, in the order
/// of their names; `nsys-RELEASE.part` is not whole yet.
fn fetched(cache: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(cache).into_iter().flatten().flatten();
    let is_whole = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("nsys-") && path.extension().is_none_or(|ending| ending != "part")
    };
    let folders = entries.map(|entry| entry.path()).filter(is_whole);
    let mut programs: Vec<PathBuf> = folders.map(|folder| folder.join(TARGET_DIR).join("nsys")).collect();
    programs.sort_unstable();
    programs
}

fn find_beside(
    nsys: Option<&Path>,
    host: Option<&Path>,
    path: Option<&OsString>,
    cache: Option<&Path>,
) -> Result<HostTools, Error> {
    let nsys = match nsys {
        Some(named) => named
            .canonicalize()
            .map_err(|_not_found| Error::NoNsys(Some(named.to_owned())))?,
        None => path
            .into_iter()
            .flat_map(std::env::split_paths)
            .map(|folder| folder.join("nsys"))
            .chain([PathBuf::from(DEBIAN_NSYS)])
            .chain(cache.into_iter().flat_map(fetched))
            .find_map(|candidate| target_program(&candidate))
            .ok_or(Error::NoNsys(None))?,
    };
    let host = host.map_or_else(|| host_of(&nsys), Path::to_owned);
    checked(nsys, &host)
}

fn checked(nsys: PathBuf, host: &Path) -> Result<HostTools, Error> {
    if !nsys.is_file() {
        return Err(Error::NoNsys(Some(nsys)));
    }
    let importer = host.join(IMPORTER);
    if !importer.is_file() {
        return Err(Error::NoImporter(host.to_owned()));
    }
    Ok(HostTools {
        nsys,
        importer,
        libraries: Vec::new(),
    })
}

/// The tool itself behind a link or a folder on PATH.
fn target_program(candidate: &Path) -> Option<PathBuf> {
    let real = candidate.canonicalize().ok()?;
    if real.parent()?.file_name()? == TARGET_DIR {
        return Some(real);
    }
    // NVIDIA's `bin/nsys` is a script beside the two halves.
    real.ancestors()
        .skip(1)
        .take(2)
        .map(|folder| folder.join(TARGET_DIR).join("nsys"))
        .find(|nsys| nsys.is_file())
}

/// The host half that belongs to a tool: beside its folder, or where Debian puts it.
fn host_of(nsys: &Path) -> PathBuf {
    let beside = nsys.ancestors().nth(2).unwrap_or(Path::new("/"));
    let candidates = beside
        .ancestors()
        .take(3)
        .flat_map(|folder| [folder.join(HOST_DIR), folder.join("nsight-systems").join(HOST_DIR)]);
    candidates
        .into_iter()
        .find(|folder| folder.join(IMPORTER).is_file())
        .unwrap_or_else(|| beside.join(HOST_DIR))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn touch(path: &Path) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, b"").unwrap();
    }

    #[test]
    fn both_layouts_are_found_from_path() {
        for (nsys, host, on_path) in [
            (
                "opt/nsight/target-linux-x64/nsys",
                "opt/nsight/host-linux-x64",
                "opt/nsight/bin",
            ),
            (
                "usr/lib/x86/nsight-systems/target-linux-x64/nsys",
                "usr/lib/nsight-systems/host-linux-x64",
                "usr/bin",
            ),
        ] {
            let root = tempfile::tempdir().unwrap();
            let at = |path: &str| root.path().canonicalize().unwrap().join(path);
            touch(&at(nsys));
            touch(&at(host).join("QdstrmImporter"));
            fs::create_dir_all(at(on_path)).unwrap();
            std::os::unix::fs::symlink(at(nsys), at(on_path).join("nsys")).unwrap();
            let found = find(None, None, Some(&at(on_path).into_os_string())).unwrap();
            assert_eq!(
                (found.nsys, found.importer),
                (at(nsys), at(host).join("QdstrmImporter"))
            );
        }
    }

    #[test]
    fn what_a_recipe_fetched_is_found_where_path_has_none() {
        if Path::new(DEBIAN_NSYS).exists() {
            println!("skipped: Debian's package goes before it");
            return;
        }
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().canonicalize().unwrap().join(path);
        for folder in [
            "nsys-bookworm-0123456789abcdef",
            "nsys-newer-0123456789abcdef",
            "nsys-a.part",
        ] {
            touch(&at(folder).join(TARGET_DIR).join("nsys"));
            touch(&at(folder).join(HOST_DIR).join(IMPORTER));
        }
        let found = find_beside(None, None, None, Some(root.path())).unwrap();
        assert_eq!(found.nsys, at("nsys-bookworm-0123456789abcdef/target-linux-x64/nsys"));
        assert_eq!(
            found.importer,
            at("nsys-bookworm-0123456789abcdef/host-linux-x64/QdstrmImporter")
        );
        let none = find_beside(None, None, None, Some(&root.path().join("missing"))).unwrap_err();
        assert_eq!(none, Error::NoNsys(None));
    }

    #[test]
    fn what_is_missing_says_what_to_install() {
        let root = tempfile::tempdir().unwrap();
        let nsys = root.path().join("target-linux-x64/nsys");
        let error = find(Some(&nsys), None, None).unwrap_err().to_string();
        assert!(
            error.contains("was not found at") && error.contains("nsight-systems-target"),
            "{error}"
        );
        touch(&nsys);
        let error = find(Some(&nsys), None, None).unwrap_err().to_string();
        assert!(
            error.contains("QdstrmImporter") && error.contains("FLOPWATCH_NSYS_HOST"),
            "{error}"
        );
    }
}
