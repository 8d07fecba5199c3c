//! What the command's programs load: the CUDA tracer and the flight recorder, with the environment
//! that names them. A library that the environment named before is loaded behind ours.

use std::ffi::{OsStr, OsString};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use flopwatch_api::artifact::RING;
use flopwatch_api::profiler::TraceCategory;
use flopwatch_attach::tracer;
use flopwatch_launcher::copy::{CopyError, RECORDER, TRACER, install_library};

use super::TracerOptions;

/// Folder of the files that programs share, beside their libraries.
const SHARED: &str = "shared";
/// Bytes of the flight recorder's file, as a variable says them: the ranges of some minutes.
const RING_BYTES: &str = "67108864";

/// A library that is named by a variable, and the variable by which it finds the next one.
struct Named {
    variable: &'static str,
    next: &'static str,
    library: &'static str,
}

/// The CUDA tracer.
const OF_CUDA: Named = Named {
    variable: "CUDA_INJECTION64_PATH",
    next: "FLOPWATCH_CUDA_NEXT",
    library: TRACER,
};
/// The flight recorder.
const OF_NVTX: Named = Named {
    variable: "NVTX_INJECTION64_PATH",
    next: "FLOPWATCH_NVTX_NEXT",
    library: RECORDER,
};
/// Names the folder with a libcupti.
const CUPTI: &str = "FLOPWATCH_CUDA_CUPTI";

/// Where NVIDIA's installers and Debian put libcupti.
const CUPTI_FOLDERS: [&str; 3] = [
    "/usr/local/cuda/extras/CUPTI/lib64",
    "/usr/local/cuda/lib64",
    "/usr/lib/x86_64-linux-gnu",
];
/// Names by which the tracer looks for it, of each major version of CUDA.
const CUPTI_NAMES: [&str; 3] = ["libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8"];

/// The flight recorder's file in a folder of libraries.
pub(super) fn ring_in(folder: &Path) -> PathBuf {
    folder.join(SHARED).join(RING)
}

/// The libraries in their folder.
pub(super) struct Libraries {
    folder: PathBuf,
}

impl Libraries {
    /// Writes them into `folder`, and makes the folder that programs share.
    pub(super) fn install(folder: &Path) -> Result<Self, CopyError> {
        install_library(folder, TRACER, flopwatch_tracer::LIBRARY)?;
        install_library(folder, RECORDER, flopwatch_recorder::LIBRARY)?;
        let shared = folder.join(SHARED);
        let failed = |source| CopyError::new("make the folder", &shared, source);
        fs::create_dir(&shared)
            .and_then(|()| fs::set_permissions(&shared, Permissions::from_mode(0o700)))
            .map_err(failed)?;
        Ok(Self {
            folder: folder.to_owned(),
        })
    }

    /// The tracer's file.
    pub(super) fn trace(&self) -> PathBuf {
        self.folder.join(SHARED).join(tracer::NAME)
    }

    /// The environment for the command: this process's own, with what the libraries need.
    pub(super) fn environment(&self, asked: &TracerOptions, trace: &[TraceCategory]) -> Vec<(OsString, OsString)> {
        let own = std::env::vars_os().collect();
        let cupti = asked.cupti.clone().or_else(|| find_cupti(&CUPTI_FOLDERS));
        self.added_to(own, cupti, trace.contains(&TraceCategory::Nvtx))
    }

    fn added_to(
        &self,
        own: Vec<(OsString, OsString)>,
        cupti: Option<PathBuf>,
        with_ranges: bool,
    ) -> Vec<(OsString, OsString)> {
        let shared = self.folder.join(SHARED);
        let mut all = own;
        self.name(&OF_CUDA, &mut all);
        set(&mut all, "FLOPWATCH_CUDA_DIR", shared.as_os_str());
        if let Some(cupti) = cupti {
            set(&mut all, CUPTI, cupti.as_os_str());
        }
        if with_ranges {
            self.name(&OF_NVTX, &mut all);
            set(&mut all, "FLOPWATCH_RECORDER_DIR", shared.as_os_str());
            set(&mut all, "FLOPWATCH_RECORDER_BYTES", OsStr::new(RING_BYTES));
        }
        all
    }

    /// Names a library, with the one behind it that was named before. One of ours is that of a
    /// recording around this one, whose file nobody writes then: what is behind it stays.
    fn name(&self, named: &Named, all: &mut Vec<(OsString, OsString)>) {
        let library = self.folder.join(named.library);
        let before = all.iter().find(|(name, _)| name == named.variable);
        let before = before.map(|(_, value)| value.clone()).filter(|value| !value.is_empty());
        let is_ours = |path: &OsString| Path::new(path).file_name() == Some(OsStr::new(named.library));
        if let Some(next) = before.filter(|path| !is_ours(path)) {
            set(all, named.next, &next);
        }
        set(all, named.variable, library.as_os_str());
    }
}

/// Gives a variable a value.
fn set(all: &mut Vec<(OsString, OsString)>, name: &str, value: &OsStr) {
    all.retain(|(known, _)| known != name);
    all.push((name.into(), value.into()));
}

/// The first folder that has a libcupti.
fn find_cupti(folders: &[&str]) -> Option<PathBuf> {
    let has_one = |folder: &&Path| CUPTI_NAMES.iter().any(|name| folder.join(name).is_file());
    let mut folders = folders.iter().map(Path::new);
    folders.find(has_one).map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(all: &[(OsString, OsString)], name: &str) -> Option<String> {
        let mut of_name = all.iter().filter(|(known, _)| known == name);
        let found = of_name.next().map(|(_, value)| value.to_str().unwrap().to_owned());
        assert!(of_name.next().is_none(), "{name} is there twice");
        found
    }

    #[test]
    fn a_library_that_was_named_before_is_loaded_behind_ours() {
        let libraries = Libraries { folder: "/kept".into() };
        let own = || -> Vec<(OsString, OsString)> {
            vec![
                ("CUDA_INJECTION64_PATH".into(), "/opt/other.so".into()),
                ("NVTX_INJECTION64_PATH".into(), "/outer/libflopwatch-recorder.so".into()),
                ("FLOPWATCH_NVTX_NEXT".into(), "/opt/profiler.so".into()),
                ("PATH".into(), "/bin".into()),
            ]
        };
        let all = libraries.added_to(own(), Some("/cupti".into()), true);
        for (name, expected) in [
            ("CUDA_INJECTION64_PATH", "/kept/libflopwatch_cuda.so"),
            ("FLOPWATCH_CUDA_NEXT", "/opt/other.so"),
            ("FLOPWATCH_CUDA_DIR", "/kept/shared"),
            ("FLOPWATCH_CUDA_CUPTI", "/cupti"),
            ("NVTX_INJECTION64_PATH", "/kept/libflopwatch-recorder.so"),
            ("FLOPWATCH_NVTX_NEXT", "/opt/profiler.so"),
            ("FLOPWATCH_RECORDER_DIR", "/kept/shared"),
            ("PATH", "/bin"),
        ] {
            assert_eq!(value(&all, name).as_deref(), Some(expected), "{name}");
        }
        let without = libraries.added_to(own(), None, false);
        assert_eq!(value(&without, "FLOPWATCH_RECORDER_DIR"), None);
        assert_eq!(value(&without, "FLOPWATCH_CUDA_CUPTI"), None);
    }

    #[test]
    fn a_folder_with_a_libcupti_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_str().unwrap();
        assert_eq!(find_cupti(&["/nowhere", path]), None);
        fs::write(folder.path().join("libcupti.so.12"), "").unwrap();
        assert_eq!(find_cupti(&["/nowhere", path]).as_deref(), Some(folder.path()));
    }
}
