//! One layer of an image: files and folders of this machine under names of the image, as a tar.

use anyhow::{Context as _, Result};
use flopwatch_toolchain::cache::{file_hash, key};
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use tar::{Builder, EntryType, Header};

/// Most entries of a layer whose files count by content.
const MAX_HASHED_ENTRIES: usize = 32;

/// A file, or a folder with all in it, and where it goes in the image (no leading slash).
#[derive(Debug, Clone)]
pub(crate) struct File {
    source: PathBuf,
    destination: PathBuf,
}

impl File {
    pub(crate) fn new(source: impl Into<PathBuf>, destination: impl Into<PathBuf>) -> Self {
        Self {
            source: source.into(),
            destination: destination.into(),
        }
    }
}

/// What a layer holds, folders before what is in them.
#[derive(Debug)]
pub(crate) struct Layer {
    entries: Vec<File>,
}

impl Layer {
    /// Lists the files; folders are walked.
    pub(crate) fn new(files: Vec<File>) -> Result<Self> {
        let mut entries = Vec::new();
        for file in files {
            collect(file, &mut entries)?;
        }
        entries.sort_by(|a, b| a.destination.cmp(&b.destination));
        Ok(Self { entries })
    }

    /// Changes whenever a file in the layer does. Files of a small layer count by content, those of
    /// others by size and time.
    pub(crate) fn fingerprint(&self) -> Result<String> {
        let mut pins = Vec::new();
        for entry in &self.entries {
            pins.push(entry.destination.display().to_string());
            let meta = entry.source.symlink_metadata()?;
            if self.entries.len() <= MAX_HASHED_ENTRIES && meta.is_file() {
                pins.push(file_hash(&entry.source)?);
            } else if meta.is_file() {
                pins.push(format!(
                    "{} {:?} {:o}",
                    meta.len(),
                    meta.modified()?,
                    meta.permissions().mode()
                ));
            } else if meta.is_symlink() {
                pins.push(fs::read_link(&entry.source)?.display().to_string());
            }
        }
        Ok(key(&pins.iter().map(String::as_str).collect::<Vec<_>>()))
    }

    /// Writes the layer. Owner and times are fixed, so the same files give the same bytes.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let file = fs::File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        let mut tar = Builder::new(std::io::BufWriter::with_capacity(1 << 20, file));
        let mut folders = BTreeSet::new();
        for entry in &self.entries {
            for folder in parents(&entry.destination) {
                if folders.insert(folder.clone()) {
                    append(&mut tar, EntryType::Directory, 0o755, &folder, 0, std::io::empty())?;
                }
            }
            append_file(&mut tar, entry, &mut folders)
                .with_context(|| format!("cannot add {} to an image", entry.source.display()))?;
        }
        tar.into_inner()?.flush()?;
        Ok(())
    }
}

fn collect(file: File, entries: &mut Vec<File>) -> Result<()> {
    let meta = file
        .source
        .symlink_metadata()
        .with_context(|| format!("cannot read {}", file.source.display()))?;
    if meta.is_dir() {
        for child in fs::read_dir(&file.source)? {
            let child = child?;
            collect(
                File::new(child.path(), file.destination.join(child.file_name())),
                entries,
            )?;
        }
    }
    entries.push(file);
    Ok(())
}

/// The folders above a path, outermost first.
fn parents(path: &Path) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = path
        .ancestors()
        .skip(1)
        .filter(|folder| !folder.as_os_str().is_empty())
        .map(Path::to_owned)
        .collect();
    folders.reverse();
    folders
}

fn append_file(tar: &mut Builder<impl Write>, entry: &File, folders: &mut BTreeSet<PathBuf>) -> Result<()> {
    let meta = entry.source.symlink_metadata()?;
    if meta.is_dir() {
        if folders.insert(entry.destination.clone()) {
            append(
                tar,
                EntryType::Directory,
                0o755,
                &entry.destination,
                0,
                std::io::empty(),
            )?;
        }
        return Ok(());
    }
    if meta.is_symlink() {
        let mut header = header(EntryType::Symlink, 0o777, 0);
        return Ok(tar.append_link(&mut header, &entry.destination, fs::read_link(&entry.source)?)?);
    }
    let mode = if meta.permissions().mode() & 0o111 == 0 {
        0o644
    } else {
        0o755
    };
    append(
        tar,
        EntryType::Regular,
        mode,
        &entry.destination,
        meta.len(),
        fs::File::open(&entry.source)?,
    )
}

fn append(
    tar: &mut Builder<impl Write>,
    kind: EntryType,
    mode: u32,
    path: &Path,
    size: u64,
    data: impl std::io::Read,
) -> Result<()> {
    let mut header = header(kind, mode, size);
    Ok(tar.append_data(&mut header, path, data)?)
}

fn header(kind: EntryType, mode: u32, size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    header
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn tree() -> (tempfile::TempDir, Vec<File>) {
        let folder = tempfile::tempdir().unwrap();
        let tools = folder.path().join("tools");
        fs::create_dir_all(tools.join("deep")).unwrap();
        fs::write(tools.join("deep/data"), "data").unwrap();
        fs::write(tools.join("run"), "#!/bin/sh\n").unwrap();
        fs::set_permissions(tools.join("run"), fs::Permissions::from_mode(0o700)).unwrap();
        std::os::unix::fs::symlink("run", tools.join("link")).unwrap();
        let files = vec![
            File::new(tools, "opt/tools"),
            File::new(folder.path().join("tools/run"), "bin/run"),
        ];
        (folder, files)
    }

    #[test]
    fn a_layer_holds_its_files_below_folders_that_come_first() {
        let (folder, files) = tree();
        let path = folder.path().join("layer.tar");
        Layer::new(files).unwrap().write(&path).unwrap();
        let mut tar = tar::Archive::new(fs::File::open(&path).unwrap());
        let mut seen = BTreeMap::new();
        for entry in tar.entries().unwrap() {
            let entry = entry.unwrap();
            let name = entry.path().unwrap().into_owned();
            if let Some(folder) = name.parent().filter(|folder| !folder.as_os_str().is_empty()) {
                assert!(seen.contains_key(folder), "{} comes before its folder", name.display());
            }
            let header = entry.header();
            let facts = (
                header.entry_type(),
                header.mode().unwrap(),
                header.uid().unwrap(),
                header.mtime().unwrap(),
            );
            assert!(seen.insert(name, facts).is_none(), "an entry comes twice");
        }
        let names: Vec<_> = seen.keys().map(|name| name.to_str().unwrap()).collect();
        let expected = [
            "bin",
            "bin/run",
            "opt",
            "opt/tools",
            "opt/tools/deep",
            "opt/tools/deep/data",
            "opt/tools/link",
            "opt/tools/run",
        ];
        assert_eq!(names, expected);
        assert_eq!(seen[Path::new("bin/run")], (EntryType::Regular, 0o755, 0, 0));
        assert_eq!(
            seen[Path::new("opt/tools/deep/data")],
            (EntryType::Regular, 0o644, 0, 0)
        );
        assert_eq!(seen[Path::new("opt/tools/link")].0, EntryType::Symlink);
    }

    #[test]
    fn the_same_files_give_the_same_bytes_and_other_bytes_another_fingerprint() {
        let (folder, files) = tree();
        let write = |name: &str| {
            let path = folder.path().join(name);
            Layer::new(files.clone()).unwrap().write(&path).unwrap();
            file_hash(&path).unwrap()
        };
        assert_eq!(write("one.tar"), write("two.tar"));
        let before = Layer::new(files.clone()).unwrap().fingerprint().unwrap();
        assert_eq!(before, Layer::new(files.clone()).unwrap().fingerprint().unwrap());
        fs::write(folder.path().join("tools/deep/data"), "DATA").unwrap();
        assert_ne!(before, Layer::new(files).unwrap().fingerprint().unwrap());
    }
}
