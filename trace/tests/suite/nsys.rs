//! An installed nsys, where there is one: `FLOPWATCH_NSYS` (path of the binary) or `nsys` on the
//! PATH; for reports that it cannot open, a newer one: `FLOPWATCH_NSYS_NEWER`.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use flopwatch_trace::{Format, detect};

/// The binary, or a printed reason to skip.
fn binary() -> Option<PathBuf> {
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

/// Every one that is installed, each of another version; none, with the reason printed, where there
/// is none.
pub(crate) fn versions() -> Vec<PathBuf> {
    binary().into_iter().chain(newer()).collect()
}

fn newer() -> Option<PathBuf> {
    std::env::var_os("FLOPWATCH_NSYS_NEWER").map(PathBuf::from)
}

/// The reports of the corpus that the Nsight Systems of 2023 can open, and all but one of them that
/// of 2022.
pub(crate) const REPORTS: [&str; 5] = [
    "gpubootcamp-jacobi/jacobi_report.qdrep",
    "gpubootcamp-jacobi/jacobi_memcpy_sys_report.qdrep",
    "gpubootcamp-jacobi-mpi/mpi_report2.qdrep",
    "trt-controlnet/cudagraph.nsys-rep",
    "alpa-jax/jax_profile_mem.nsys-rep",
];

/// A file of the corpus, or a printed reason to skip.
pub(crate) fn corpus(report: &str) -> Option<PathBuf> {
    crate::cases::shared(&format!("corpus/{report}"))
}

/// Every report of the corpus, told by its first bytes; none, with the reason printed, where the
/// corpus is not there.
pub(crate) fn reports_of_corpus() -> Vec<PathBuf> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus");
    let mut found = Vec::new();
    let mut folders = vec![corpus];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else {
            continue;
        };
        for path in entries.map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if detect(&path).unwrap() == Some(Format::NsysReport) {
                found.push(path);
            }
        }
    }
    if found.is_empty() {
        println!("skipped (corpus): ../shared/corpus has no report");
    }
    found.sort();
    found
}

/// An export, and the copy of the report that it was made of, in a folder of their own.
pub(crate) struct Export {
    folder: tempfile::TempDir,
    report: PathBuf,
    nsys: PathBuf,
}

impl Export {
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("export.h5")
    }

    /// The same report in another container, exported by the same nsys.
    pub(crate) fn sqlite(&self) -> PathBuf {
        let path = self.folder.path().join("export.sqlite");
        let output = convert(&self.nsys, "sqlite", &self.report, &path);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        path
    }

    pub(crate) fn report(&self) -> &Path {
        &self.report
    }

    /// The nsys that made it.
    pub(crate) fn nsys(&self) -> &Path {
        &self.nsys
    }
}

/// Exports a report of the corpus as HDF5; `None`, with the reason printed, where that is not
/// possible here.
pub(crate) fn export(name: &str) -> Option<Export> {
    let (source, nsys) = (corpus(name)?, binary()?);
    let folder = tempfile::tempdir().unwrap();
    // nsys writes beside what it reads, and the corpus is read-only.
    let report = folder.path().join(source.file_name().unwrap());
    std::fs::copy(&source, &report).unwrap();
    let path = folder.path().join("export.h5");
    for nsys in std::iter::once(nsys).chain(newer()) {
        if convert(&nsys, "hdf", &report, &path).status.success() {
            return Some(Export { folder, report, nsys });
        }
    }
    println!(
        "skipped: no nsys that is installed can export {name} (cargo xtask setup fetches one, FLOPWATCH_NSYS_NEWER)"
    );
    None
}

/// Exports a report by an nsys.
pub(crate) fn convert(nsys: &Path, kind: &str, report: &Path, to: &Path) -> Output {
    let mut command = Command::new(nsys);
    command
        .args(["export", "--type", kind, "--force-overwrite", "true", "-o"])
        .arg(to)
        .arg(report);
    command.stdin(Stdio::null()).output().unwrap()
}
