//! The raw captures that lie in a container, and the one that is being recorded.

use std::path::{Path, PathBuf};

use flopwatch_launcher::guard::Collecting;
use flopwatch_launcher::{raw_capture, run_dir};

use super::{GraftError, Target};
use crate::rootfs::RootfsError;

/// Raw captures of one container that are looked at.
const MAX_CAPTURES: usize = 256;

impl Target {
    /// Where the raw capture called `name` is written, in the container.
    pub fn capture(&self, name: &str) -> PathBuf {
        self.run_dir.join(run_dir::OUT).join(format!("{name}.qdstrm"))
    }

    /// The raw captures of the collection called `name` that lie in the container, in the order of
    /// the ranges that they hold.
    pub fn captures_of(&self, name: &str) -> Result<Vec<PathBuf>, GraftError> {
        let mut found: Vec<(u32, String)> = self
            .captures()?
            .into_iter()
            .filter_map(|stem| {
                let (of, number) = raw_capture::split_stem(&stem);
                (of == name).then_some((number, stem))
            })
            .collect();
        found.sort_unstable();
        Ok(found.into_iter().map(|(_, stem)| self.capture(&stem)).collect())
    }

    /// Removes them; true when there was one. Safe to run twice.
    pub fn remove_captures_of(&self, name: &str) -> Result<bool, GraftError> {
        let mut removed = false;
        for path in self.captures_of(name)? {
            removed |= self.remove_capture(&path)?;
        }
        Ok(removed)
    }

    /// Names, without extension, of the raw captures that lie in the container.
    pub fn captures(&self) -> Result<Vec<String>, GraftError> {
        let listed = self.root()?.list(&self.run_dir.join(run_dir::OUT), MAX_CAPTURES)?;
        Ok(listed.iter().filter_map(|name| stem(Path::new(name))).collect())
    }

    /// Name, without extension, of the raw capture that is being recorded; none when nothing is.
    pub fn recorded(&self) -> Result<Option<String>, GraftError> {
        let path = self.run_dir.join(run_dir::COLLECTING);
        let text = match self.root()?.read(&path, run_dir::CONTROL_LIMIT) {
            Err(RootfsError::NotFound { .. }) => return Ok(None),
            other => other?,
        };
        let collecting = Collecting::parse(&String::from_utf8_lossy(&text));
        Ok(collecting.and_then(|collecting| stem(&collecting.output)))
    }
}

/// The name of a raw capture without its extension; none for another file.
fn stem(file: &Path) -> Option<String> {
    let is_raw = file.extension().is_some_and(|extension| extension == "qdstrm");
    is_raw.then(|| file.file_stem()?.to_str().map(str::to_owned)).flatten()
}
