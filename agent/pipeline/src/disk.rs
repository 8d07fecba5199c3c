//! Free disk space: what the agent leaves alone, and how much of a disk is left above that.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use flopwatch_attach::rootfs::Volume;
use nix::sys::statvfs::statvfs;
use tokio::time::sleep;

/// Time between two looks at the free space while a child is at work.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Free space of a file system that is left alone: the larger of the two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Floor {
    /// Free space that must be left, in bytes.
    pub bytes: u64,
    /// In hundredths of the file system.
    pub percent: u8,
}

/// A file system has less free space than is to be left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the node's disk has {} free and the agent must leave {} (--min-free-bytes, --min-free-percent): free some space on the node",
    size(*free),
    size(*floor)
)]
pub struct Short {
    /// Bytes that are free.
    pub free: u64,
    /// Bytes that must be.
    pub floor: u64,
}

impl Floor {
    /// Bytes that are left alone on a file system of so many bytes.
    pub fn of(self, whole: u64) -> u64 {
        self.bytes.max((whole / 100).saturating_mul(self.percent.into()))
    }

    /// Free bytes beyond the floor.
    pub fn above(self, volume: Volume) -> Result<u64, Short> {
        let floor = self.of(volume.bytes);
        let short = Short {
            free: volume.free,
            floor,
        };
        volume.free.checked_sub(floor).ok_or(short)
    }
}

/// The free space that a child of ours has in its folder while it is at work.
#[derive(Debug)]
pub struct Space {
    folder: PathBuf,
    floor: Floor,
}

impl Space {
    /// Of a folder's file system.
    pub const fn new(folder: PathBuf, floor: Floor) -> Self {
        Self { folder, floor }
    }

    /// Free bytes beyond the floor. Where the free space cannot be told, nobody is held up by it.
    pub fn above(&self) -> Result<u64, Short> {
        volume(&self.folder).map_or(Ok(u64::MAX), |volume| self.floor.above(volume))
    }

    /// Resolves when less than the floor is free.
    pub async fn run_short(&self) -> Short {
        loop {
            sleep(POLL_INTERVAL).await;
            if let Err(short) = self.above() {
                return short;
            }
        }
    }
}

/// Bytes as people read them, in the units that the agent's flags take: `512 bytes`, `1.50 GiB`.
pub fn size(bytes: u64) -> String {
    let units = [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let fits = units.into_iter().find(|(unit, _)| bytes >= *unit);
    fits.map_or_else(
        || format!("{bytes} bytes"),
        |(unit, name)| format!("{}.{:02} {name}", bytes / unit, bytes % unit * 100 / unit),
    )
}

/// Room of the file system that a folder is on.
pub fn volume(folder: &Path) -> io::Result<Volume> {
    let facts = statvfs(folder)?;
    Ok(Volume {
        bytes: facts.blocks().saturating_mul(facts.fragment_size()),
        free: facts.blocks_available().saturating_mul(facts.fragment_size()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_larger_of_bytes_and_share_is_left_alone() {
        let floor = Floor {
            bytes: 1000,
            percent: 15,
        };
        assert_eq!(floor.of(100_000), 15_000);
        assert_eq!(floor.of(2000), 1000);
        assert_eq!(Floor::default().of(u64::MAX), 0);
        let volume = |free| Volume { bytes: 100_000, free };
        assert_eq!(floor.above(volume(20_000)), Ok(5000));
        assert_eq!(floor.above(volume(15_000)), Ok(0));
        let short = floor.above(volume(14_999)).unwrap_err();
        assert_eq!((short.free, short.floor), (14_999, 15_000));
    }

    #[test]
    fn a_disk_that_is_too_full_is_told_in_units_that_people_read() {
        for (bytes, told) in [
            (0, "0 bytes"),
            (1023, "1023 bytes"),
            (1 << 10, "1.00 KiB"),
            ((1 << 30) - 1, "1023.99 MiB"),
            (3 << 29, "1.50 GiB"),
            (u64::MAX, "16777215.99 TiB"),
        ] {
            assert_eq!(size(bytes), told);
        }
        let (free, floor) = (100 << 20, 1 << 30);
        let told = Short { free, floor }.to_string();
        assert!(
            told.contains("has 100.00 MiB free and the agent must leave 1.00 GiB"),
            "{told}"
        );
    }

    #[test]
    fn a_folders_file_system_has_no_more_free_than_it_has() {
        let folder = tempfile::tempdir().unwrap();
        let volume = volume(folder.path()).unwrap();
        assert!(volume.bytes > 0 && volume.free <= volume.bytes, "{volume:?}");
    }
}
