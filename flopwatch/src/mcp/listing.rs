//! The captures below the allowed folders, by the first bytes of each file.

use std::fs::{DirEntry, Metadata};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Serialize;

use super::allowed::Allowed;

/// Most entries of folders that are looked at.
const MAX_ENTRIES: usize = 10_000;
/// How deep folders are looked into.
const MAX_DEPTH: usize = 8;

/// The captures that there are.
#[derive(Debug, Default, Serialize)]
pub(super) struct CaptureListing {
    /// What the server may read.
    allowed: Vec<String>,
    /// The files that begin as captures do, by name.
    captures: Vec<ListedCapture>,
    /// What was not looked at, in sentences.
    not_looked_at: Vec<String>,
}

/// A file that begins as a capture does.
#[derive(Debug, Serialize)]
struct ListedCapture {
    /// Its path as the other tools take it.
    file: String,
    /// What it begins as.
    format: &'static str,
    bytes: u64,
    /// When it was written last; null where the file system does not say.
    modified: Option<Timestamp>,
}

impl CaptureListing {
    /// Looks at the folders, at no more than `MAX_ENTRIES` of their entries. No symbolic link is
    /// followed.
    pub(super) fn of(allowed: &Allowed) -> Self {
        let mut walk = Walk::default();
        for file in allowed.files() {
            if let Ok(metadata) = file.metadata() {
                walk.look(allowed, file, &metadata);
            }
        }
        for folder in allowed.folders() {
            walk.folder(allowed, folder);
        }
        walk.captures.sort_by(|one, other| one.file.cmp(&other.file));
        walk.captures.dedup_by(|one, other| one.file == other.file);
        let not_looked_at = walk.not_looked_at();
        Self {
            allowed: allowed.names(),
            captures: walk.captures,
            not_looked_at,
        }
    }
}

/// What was found so far, and what was passed over.
#[derive(Debug, Default)]
struct Walk {
    captures: Vec<ListedCapture>,
    entries: usize,
    links: usize,
    deep: usize,
    unreadable: usize,
    is_cut: bool,
}

impl Walk {
    fn folder(&mut self, allowed: &Allowed, folder: &Path) {
        let mut left: Vec<(PathBuf, usize)> = vec![(folder.to_owned(), 0)];
        while let Some((folder, depth)) = left.pop() {
            let Ok(entries) = std::fs::read_dir(&folder) else {
                self.unreadable += 1;
                continue;
            };
            for entry in entries {
                if self.entries >= MAX_ENTRIES {
                    self.is_cut = true;
                    return;
                }
                self.entries += 1;
                let found = entry.and_then(|entry: DirEntry| Ok((entry.path(), entry.metadata()?)));
                let Ok((path, metadata)) = found else {
                    self.unreadable += 1;
                    continue;
                };
                if metadata.is_symlink() {
                    self.links += 1;
                } else if metadata.is_file() {
                    self.look(allowed, &path, &metadata);
                } else if metadata.is_dir() && !is_hidden(&path) {
                    if depth < MAX_DEPTH {
                        left.push((path, depth + 1));
                    } else {
                        self.deep += 1;
                    }
                }
            }
        }
    }

    fn look(&mut self, allowed: &Allowed, path: &Path, metadata: &Metadata) {
        match flopwatch_trace::detect(path) {
            Ok(Some(format)) => self.captures.push(ListedCapture {
                file: allowed.name_of(path),
                format: format.about(),
                bytes: metadata.len(),
                modified: metadata.modified().ok().and_then(|time| Timestamp::try_from(time).ok()),
            }),
            Ok(None) => {}
            Err(_) => self.unreadable += 1,
        }
    }

    fn not_looked_at(&self) -> Vec<String> {
        let mut told = Vec::new();
        if self.is_cut {
            told.push(format!(
                "Only the first {MAX_ENTRIES} entries of the folders were looked at: start the server with the folder that matters."
            ));
        }
        for (count, what) in [
            (self.links, "symbolic links were not followed: name one to have it read"),
            (self.deep, "folders lie too deep"),
            (self.unreadable, "files or folders cannot be read"),
        ] {
            if count > 0 {
                told.push(format!("{count} {what}."));
            }
        }
        told
    }
}

fn is_hidden(folder: &Path) -> bool {
    let name = folder.file_name().unwrap_or_default();
    name.as_encoded_bytes().starts_with(b".")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn captures_are_listed_with_their_paths_and_links_and_hidden_folders_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["sub", ".git"] {
            std::fs::create_dir(at(name)).unwrap();
        }
        for name in ["b.json", "sub/a.json", ".git/c.json"] {
            std::fs::write(at(name), r#"{"traceEvents": []}"#).unwrap();
        }
        std::fs::write(at("notes.txt"), "no capture").unwrap();
        std::os::unix::fs::symlink("b.json", at("link.json")).unwrap();
        let allowed = Allowed::new(&[folder.path().to_owned(), at("b.json")]).unwrap();
        let listing = serde_json::to_value(CaptureListing::of(&allowed)).unwrap();
        let files: Vec<&str> = listing["captures"]
            .as_array()
            .unwrap()
            .iter()
            .map(|capture| capture["file"].as_str().unwrap())
            .collect();
        let real = folder.path().canonicalize().unwrap();
        let name = |name: &str| real.join(name).display().to_string();
        assert_eq!(files, [name("b.json"), name("sub/a.json")]);
        assert_eq!(listing["captures"][0]["bytes"], json!(19));
        assert_eq!(
            listing["not_looked_at"],
            json!(["1 symbolic links were not followed: name one to have it read."])
        );
        for capture in files {
            assert!(allowed.file(capture).is_ok(), "{capture}");
        }
    }
}
