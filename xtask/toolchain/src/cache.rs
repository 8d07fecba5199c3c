//! The cache folder: what is built or fetched once, each item under the hash of what pins it.

use crate::progress::say;
use anyhow::{Context as _, Result};
use sha2::{Digest as _, Sha256};
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// The cache folder and the names in it.
#[derive(Debug, Clone)]
pub struct Cache {
    root: PathBuf,
}

impl Cache {
    /// Opens `$FLOPWATCH_CACHE`, else `$XDG_CACHE_HOME/flopwatch`, else `~/.cache/flopwatch`.
    pub fn open() -> Result<Self> {
        let set = |name: &str| {
            std::env::var_os(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        let root = set("FLOPWATCH_CACHE")
            .or_else(|| set("XDG_CACHE_HOME").map(|folder| folder.join("flopwatch")))
            .or_else(|| set("HOME").map(|home| home.join(".cache/flopwatch")))
            .context("no place for the cache: set FLOPWATCH_CACHE or HOME")?;
        fs::create_dir_all(&root)
            .with_context(|| format!("cannot make the cache folder {}; set FLOPWATCH_CACHE", root.display()))?;
        Ok(Self {
            root: root.canonicalize()?,
        })
    }

    /// The cache in a folder that is there.
    pub fn at(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where the item `name` with these pins lies, whether it is there or not.
    pub fn place(&self, name: &str, pins: &[&str]) -> PathBuf {
        self.root.join(format!("{name}-{}", key(pins)))
    }

    /// The item's path; `make` builds it at a temporary path first when it is absent. Older
    /// versions of the item go.
    pub fn item(&self, name: &str, pins: &[&str], make: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
        let path = self.place(name, pins);
        if path.exists() {
            return Ok(path);
        }
        let _lock = self.lock(name)?;
        if path.exists() {
            return Ok(path);
        }
        let temporary = self.root.join(format!("{name}.part"));
        remove(&temporary)?;
        make(&temporary).inspect_err(|_| {
            // The error that matters is the one that `make` gave; a leftover is removed by the next
            // attempt.
            remove(&temporary).ok();
        })?;
        fs::rename(&temporary, &path).with_context(|| format!("cannot put {} into place", path.display()))?;
        self.forget_others(name, &path)?;
        Ok(path)
    }

    fn forget_others(&self, name: &str, keep: &Path) -> Result<()> {
        for entry in fs::read_dir(&self.root)? {
            let path = entry?.path();
            let old = path
                .file_name()
                .and_then(|file| file.to_str())
                .is_some_and(|file| is_version_of(file, name));
            if old && path != keep {
                remove(&path)?;
            }
        }
        Ok(())
    }

    /// Waits for the lock `name`; it is released when the file is dropped.
    pub fn lock(&self, name: &str) -> Result<File> {
        let folder = self.root.join("locks");
        fs::create_dir_all(&folder)?;
        let path = folder.join(name.replace('/', "-"));
        let file = File::create(&path).with_context(|| format!("cannot open the lock {}", path.display()))?;
        if file.try_lock().is_err() {
            say(format_args!("waiting for another recipe that holds {}", path.display()));
            file.lock().with_context(|| format!("cannot lock {}", path.display()))?;
        }
        Ok(file)
    }
}

fn is_version_of(file: &str, name: &str) -> bool {
    file.strip_prefix(name)
        .and_then(|rest| rest.strip_prefix('-'))
        .is_some_and(|hash| hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Removes a file or folder that may be absent.
pub fn remove(path: &Path) -> Result<()> {
    let outcome = match path.symlink_metadata() {
        Ok(meta) if meta.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(_) => return Ok(()),
    };
    outcome.with_context(|| format!("cannot remove {}", path.display()))
}

/// The short name of a set of pins: 16 hex digits of their SHA-256, lengths included.
pub fn key(pins: &[&str]) -> String {
    let mut hash = Sha256::new();
    for pin in pins {
        hash.update(pin.len().to_string());
        hash.update(":");
        hash.update(pin);
    }
    let mut text = hex::encode(hash.finalize());
    text.truncate(16);
    text
}

/// SHA-256 of a file's bytes, as hex.
pub fn file_hash(path: &Path) -> Result<String> {
    let mut file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        let count = file.read(&mut buffer)?;
        let Some(part) = buffer.get(..count).filter(|part| !part.is_empty()) else {
            break;
        };
        hash.update(part);
    }
    Ok(hex::encode(hash.finalize()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_that_only_run_together_alike_have_different_keys() {
        assert_ne!(key(&["ab", "c"]), key(&["a", "bc"]));
        assert_eq!(key(&["ab", "c"]), key(&["ab", "c"]));
    }

    #[test]
    fn an_item_is_made_once_and_replaces_its_older_version() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        let write = |text: &'static str| move |path: &Path| Ok(fs::write(path, text)?);
        let first = cache.item("thing", &["1"], write("one")).unwrap();
        let again = cache.item("thing", &["1"], |_| panic!("made twice")).unwrap();
        assert_eq!(first, again);
        cache.item("thing-else", &["1"], write("other")).unwrap();
        let second = cache.item("thing", &["2"], write("two")).unwrap();
        assert!(second.exists() && !first.exists());
        assert!(
            cache.place("thing-else", &["1"]).exists(),
            "another item's version is not touched"
        );
    }

    #[test]
    fn a_failed_build_leaves_nothing_that_looks_finished() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        let broken = cache.item("thing", &["1"], |path| {
            fs::write(path, "half")?;
            anyhow::bail!("broke")
        });
        assert_eq!(broken.unwrap_err().to_string(), "broke");
        assert!(!cache.place("thing", &["1"]).exists());
        assert!(!folder.path().join("thing.part").exists());
    }
}
