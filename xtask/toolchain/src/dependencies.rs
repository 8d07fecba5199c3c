//! What cargo made of the registry's crates, kept in the cache for clones that have nothing built.
//!
//! A clone has a target folder of its own, and cargo would compile some 450 crates into it that no
//! change of ours touches. What it made of them is kept under the hash of all that decides it, and
//! laid into the folder of a new clone; cargo's own fingerprints then decide whether it is used, so
//! that an entry of the cache that does not fit costs a compilation and is never linked. Nothing of
//! the workspace's own packages is kept: their paths are part of what they are compiled to.
//!
//! Libraries are linked, not copied, since neither cargo nor rustc changes one in its place. What
//! cargo writes in place (fingerprints, what build scripts said) is copied with its times, which
//! cargo compares. Cargo compiles what is older than what it depends on, so what it has made in the
//! new clone already, for the program that runs this, gives way to what is kept.

use crate::cache::Cache;
use crate::project;
use anyhow::{Context as _, Result};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::{self, File, FileTimes};
use std::io::ErrorKind;
use std::path::Path;

/// The item's name in the cache.
const NAME: &str = "dependencies";
/// What decides how the registry's crates are compiled, below the workspace's root.
const PINS: [&str; 4] = ["Cargo.lock", "Cargo.toml", "rust-toolchain.toml", ".cargo/config.toml"];
/// The folders of profiles that a round builds in, below cargo's target folder.
const PROFILES: [&str; 4] = ["debug", "rig", "static/rig", "static/x86_64-unknown-linux-gnu/rig"];
/// The folders of a profile whose entries are folders of one compilation each.
const OF_UNITS: [&str; 2] = [".fingerprint", "build"];
/// The folder of a profile that holds what was compiled.
const LIBRARIES: &str = "deps";
/// What is never changed in its place.
const LINKED: [&str; 3] = ["rlib", "rmeta", "so"];

/// The names of the workspace's own packages and crates, as cargo names files by them.
struct Own(BTreeSet<String>);

impl Own {
    /// Reads what `cargo metadata --no-deps` printed.
    fn parse(metadata: &str) -> Result<Self> {
        let metadata: Value = serde_json::from_str(metadata).context("`cargo metadata` gave no JSON")?;
        let packages = metadata.get("packages").and_then(Value::as_array);
        let packages = packages.context("`cargo metadata` names no packages")?;
        let targets = packages
            .iter()
            .filter_map(|package| package.get("targets")?.as_array())
            .flatten();
        let names = packages
            .iter()
            .chain(targets)
            .filter_map(|named| named.get("name")?.as_str());
        Ok(Self(
            names
                .flat_map(|name| [name.to_owned(), name.replace('-', "_")])
                .collect(),
        ))
    }

    /// Whether a file or folder `NAME-HASH...` of cargo is of the workspace.
    fn holds(&self, file: &str) -> bool {
        let stem = file.split('.').next().unwrap_or(file);
        let Some((name, _)) = stem.rsplit_once('-') else {
            return true;
        };
        self.0.contains(name) || name.strip_prefix("lib").is_some_and(|name| self.0.contains(name))
    }
}

/// Lays what the cache has into the target folder of this clone; whether it had something.
pub fn restore(cache: &Cache) -> Result<bool> {
    let kept = cache.place(NAME, &pins()?.each_ref().map(String::as_str));
    if !kept.exists() {
        return Ok(false);
    }
    let own = Own::parse(&project::metadata()?)?;
    copy_profiles(&kept, &project::target_directory()?, &own)?;
    Ok(true)
}

/// Keeps what was built here, unless the cache has it.
pub fn keep(cache: &Cache) -> Result<()> {
    let own = Own::parse(&project::metadata()?)?;
    let target = project::target_directory()?;
    let pins = pins()?;
    cache
        .item(NAME, &pins.each_ref().map(String::as_str), |kept| {
            copy_profiles(&target, kept, &own)
        })
        .map(drop)
}

/// The texts of [`PINS`], of the lock file what is not ours; that of a file which is absent is
/// empty.
fn pins() -> Result<[String; 4]> {
    let root = project::root()?;
    let [lock, others @ ..] = PINS.map(|file| fs::read_to_string(root.join(file)).unwrap_or_default());
    let [manifest, toolchain, configuration] = others;
    Ok([foreign(&lock), manifest, toolchain, configuration])
}

/// The packages of a lock file that come from elsewhere: a package of ours that uses another one of
/// them changes none.
fn foreign(lock: &str) -> String {
    let packages = lock.split("[[package]]").skip(1);
    packages.filter(|package| package.contains("\nsource = ")).collect()
}

fn copy_profiles(from: &Path, to: &Path, own: &Own) -> Result<()> {
    for profile in PROFILES {
        let (from, to) = (from.join(profile), to.join(profile));
        for folder in OF_UNITS.into_iter().chain([LIBRARIES]) {
            if from.join(folder).is_dir() {
                copy_entries(&from.join(folder), &to.join(folder), own)?;
            }
        }
    }
    Ok(())
}

/// Copies the entries of the registry's crates, in the place of those that are there.
fn copy_entries(from: &Path, to: &Path, own: &Own) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("cannot make {}", to.display()))?;
    for entry in fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
        let entry = entry?;
        let name = entry.file_name();
        let place = to.join(&name);
        let wanted = name.to_str().is_some_and(|name| !own.holds(name));
        if wanted && (entry.file_type()?.is_dir() || is_kept(&entry.path())) {
            remove(&place).with_context(|| format!("cannot replace {}", place.display()))?;
            copy(&entry.path(), &place)?;
        }
    }
    Ok(())
}

/// Whether a file of [`LIBRARIES`] is kept: test programs of examples and the like have no
/// extension.
fn is_kept(file: &Path) -> bool {
    let extension = file.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| extension == "d" || LINKED.contains(&extension))
}

/// Removes a file or folder, if it is there.
fn remove(place: &Path) -> std::io::Result<()> {
    let is_folder = match place.symlink_metadata() {
        Ok(facts) => facts.is_dir(),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if is_folder {
        fs::remove_dir_all(place)
    } else {
        fs::remove_file(place)
    }
}

/// Copies a file or folder with its times; libraries are linked where both lie on one disk.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let facts = from.symlink_metadata()?;
    if facts.is_symlink() {
        return Ok(std::os::unix::fs::symlink(fs::read_link(from)?, to)?);
    }
    if facts.is_dir() {
        fs::create_dir(to).with_context(|| format!("cannot make {}", to.display()))?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
        return Ok(());
    }
    let linked = from.extension().and_then(|extension| extension.to_str());
    if linked.is_some_and(|extension| LINKED.contains(&extension)) && fs::hard_link(from, to).is_ok() {
        return Ok(());
    }
    fs::copy(from, to).with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    let times = FileTimes::new()
        .set_modified(facts.modified()?)
        .set_accessed(facts.accessed()?);
    File::options()
        .append(true)
        .open(to)
        .or_else(|_| File::open(to))?
        .set_times(times)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> Own {
        Own::parse(r#"{"packages":[{"name":"our-api","targets":[{"name":"our_api"},{"name":"suite"}]}]}"#).unwrap()
    }

    #[test]
    fn files_of_the_workspace_are_told_from_those_of_the_registry() {
        let own = own();
        for file in [
            "our-api-0123",
            "libour_api-0123.rlib",
            "our_api-0123.d",
            "suite-0123",
            "odd",
        ] {
            assert!(own.holds(file), "{file}");
        }
        for file in ["serde-0123", "libserde_json-0123.rmeta", "our-api-client-0123"] {
            assert!(!own.holds(file), "{file}");
        }
    }

    #[test]
    fn what_packages_of_ours_depend_on_does_not_change_what_is_kept() {
        let serde = "[[package]]\nname = \"serde\"\nversion = \"1.0.0\"\nsource = \"registry\"\n\n";
        let ours = "[[package]]\nname = \"our-api\"\nversion = \"0.1.0\"\ndependencies = [\n \"serde\",\n]\n";
        let lock = |packages: &[&str]| foreign(&format!("version = 4\n\n{}", packages.concat()));
        assert_eq!(lock(&[serde, ours]), lock(&[serde]));
        assert_ne!(lock(&[serde]), lock(&[&serde.replace("1.0.0", "1.0.1")]));
    }

    #[test]
    fn what_is_laid_into_a_clone_has_its_times_and_replaces_what_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        let write = |root: &Path, file: &str, text: &str| {
            let file = root.join("debug").join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, text).unwrap();
            file
        };
        let mark = write(&from, ".fingerprint/serde-01/mark", "new");
        let before = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
        File::options()
            .append(true)
            .open(&mark)
            .unwrap()
            .set_modified(before)
            .unwrap();
        write(&from, "deps/libserde-01.rlib", "code");
        write(&from, "deps/libour_api-01.rlib", "ours");
        write(&from, "deps/example-01", "program");
        write(&from, "build/ring-01/out/a.o", "object");
        write(&to, "build/ring-01/out/a.o", "there");
        copy_profiles(&from, &to, &own()).unwrap();
        let copied = to.join("debug/.fingerprint/serde-01/mark");
        assert_eq!(copied.metadata().unwrap().modified().unwrap(), before);
        assert_eq!(
            fs::read_to_string(to.join("debug/build/ring-01/out/a.o")).unwrap(),
            "object"
        );
        let libraries: BTreeSet<_> = fs::read_dir(to.join("debug/deps"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(libraries, BTreeSet::from(["libserde-01.rlib".into()]));
        // A second time finds everything there.
        copy_profiles(&from, &to, &own()).unwrap();
        assert_eq!(copied.metadata().unwrap().modified().unwrap(), before);
    }
}
