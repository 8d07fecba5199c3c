//! Errors with the file that they are of.

use std::fmt::{self, Display, Formatter};
use std::path::{Path, PathBuf};

/// An error of reading or writing a file. It shows the file's path before the error.
///
/// ```
/// use std::path::Path;
///
/// use flopwatch_trace::ReadLimits;
///
/// let error = flopwatch_trace::pprof::read(Path::new("absent.pb.gz"), &ReadLimits::default());
/// assert!(error.unwrap_err().to_string().starts_with("absent.pb.gz: cannot be read: "));
/// ```
#[derive(Debug)]
pub struct InFile<E> {
    /// Path of the file, as the caller gave it.
    pub path: PathBuf,
    /// What is wrong with the file.
    pub error: E,
}

impl<E> InFile<E> {
    /// Adds a path to an error, for `map_err`.
    pub(crate) fn at<F: Into<E>>(path: &Path) -> impl Fn(F) -> Self {
        |error| Self {
            path: path.to_owned(),
            error: error.into(),
        }
    }
}

impl<E: Display> Display for InFile<E> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.path.display(), self.error)
    }
}

impl<E: std::error::Error> std::error::Error for InFile<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.error.source()
    }
}
