//! The library of kernels: where it is, what it must be built from, and the calls in it.

mod calls;
mod library;

use std::path::PathBuf;

use sha2::{Digest, Sha256};

use crate::CudaError;

pub(crate) use calls::{Calls, Indexed, Indices};
pub use library::Kernels;

/// Name of the library.
pub const FILE_NAME: &str = "libflopwatch_kernels.so";
/// Environment variable that names the library, for programs that do not have it beside them.
pub const ENVIRONMENT: &str = "FLOPWATCH_CUDA_KERNELS";
/// Where packages and images put it.
const INSTALLED: &str = "/usr/lib/flopwatch/libflopwatch_kernels.so";
/// Version of the calls; the library says which it has.
pub(crate) const INTERFACE: &str = "1";
/// What the library is built from, in the order of the files' names.
const SOURCES: [&str; 4] = [
    include_str!("../device/calls.h"),
    include_str!("../device/elements.h"),
    include_str!("../device/kernels.cu"),
    include_str!("../device/kernels.h"),
];

/// Hash of the sources that this program was built with: the first 16 hex digits of their SHA-256.
pub fn source_hash() -> String {
    let mut hash = Sha256::new();
    for source in SOURCES {
        hash.update(source);
    }
    let mut text = hex::encode(hash.finalize());
    text.truncate(16);
    text
}

/// The library that this program would load: `FLOPWATCH_CUDA_KERNELS`, else beside the program,
/// else where packages put it.
pub fn find() -> Result<PathBuf, CudaError> {
    if let Some(path) = std::env::var_os(ENVIRONMENT).filter(|path| !path.is_empty()) {
        let path = PathBuf::from(path);
        return if path.is_file() {
            Ok(path)
        } else {
            Err(CudaError::NoKernels { path })
        };
    }
    let beside = std::env::current_exe()
        .ok()
        .map(|program| program.with_file_name(FILE_NAME));
    let installed = PathBuf::from(INSTALLED);
    match beside
        .into_iter()
        .chain([installed.clone()])
        .find(|path| path.is_file())
    {
        Some(path) => Ok(path),
        None => Err(CudaError::NoKernels { path: installed }),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_hash_covers_every_file_of_the_device_code() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("device");
        let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        files.sort();
        let texts: Vec<String> = files
            .iter()
            .map(|file| std::fs::read_to_string(file).unwrap())
            .collect();
        assert_eq!(texts, SOURCES);
        assert_eq!(source_hash().len(), 16);
    }

    #[test]
    fn the_interface_that_is_checked_is_the_one_that_the_sources_name() {
        assert!(SOURCES.concat().contains(&format!("flopwatch-kernels {INTERFACE} ")));
    }
}
