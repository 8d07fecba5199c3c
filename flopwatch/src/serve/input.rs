//! What `serve` is told to serve: captures of any format, results of `record`, and folders of
//! captures; and how they become artifacts.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use flopwatch_api::artifact::{BINARY_TYPE, MAX_REPORTS, NCU_REPORT, Output, TIMELINE, raw_captures, report_name};
use flopwatch_artifacts::SourceFile;
use flopwatch_attach::sandbox::product::{self, ProductError};
use flopwatch_pipeline::artifact_file::{file_of, served};
use tokio_util::sync::CancellationToken;

use super::Error;
use crate::arguments::SourceArguments;
use crate::conversion::{Conversion, SUMMARY};

/// Most captures of one service.
pub(super) const MAX_CAPTURES: usize = 64;

/// Most entries of a folder that captures are looked for in.
pub(super) const MAX_ENTRIES: usize = 10_000;

/// One capture to serve.
#[derive(Debug)]
pub(super) enum Input {
    /// A file that somebody named: the service does not begin where it cannot be read.
    Named(PathBuf),
    /// A file of a folder: it is left out where it cannot be read.
    Found(PathBuf),
    /// A folder with files that have artifacts' names, as `record` leaves one.
    Result {
        /// Path of the folder.
        folder: PathBuf,
        /// Those files.
        files: Vec<SourceFile>,
    },
}

/// What is published of an input.
#[derive(Debug)]
pub(super) struct Artifacts {
    pub(super) files: Vec<SourceFile>,
    /// Events of the timeline; none where it is made on the first request.
    pub(super) events: Option<u64>,
    /// What people are told of a capture that was cut.
    pub(super) warning: Option<String>,
}

impl Input {
    /// The captures that `paths` stand for, in their order.
    pub(super) fn all_of(paths: &[PathBuf]) -> Result<Vec<Self>, Error> {
        let mut inputs = Vec::new();
        for path in paths {
            inputs.extend(Self::of(path)?);
        }
        if inputs.len() > MAX_CAPTURES {
            return Err(Error::TooMany(inputs.len()));
        }
        Ok(inputs)
    }

    /// The file at `path`, the result in that folder, or the captures in it.
    fn of(path: &Path) -> Result<Vec<Self>, Error> {
        let metadata = std::fs::metadata(path).map_err(Error::io(path))?;
        if metadata.is_file() {
            return Ok(vec![Self::Named(path.to_owned())]);
        }
        if !metadata.is_dir() {
            return Err(Error::Kind(path.to_owned()));
        }
        let files = artifacts_in(path)?;
        // Tables alone make no result of a folder of captures.
        if files.iter().all(|file| file.name == SUMMARY) {
            let captures = captures_in(path)?;
            if !captures.is_empty() {
                return Ok(captures.into_iter().map(Self::Found).collect());
            }
        }
        if files.is_empty() {
            return Err(Error::Nothing(path.to_owned()));
        }
        let folder = path.to_owned();
        Ok(vec![Self::Result { folder, files }])
    }

    /// Name of the file or folder, without where it lies and without control characters.
    pub(super) fn file_name(&self) -> String {
        let (Self::Named(path) | Self::Found(path) | Self::Result { folder: path, .. }) = self;
        // The current folder has no name in its path.
        let named = path.file_name().map(OsStr::to_owned);
        let resolved = || path.canonicalize().ok()?.file_name().map(OsStr::to_owned);
        let name = named.or_else(resolved).unwrap_or_default();
        let letters = name.to_string_lossy();
        letters.chars().filter(|letter| !letter.is_control()).collect()
    }

    /// Whether the service begins without it where it cannot be read.
    pub(super) const fn may_be_left_out(&self) -> bool {
        matches!(self, Self::Found(_))
    }

    /// Reads it, with what is made of it in the folder `work`. `stop` ends the work early.
    pub(super) async fn read(
        self,
        reading: &SourceArguments,
        work: &Path,
        stop: &CancellationToken,
    ) -> Result<Artifacts, Error> {
        let name = self.file_name();
        let convert = |file: PathBuf| {
            // The pages of analyses call a capture by its session.
            let source = reading.clone().source(file, Some(name));
            async move { Conversion::of(&source, work, stop.cancelled()).await }
        };
        let (folder, files) = match self {
            Self::Named(file) | Self::Found(file) => {
                let made = convert(file).await?;
                return Ok(Artifacts {
                    files: made.files,
                    events: Some(made.events),
                    warning: made.warning,
                });
            }
            Self::Result { folder, files } => (folder, files),
        };
        let Some(capture) = capture_of(&files) else {
            return Ok(Artifacts {
                files,
                events: None,
                warning: None,
            });
        };
        let made = convert(folder.join(capture)).await?;
        let is_replaced = |file: &SourceFile| made.is_made && file.name == TIMELINE;
        let mut files: Vec<SourceFile> = files.into_iter().filter(|file| !is_replaced(file)).collect();
        for file in made.files {
            if !files.iter().any(|other| other.name == file.name) {
                files.push(file);
            }
        }
        Ok(Artifacts {
            files,
            events: Some(made.events),
            warning: made.warning,
        })
    }
}

/// The file of a result that its timeline is made of: the timeline, or the one raw capture. None
/// where several make it together, on the first request.
fn capture_of(files: &[SourceFile]) -> Option<String> {
    let mut raw = files.iter().filter(|file| file.output == Output::Raw);
    let is_read = |name: &str| name == NCU_REPORT || raw_captures().any(|raw| raw == name);
    let only_raw = match (raw.next(), raw.next()) {
        (Some(raw), None) if is_read(&raw.name) => Some(raw),
        _ => None,
    };
    let timeline = files.iter().find(|file| file.name == TIMELINE);
    timeline.or(only_raw).map(|file| file.name.clone())
}

/// The files of a folder that have artifacts' names. The folder may come from somebody else than
/// the user: no link in it is followed, which could lead to a file that the user did not name.
fn artifacts_in(folder: &Path) -> Result<Vec<SourceFile>, Error> {
    let mut files = Vec::new();
    let further_reports: Vec<String> = (2..=MAX_REPORTS).map(report_name).collect();
    let further_reports = further_reports
        .iter()
        .map(|name| (name.as_str(), Output::Raw, BINARY_TYPE));
    for artifact in served().chain(further_reports) {
        match product::open(folder, Path::new(artifact.0), None) {
            Ok(content) => files.push(file_of(artifact, content)),
            Err(ProductError::NotFound(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(files)
}

/// The files of a folder that begin as a capture does, by name. Links and folders in it are left
/// out, and what cannot be read.
fn captures_in(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let entries = std::fs::read_dir(folder).map_err(Error::io(folder))?;
    let mut found = Vec::new();
    for (number, entry) in entries.enumerate() {
        if number >= MAX_ENTRIES {
            return Err(Error::TooManyEntries(folder.to_owned()));
        }
        let entry = entry.map_err(Error::io(folder))?;
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        let path = entry.path();
        if is_file && matches!(flopwatch_trace::detect(&path), Ok(Some(_))) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::sync::Arc;

    use flopwatch_api::artifact::SAMPLES;

    use super::*;

    fn names(inputs: &[Input]) -> Vec<String> {
        inputs.iter().map(Input::file_name).collect()
    }

    fn written(folder: &Path, names: &[&str], content: &[u8]) {
        for name in names {
            std::fs::write(folder.join(name), content).unwrap();
        }
    }

    #[test]
    fn a_folder_of_captures_is_each_of_them_by_name_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        written(folder.path(), &["b.json", "a.json"], br#"{"traceEvents": []}"#);
        written(folder.path(), &["notes.txt"], b"no capture");
        std::os::unix::fs::symlink(folder.path().join("a.json"), folder.path().join("link.json")).unwrap();
        let inputs = Input::all_of(&[folder.path().to_owned()]).unwrap();
        assert_eq!(names(&inputs), ["a.json", "b.json"]);
        assert!(inputs.iter().all(Input::may_be_left_out));
    }

    #[test]
    fn a_file_that_is_named_is_served_whatever_it_is_called_and_an_empty_folder_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        written(folder.path(), &["trace"], b"anything");
        let named = Input::all_of(&[folder.path().join("trace")]).unwrap();
        assert!(matches!(named.as_slice(), [Input::Named(_)]));
        let nothing = Input::all_of(&[folder.path().to_owned()]).unwrap_err();
        assert!(nothing.to_string().contains("holds no capture"), "{nothing}");
        let gone = Input::all_of(&[folder.path().join("gone")]).unwrap_err();
        assert!(gone.to_string().contains("gone"), "{gone}");
    }

    #[test]
    fn more_captures_than_a_service_holds_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        written(folder.path(), &["a.json"], b"{}");
        let paths = vec![folder.path().join("a.json"); MAX_CAPTURES + 1];
        assert!(matches!(Input::all_of(&paths), Err(Error::TooMany(65))));
    }

    #[test]
    fn a_result_is_read_by_its_timeline_else_by_its_one_raw_capture() {
        let folder = tempfile::tempdir().unwrap();
        written(folder.path(), &["content"], b"");
        let file = |name: &str, output: Output| SourceFile {
            name: name.to_owned(),
            output,
            media_type: String::new(),
            content: Arc::new(File::open(folder.path().join("content")).unwrap()),
        };
        let report = || file("capture.nsys-rep", Output::Raw);
        let timeline = || file(TIMELINE, Output::Timeline);
        let samples = || file(SAMPLES, Output::Raw);
        for (files, read) in [
            (vec![report(), timeline()], Some(TIMELINE)),
            (vec![report()], Some("capture.nsys-rep")),
            (vec![report(), samples()], None),
            (vec![samples()], None),
        ] {
            assert_eq!(capture_of(&files).as_deref(), read);
        }
    }
}
