//! A folder and its archive, with a list of what is in it.

use anyhow::{Context as _, Result, bail};
use flopwatch_launcher::needed::names;
use flopwatch_toolchain::cache::{file_hash, remove};
use flopwatch_toolchain::command::Run;
use flopwatch_toolchain::project;
use serde_json::json;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Bytes of an archive that a machine with a GPU takes at once: 64 MiB, with all that is in it.
const MAX_ARCHIVE_BYTES: u64 = 64 << 20;
/// Files that are named where an archive is too large.
const NAMED_FILES: usize = 5;

/// Bytes of a bundle.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    /// Of the archive.
    pub(crate) packed: u64,
    /// Of the files in it.
    pub(crate) unpacked: u64,
}

/// A bundle in the making.
#[derive(Debug)]
pub(crate) struct Bundle {
    output: PathBuf,
    name: &'static str,
    listed: serde_json::Map<String, serde_json::Value>,
    /// Bytes of each file, by its name.
    bytes: BTreeMap<String, u64>,
    newest_glibc: (u32, u32),
}

impl Bundle {
    /// An empty one below `output`, in the place of an older one.
    pub(crate) fn new(output: &Path, name: &'static str) -> Result<Self> {
        let bundle = Self {
            output: output.to_owned(),
            name,
            listed: serde_json::Map::new(),
            bytes: BTreeMap::new(),
            newest_glibc: (0, 0),
        };
        remove(&bundle.folder())?;
        fs::create_dir_all(bundle.folder())?;
        Ok(bundle)
    }

    pub(crate) const fn name(&self) -> &'static str {
        self.name
    }

    /// The unpacked bundle.
    pub(crate) fn folder(&self) -> PathBuf {
        self.output.join(self.name)
    }

    /// The packed one.
    pub(crate) fn archive(&self) -> PathBuf {
        self.output.join(format!("{}.tar.gz", self.name))
    }

    /// Copies a file into it; its mode comes along.
    pub(crate) fn add(&mut self, from: &Path, name: &str) -> Result<()> {
        let to = self.folder().join(name);
        if let Some(parent) = to.parent() {
            fs::create_dir_all(parent)?;
        }
        let bytes = fs::copy(from, &to).with_context(|| format!("cannot copy {}", from.display()))?;
        self.bytes.insert(name.to_owned(), bytes);
        self.newest_glibc = self.newest_glibc.max(newest_glibc(&fs::read(&to)?));
        self.listed.insert(name.to_owned(), json!(file_hash(&to)?));
        Ok(())
    }

    /// Copies a file, or a folder with all that is in it but what an interpreter left there.
    pub(crate) fn add_tree(&mut self, from: &Path, name: &str) -> Result<()> {
        if !from.is_dir() {
            return self.add(from, name);
        }
        for inner in names(from)?.iter().filter(|inner| *inner != "__pycache__") {
            let inside = format!("{name}/{}", inner.to_string_lossy());
            self.add_tree(&from.join(inner), &inside)?;
        }
        Ok(())
    }

    /// Writes the list.
    pub(crate) fn finish(&self) -> Result<()> {
        let commit = Run::new("git")
            .args(["rev-parse", "HEAD"])
            .dir(project::root()?)
            .output();
        let manifest = json!({
            "commit": commit.map(|text| text.trim().to_owned()).unwrap_or_default(),
            "needs_glibc": format!("{}.{}", self.newest_glibc.0, self.newest_glibc.1),
            "needs_driver": "580",
            "sha256": self.listed,
        });
        let path = self.folder().join("manifest.json");
        fs::write(path, serde_json::to_string_pretty(&manifest)?)?;
        Ok(())
    }

    /// Packs it. An archive that is too large is an error, which names the largest files.
    pub(crate) fn pack(&self) -> Result<Size> {
        let archive = self.archive();
        Run::new("tar")
            .arg("-czf")
            .arg(&archive)
            .arg("-C")
            .arg(&self.output)
            .arg(self.name)
            .quiet()?;
        let size = Size {
            packed: fs::metadata(&archive)?.len(),
            unpacked: self.bytes.values().sum(),
        };
        match too_large(size, &self.bytes) {
            Some(why) => bail!("{} {why}", archive.display()),
            None => Ok(size),
        }
    }
}

/// Why a bundle with these files is too large to carry; `None` for one that is not.
fn too_large(size: Size, files: &BTreeMap<String, u64>) -> Option<String> {
    if size.packed <= MAX_ARCHIVE_BYTES {
        return None;
    }
    let mut largest: Vec<(&String, &u64)> = files.iter().collect();
    largest.sort_by_key(|(_, bytes)| Reverse(**bytes));
    let named = largest.iter().take(NAMED_FILES);
    let named: Vec<String> = named
        .map(|(name, bytes)| format!("{name} {}", mebibytes(**bytes)))
        .collect();
    Some(format!(
        "has {}, more than {}; the largest of its files, unpacked: {}",
        mebibytes(size.packed),
        mebibytes(MAX_ARCHIVE_BYTES),
        named.join(", ")
    ))
}

/// Bytes as people read them: `12.3 MiB`; what is begun of a tenth counts whole.
pub(crate) fn mebibytes(bytes: u64) -> String {
    let tenths = bytes.saturating_mul(10).div_ceil(1 << 20);
    format!("{}.{} MiB", tenths / 10, tenths % 10)
}

/// The newest version of glibc that a program or library asks for.
fn newest_glibc(file: &[u8]) -> (u32, u32) {
    const NAME: &[u8] = b"GLIBC_2.";
    let minors = file
        .windows(NAME.len() + 2)
        .filter(|window| window.starts_with(NAME))
        .filter_map(|window| {
            let digits = window.get(NAME.len()..)?;
            let digits: String = digits
                .iter()
                .map(|byte| char::from(*byte))
                .take_while(char::is_ascii_digit)
                .collect();
            digits.parse().ok()
        });
    minors.max().map_or((0, 0), |minor| (2, minor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_that_is_too_large_names_its_size_and_its_largest_files() {
        let sizes = [1, 9 << 20, 2, 40 << 20, 3, 80 << 20, 4, 5];
        let files: BTreeMap<String, u64> = ('a'..).map(String::from).zip(sizes).collect();
        let of = |packed| {
            let unpacked = files.values().sum();
            too_large(Size { packed, unpacked }, &files)
        };
        assert_eq!(of(64 << 20), None);
        let why = of((64 << 20) + 1).unwrap();
        let expected = "has 64.1 MiB, more than 64.0 MiB; the largest of its files, unpacked: f 80.0 MiB, d 40.0 MiB, \
            b 9.0 MiB, h 0.1 MiB, g 0.1 MiB";
        assert_eq!(why, expected);
    }

    #[test]
    fn the_newest_glibc_is_found_among_all_versions() {
        assert_eq!(newest_glibc(b"\0GLIBC_2.2.5\0GLIBC_2.34\0GLIBC_2.17\0 end"), (2, 34));
        assert_eq!(newest_glibc(b"print('no program')"), (0, 0));
    }

    /// Tests that start processes.
    mod crate_tests {
        use super::*;

        #[test]
        fn a_bundle_lists_its_files_and_replaces_an_older_one() {
            let output = tempfile::tempdir().unwrap();
            let file = output.path().join("file");
            fs::write(&file, "text").unwrap();
            let mut bundle = Bundle::new(output.path(), "a-bundle").unwrap();
            bundle.add(&file, "folder/file").unwrap();
            bundle.finish().unwrap();
            let manifest = fs::read_to_string(bundle.folder().join("manifest.json")).unwrap();
            assert!(manifest.contains("\"folder/file\""), "{manifest}");
            let size = bundle.pack().unwrap();
            assert!(size.packed > 0 && size.unpacked == 4 && bundle.archive().exists());
            let bundle = Bundle::new(output.path(), "a-bundle").unwrap();
            assert!(!bundle.folder().join("folder").exists());
        }
    }
}
