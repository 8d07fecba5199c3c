//! The images as the nodes' containerd keeps them, unpacked once and kept in the cache. A node gets
//! a copy whose files are links to the store's, so it costs a second and no space; containerd
//! replaces such files and never writes into them.

use super::containerd::{Containerd, import};
use super::daemon::Daemon;
use super::layout::{Layout, NodeLayout};
use crate::image::BuiltImage;
use anyhow::Result;
use flopwatch_toolchain::cache::{Cache, remove};
use flopwatch_toolchain::command::Run;
use flopwatch_toolchain::progress::{say, step};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Says in the store whose programs filled it.
const MAKER: &str = "made-by";

/// The store's folder in the cache.
fn store(cache: &Cache) -> Containerd {
    Containerd::new(cache.root().join("image-store"))
}

/// Brings the images into the store, those that it has in this build already excepted.
pub(crate) fn update(cache: &Cache, layout: &Layout, programs: &Path, images: &[BuiltImage]) -> Result<()> {
    let store = store(cache).run_in(layout.root().join("image-store"));
    // Another containerd may not read what this one wrote.
    if fs::read_to_string(store.root().join(MAKER)).ok().as_deref() != programs.to_str() {
        remove(store.root())?;
    }
    let there = store.imported();
    if images.iter().all(|built| there.contains(&built.id())) {
        return Ok(());
    }
    step("unpacking images", || {
        fill(layout, programs, &store, images).or_else(|error| {
            // A machine that was cut off may have left it broken.
            say(format_args!("the store of images is made anew: {error:#}"));
            remove(store.root())?;
            fill(layout, programs, &store, images)
        })
    })
}

fn fill(layout: &Layout, programs: &Path, store: &Containerd, images: &[BuiltImage]) -> Result<()> {
    let daemon = Daemon::new(layout, "image-store");
    daemon.stop()?;
    store.configure(programs, Path::new("/nonexistent"))?;
    fs::write(store.root().join(MAKER), programs.as_os_str().as_encoded_bytes())?;
    // What it mounts to unpack is gone with it.
    let unshare = ["--mount", "--propagation=private"].map(PathBuf::from);
    let arguments = unshare
        .into_iter()
        .chain([programs.join("containerd"), "--config".into(), store.config()]);
    daemon.start(Path::new("unshare"), arguments)?;
    let outcome = store
        .wait(programs, &daemon)
        .and_then(|()| import(programs, store, images));
    daemon.stop()?;
    outcome.map(drop)
}

/// Gives a node all that the store has.
pub(crate) fn copy(cache: &Cache, node: &NodeLayout) -> Result<()> {
    let (from, to) = (store(cache), node.containerd());
    fs::create_dir_all(to.data())?;
    let same_disk = fs::metadata(from.data())?.dev() == fs::metadata(to.data())?.dev();
    let how = if same_disk { "--link" } else { "--reflink=auto" };
    let everything = from.data().join(".");
    Run::new("cp")
        .args(["--archive", how])
        .arg(everything)
        .arg(to.data())
        .quiet()?;
    for database in databases(&from.data())? {
        let own = to.data().join(database.strip_prefix(from.data())?);
        remove(&own)?;
        fs::copy(&database, &own)?;
    }
    to.note_imported(&from.imported())
}

/// The files that containerd writes into: one level below its plugins' folders.
fn databases(data: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for plugin in fs::read_dir(data)? {
        let plugin = plugin?.path();
        if !plugin.is_dir() {
            continue;
        }
        for entry in fs::read_dir(plugin)? {
            let path = entry?.path();
            if path.extension().is_some_and(|end| end == "db") {
                found.push(path);
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod crate_tests {
    use super::*;

    #[test]
    fn a_nodes_copy_shares_files_but_no_database() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        let layout = Layout::open(&cache).unwrap();
        let node = NodeLayout::new(&layout, 1);
        let data = store(&cache).data();
        fs::create_dir_all(data.join("plugin/blobs")).unwrap();
        fs::write(data.join("plugin/blobs/one"), "blob").unwrap();
        fs::write(data.join("plugin/meta.db"), "database").unwrap();
        store(&cache).note_imported(&["agent-1".to_owned()]).unwrap();
        copy(&cache, &node).unwrap();
        let inode = |path: &Path| fs::metadata(path).unwrap().ino();
        let own = node.containerd().data();
        assert_eq!(
            inode(&data.join("plugin/blobs/one")),
            inode(&own.join("plugin/blobs/one"))
        );
        assert_ne!(inode(&data.join("plugin/meta.db")), inode(&own.join("plugin/meta.db")));
        assert_eq!(fs::read_to_string(own.join("plugin/meta.db")).unwrap(), "database");
        assert_eq!(node.containerd().imported(), ["agent-1"]);
    }
}
