//! The node's disk under the store: operations that the crate `object_store` lacks.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use rustix::fs::{FlockOperation, flock, statvfs};

use super::{StoreError, io_error};

/// The directory of a store, held by this process alone.
#[derive(Clone, Debug)]
pub(super) struct Disk {
    root: PathBuf,
    /// Dropped with the last clone, which gives the store free.
    _lock: Arc<File>,
}

impl Disk {
    pub(super) fn open(root: PathBuf) -> Result<(Self, Arc<dyn ObjectStore>), StoreError> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&root)
            .map_err(io_error(&root))?;
        let lock_path = root.join("lock");
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&lock_path)
            .map_err(io_error(&lock_path))?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(StoreError::InUse(root)),
            Err(error) => {
                return Err(StoreError::Io {
                    path: lock_path,
                    source: error.into(),
                });
            }
        }
        // What a status says is published must outlive a power cut.
        let objects = LocalFileSystem::new_with_prefix(&root)?.with_fsync(true);
        Ok((
            Self {
                root,
                _lock: Arc::new(lock),
            },
            Arc::new(objects),
        ))
    }

    /// Bytes that an unprivileged process could still write.
    pub(super) fn available(&self) -> Result<u64, StoreError> {
        let stat = statvfs(&self.root).map_err(|error| StoreError::Io {
            path: self.root.clone(),
            source: error.into(),
        })?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    /// Where files are that nothing refers to yet.
    pub(super) fn incoming(&self) -> PathBuf {
        self.root.join("incoming")
    }

    /// Removes unfinished copies: everything in `incoming`, and `object_store`'s own staging files
    /// (`NAME#NUMBER`) that a crash left elsewhere. Only while nothing is being published. Says of
    /// each whether it was there and could be removed.
    pub(super) fn remove_temporary(&self) -> Result<Vec<Result<bool, StoreError>>, StoreError> {
        let mut found = files(&self.incoming())?;
        let mut folders = vec![self.root.join("objects")];
        for folder in ["captures", "derived"] {
            let namespaces = entries(&self.root.join(folder))?;
            folders.extend(namespaces.into_iter().filter(|path| path.is_dir()));
        }
        for folder in folders {
            found.extend(files(&folder)?.into_iter().filter(|file| is_staging(file)));
        }
        Ok(found.iter().map(|file| remove(file)).collect())
    }
}

/// `object_store` writes `NAME#NUMBER` beside `NAME` and renames it.
fn is_staging(path: &Path) -> bool {
    path.file_name()
        .and_then(|name| name.to_str())
        .and_then(|name| name.rsplit_once('#'))
        .is_some_and(|(_, number)| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

/// Removes a file; false when it was gone.
fn remove(path: &Path) -> Result<bool, StoreError> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(source) => Err(StoreError::Io {
            path: path.to_path_buf(),
            source,
        }),
    }
}

fn files(directory: &Path) -> Result<Vec<PathBuf>, StoreError> {
    Ok(entries(directory)?.into_iter().filter(|path| !path.is_dir()).collect())
}

fn entries(directory: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let read = match fs::read_dir(directory) {
        Ok(read) => read,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => {
            return Err(StoreError::Io {
                path: directory.to_path_buf(),
                source,
            });
        }
    };
    read.map(|entry| entry.map(|entry| entry.path()).map_err(io_error(directory)))
        .collect()
}
