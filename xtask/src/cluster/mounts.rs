//! Mounts below the cluster's folder: containers' root file systems, pods' volumes, network namespaces.

use anyhow::{Context as _, Result, bail};
use nix::mount::{MntFlags, umount2};
use std::fs;
use std::path::{Path, PathBuf};

/// Unmounts everything below a folder.
pub(crate) fn unmount_below(folder: &Path) -> Result<()> {
    // Unmounting one may reveal another that it covered.
    for _ in 0..10 {
        let mounts = below(&fs::read_to_string("/proc/self/mountinfo")?, folder);
        if mounts.is_empty() {
            return Ok(());
        }
        for mount in mounts {
            umount2(&mount, MntFlags::MNT_DETACH).with_context(|| format!("cannot unmount {}", mount.display()))?;
        }
    }
    bail!("mounts keep coming back below {}", folder.display())
}

/// The mount points below a folder, the deepest first.
fn below(mountinfo: &str, folder: &Path) -> Vec<PathBuf> {
    let points = mountinfo
        .lines()
        .filter_map(|line| line.split(' ').nth(4))
        .map(|point| PathBuf::from(unescape(point)));
    let mut mounts: Vec<PathBuf> = points.filter(|point| point.starts_with(folder)).collect();
    mounts.sort_by_key(|mount| std::cmp::Reverse(mount.components().count()));
    mounts
}

/// The kernel writes blanks and backslashes in paths as three octal digits.
fn unescape(text: &str) -> String {
    ["\\040 ", "\\011\t", "\\012\n", "\\134\\"]
        .iter()
        .fold(text.to_owned(), |text, pair| {
            let (code, character) = pair.split_at(4);
            text.replace(code, character)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_mounts_below_the_folder_are_found_deepest_first() {
        let text = "1 0 8:1 / / rw - ext4 /dev/sda rw\n\
                    2 1 0:1 / /c/one rw - tmpfs t rw\n\
                    3 1 0:1 / /c/one/two\\040three rw - tmpfs t rw\n\
                    4 1 0:1 / /cluster rw - tmpfs t rw\n";
        assert_eq!(
            below(text, Path::new("/c")),
            [PathBuf::from("/c/one/two three"), PathBuf::from("/c/one")]
        );
    }
}
