//! Which files may be read: those below the folders, and the files, that the command line names.
//! Whoever calls a tool names paths as they like, and may be led by what a capture holds.

use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

/// Most folders and files of a command line.
const MAX_ROOTS: usize = 64;

/// Why the folders and files of a command line cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum AllowedError {
    /// A folder or file is not there.
    #[error("{path}: {source}")]
    Io {
        /// Path that was given.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// A path is neither a file nor a folder.
    #[error("{0}: is neither a file nor a folder")]
    Kind(PathBuf),
    /// More paths than are looked at.
    #[error("{0} paths are more than the {MAX_ROOTS} that are served: name a folder that holds them")]
    TooMany(usize),
}

/// Why a file is not read. No message tells whether there is something outside.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    /// The path leads to where nothing is allowed.
    #[error("{path}: lies outside of what this server may read, which is {allowed}; list tells the captures in it")]
    Outside {
        /// Path that was asked for.
        path: String,
        /// What the command line names.
        allowed: String,
    },
    /// A symbolic link on the way leads to where nothing is allowed.
    #[error("{path}: a symbolic link leads out of what this server may read, which is {allowed}")]
    LeadsOut {
        /// Path that was asked for.
        path: String,
        /// What the command line names.
        allowed: String,
    },
    /// Nothing is there.
    #[error("{path}: there is no such file in {allowed}; list tells the captures in it")]
    Missing {
        /// Path that was asked for.
        path: String,
        /// What the command line names.
        allowed: String,
    },
    /// A folder, a pipe or another thing that is no file.
    #[error("{path}: is no file; name one in it, as list tells them")]
    NoFile {
        /// Path that was asked for.
        path: String,
    },
    /// The operating system refuses.
    #[error("{path}: cannot be read: {message}")]
    Io {
        /// Path that was asked for.
        path: String,
        /// Error of the operating system.
        message: String,
    },
}

/// A folder or file of the command line.
#[derive(Debug)]
struct Root {
    /// As it was given, from the root of the file system on.
    given: PathBuf,
    /// Where it lies, without symbolic links.
    real: PathBuf,
    is_folder: bool,
}

impl Root {
    fn holds(&self, real: &Path) -> bool {
        if self.is_folder {
            real.starts_with(&self.real)
        } else {
            real == self.real
        }
    }
}

/// The folders and files that may be read.
#[derive(Debug)]
pub(super) struct Allowed {
    roots: Vec<Root>,
}

/// A file that may be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AllowedFile {
    /// Where it lies, without symbolic links.
    pub(super) path: PathBuf,
    /// What answers call it: a path that [`Allowed::file`] takes.
    pub(super) name: String,
}

impl Allowed {
    /// What `paths` name; without one, the current folder.
    pub(super) fn new(paths: &[PathBuf]) -> Result<Self, AllowedError> {
        let current = [PathBuf::from(".")];
        let paths = if paths.is_empty() { &current } else { paths };
        if paths.len() > MAX_ROOTS {
            return Err(AllowedError::TooMany(paths.len()));
        }
        let root = |path: &PathBuf| {
            let io = |source| AllowedError::Io {
                path: path.clone(),
                source,
            };
            let real = path.canonicalize().map_err(io)?;
            let metadata = real.metadata().map_err(io)?;
            if !metadata.is_dir() && !metadata.is_file() {
                return Err(AllowedError::Kind(path.clone()));
            }
            Ok(Root {
                given: std::path::absolute(path).map_err(io)?,
                real,
                is_folder: metadata.is_dir(),
            })
        };
        let roots: Result<Vec<Root>, AllowedError> = paths.iter().map(root).collect();
        Ok(Self { roots: roots? })
    }

    /// The folders and files for people.
    pub(super) fn names(&self) -> Vec<String> {
        self.roots.iter().map(|root| root.real.display().to_string()).collect()
    }

    /// The folders, with which files may be named.
    pub(super) fn folders(&self) -> impl Iterator<Item = &Path> {
        let folders = self.roots.iter().filter(|root| root.is_folder);
        folders.map(|root| root.real.as_path())
    }

    /// The files that the command line names by themselves.
    pub(super) fn files(&self) -> impl Iterator<Item = &Path> {
        let files = self.roots.iter().filter(|root| !root.is_folder);
        files.map(|root| root.real.as_path())
    }

    /// What answers call a file that lies at `real`: its path in the folder where that is the only
    /// one, else its whole path.
    pub(super) fn name_of(&self, real: &Path) -> String {
        let within = match self.roots.as_slice() {
            [only] if only.is_folder => real.strip_prefix(&only.real).ok(),
            _ => None,
        };
        within.unwrap_or(real).display().to_string()
    }

    /// The file that a client names, absolute or within one of the folders.
    pub(super) fn file(&self, asked: &str) -> Result<AllowedFile, Refusal> {
        let path = asked.to_owned();
        let allowed = self.names().join(", ");
        let wanted = Path::new(asked);
        let leads_up = wanted.components().any(|part| part == Component::ParentDir);
        if leads_up || asked.contains('\0') {
            return Err(Refusal::Outside { path, allowed });
        }
        let candidates = self.candidates(wanted);
        if candidates.is_empty() {
            return Err(Refusal::Outside { path, allowed });
        }
        let mut refusal = None;
        for candidate in candidates {
            let real = match candidate.canonicalize() {
                Ok(real) => real,
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => continue,
                Err(error) => {
                    let message = error.to_string();
                    refusal.get_or_insert(Refusal::Io {
                        path: path.clone(),
                        message,
                    });
                    continue;
                }
            };
            if !self.roots.iter().any(|root| root.holds(&real)) {
                let (path, allowed) = (path.clone(), allowed.clone());
                refusal.get_or_insert(Refusal::LeadsOut { path, allowed });
            } else if real.is_file() {
                let name = self.name_of(&real);
                return Ok(AllowedFile { path: real, name });
            } else {
                refusal.get_or_insert(Refusal::NoFile { path: path.clone() });
            }
        }
        Err(refusal.unwrap_or(Refusal::Missing { path, allowed }))
    }

    /// Where a file of that path may lie, by its words alone: nothing outside is looked at.
    fn candidates(&self, wanted: &Path) -> Vec<PathBuf> {
        if wanted.is_absolute() {
            let within = |root: &Root| wanted.starts_with(&root.given) || wanted.starts_with(&root.real);
            let is_within = self.roots.iter().any(within);
            return is_within.then(|| wanted.to_owned()).into_iter().collect();
        }
        let folders = self.folders().map(|folder| folder.join(wanted));
        let named = |file: &&Path| file.file_name().is_some_and(|name| Path::new(name) == wanted);
        folders.chain(self.files().filter(named).map(Path::to_owned)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A folder `in` with `a.json`, `sub/b.json` and links, beside `secret.json`.
    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(at("in/sub")).unwrap();
        for file in ["in/a.json", "in/sub/b.json", "secret.json"] {
            std::fs::write(at(file), "{}").unwrap();
        }
        symlink(at("secret.json"), at("in/out.json")).unwrap();
        symlink(folder.path(), at("in/up")).unwrap();
        symlink("sub/b.json", at("in/within.json")).unwrap();
        folder
    }

    #[test]
    fn files_below_a_folder_are_found_by_their_path_in_it_or_from_the_root_on() {
        let folder = folder();
        let allowed = Allowed::new(&[folder.path().join("in")]).unwrap();
        let real = folder.path().canonicalize().unwrap().join("in");
        for (asked, name) in [
            ("a.json", "a.json"),
            ("./sub/b.json", "sub/b.json"),
            ("within.json", "sub/b.json"),
            (real.join("a.json").to_str().unwrap(), "a.json"),
        ] {
            let file = allowed.file(asked).unwrap();
            assert_eq!((file.name.as_str(), &file.path), (name, &real.join(name)), "{asked}");
        }
    }

    #[test]
    fn whatever_leads_out_is_refused() {
        let folder = folder();
        let allowed = Allowed::new(&[folder.path().join("in")]).unwrap();
        let secret = folder.path().join("secret.json");
        for outside in [
            "../secret.json",
            "sub/../../secret.json",
            secret.to_str().unwrap(),
            "/etc/passwd",
            "/nonexistent",
            "a.json\0",
        ] {
            let refusal = allowed.file(outside).unwrap_err();
            assert!(matches!(refusal, Refusal::Outside { .. }), "{outside}: {refusal}");
        }
        for link in ["out.json", "up/secret.json", "up/in/a.json/../../secret.json"] {
            let refusal = allowed.file(link).unwrap_err();
            assert!(
                matches!(refusal, Refusal::LeadsOut { .. } | Refusal::Outside { .. }),
                "{link}: {refusal}"
            );
        }
        // A link that leads out and in again is inside.
        assert_eq!(allowed.file("up/in/a.json").unwrap().name, "a.json");
        let missing = allowed.file("gone.json").unwrap_err().to_string();
        assert!(missing.contains("there is no such file"), "{missing}");
        assert!(matches!(allowed.file("sub"), Err(Refusal::NoFile { .. })));
        assert!(matches!(allowed.file(""), Err(Refusal::NoFile { .. })));
    }

    #[test]
    fn a_file_that_is_named_is_allowed_alone() {
        let folder = folder();
        let file = folder.path().join("in/a.json");
        let allowed = Allowed::new(std::slice::from_ref(&file)).unwrap();
        let name = file.canonicalize().unwrap().display().to_string();
        assert_eq!(allowed.file("a.json").unwrap().name, name);
        assert_eq!(allowed.file(&name).unwrap().name, name);
        assert!(allowed.file("sub/b.json").is_err());
        assert!(Allowed::new(&[folder.path().join("gone")]).is_err());
    }
}
