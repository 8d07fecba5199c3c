//! An installed nsys, where there is one: `FLOPWATCH_NSYS` (path of the binary) or `nsys` on the PATH.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The binary, or a printed reason to skip.
pub(crate) fn binary() -> Option<PathBuf> {
    let named = std::env::var_os("FLOPWATCH_NSYS").map(PathBuf::from);
    let on_path = || {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path)
            .map(|folder| folder.join("nsys"))
            .find(|candidate| candidate.is_file())
    };
    let found = named.or_else(on_path);
    if found.is_none() {
        println!("skipped: no nsys on this machine (set FLOPWATCH_NSYS to its path)");
    }
    found
}

/// A report of the corpus, or a printed reason to skip.
pub(crate) fn corpus(report: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../shared/corpus")
        .join(report);
    if path.is_file() {
        return Some(path);
    }
    println!("skipped: ../shared/corpus/{report} is not there");
    None
}

/// A file in a folder that goes with it.
pub(crate) struct Export {
    folder: tempfile::TempDir,
    path: PathBuf,
}

impl Export {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The report's copy, whose folder may be written to.
    pub(crate) fn report(&self) -> PathBuf {
        let reports = std::fs::read_dir(self.folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().path());
        reports
            .into_iter()
            .find(|path| path.extension().is_some_and(|e| e == "qdrep" || e == "nsys-rep"))
            .unwrap()
    }
}

/// Exports a report of the corpus as HDF5; `None`, with the reason printed, where that is not possible here.
pub(crate) fn export(report: &str) -> Option<Export> {
    let (source, nsys) = (corpus(report)?, binary()?);
    let folder = tempfile::tempdir().unwrap();
    // nsys writes beside what it reads, and the corpus is read-only.
    let copy = folder.path().join(source.file_name().unwrap());
    std::fs::copy(&source, &copy).unwrap();
    let path = folder.path().join("export.h5");
    let mut command = Command::new(nsys);
    command
        .args(["export", "--type", "hdf", "--force-overwrite", "true", "-o"])
        .arg(&path)
        .arg(&copy);
    let output = command.stdin(Stdio::null()).output().unwrap();
    if !output.status.success() {
        println!("skipped: the installed nsys cannot export {report}: {}", output.status);
        return None;
    }
    Some(Export { folder, path })
}
