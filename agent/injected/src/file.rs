//! The container's file: made by the first process, opened by all others.
#![allow(unsafe_code, reason = "the file is mapped")]

use crate::Path;
use crate::kernel::{self, File, link, unlink};
use crate::memory::Memory;

/// How a library's file is made, and known again.
pub trait Kind {
    /// What a file's bytes begin with, as far as they say what it is.
    type Identity: AsRef<[u8]> + AsMut<[u8]>;

    /// What a file's first bytes are read into.
    const EMPTY: Self::Identity;

    /// The file's length and its first bytes, for a new one.
    fn made(&self) -> Option<(usize, Self::Identity)>;

    /// The length of a file that begins so; `None` where it is none of this kind.
    fn bytes(&self, identity: &Self::Identity) -> Option<usize>;
}

/// Maps the file of a name (`/name`) in a folder and gives its length, and makes it where it is
/// missing; `None` where there is none to be had. `unique` is a number that no other process of
/// this moment has.
pub fn open<K: Kind>(kind: &K, folder: &[u8], name: &[u8], unique: u64) -> Option<(Memory, usize)> {
    let path = Path::of(&[folder, name])?;
    if let Some(file) = File::open(path.text()) {
        return map(kind, &file);
    }
    make(kind, &path, unique)?;
    map(kind, &File::open(path.text())?)
}

/// Makes the file beside its name, whole, so that whoever opens it by its name finds it whole.
/// Where another process was faster, its file stays.
fn make<K: Kind>(kind: &K, path: &Path, unique: u64) -> Option<()> {
    let (bytes, identity) = kind.made()?;
    let mut beside = Path::of(&[path.bytes(), b"."])?;
    beside.push_letters(u64::from(kernel::process()))?;
    beside.push_letters(unique)?;
    let beside = beside.text();
    let file = File::create(beside)?;
    if file.reserve(bytes) && file.write(identity.as_ref()) {
        link(beside, path.text());
    }
    unlink(beside);
    Some(())
}

/// Maps a file whose begin says that it is one, and that has its whole length.
fn map<K: Kind>(kind: &K, file: &File) -> Option<(Memory, usize)> {
    let mut begin = K::EMPTY;
    if !file.begin(begin.as_mut()) {
        return None;
    }
    let bytes = kind.bytes(&begin)?;
    if !file.has(bytes.checked_sub(1)?) {
        return None;
    }
    let begin = file.map(bytes)?;
    // SAFETY: so many bytes were mapped there, and nothing unmaps them.
    Some((unsafe { Memory::new(begin, bytes) }, bytes))
}

#[cfg(test)]
mod tests {
    extern crate std;

    use core::sync::atomic::Ordering;
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::PermissionsExt as _;
    use std::string::String;

    use super::*;

    /// A file of a page that begins with four letters.
    struct Letters;

    impl Kind for Letters {
        type Identity = [u8; 4];

        const EMPTY: [u8; 4] = [0; 4];

        fn made(&self) -> Option<(usize, [u8; 4])> {
            Some((4096, *b"abcd"))
        }

        fn bytes(&self, identity: &[u8; 4]) -> Option<usize> {
            (identity == b"abcd").then_some(4096)
        }
    }

    #[test]
    fn the_first_makes_the_file_whole_and_the_others_map_it() {
        let folder = tempfile::tempdir().unwrap();
        let open = || open(&Letters, folder.path().as_os_str().as_bytes(), b"/a", 7);
        let (one, bytes) = open().unwrap();
        one.word(8).unwrap().store(99, Ordering::Relaxed);
        let (other, _) = open().unwrap();
        assert_eq!((bytes, other.word(8).unwrap().load(Ordering::Relaxed)), (4096, 99));
        assert!(one.word(4096).is_none() && one.word(4).is_none() && one.half(4094).is_none());
        one.prefetch(4096);
        let line = one.line(64).unwrap();
        line[1].store(7, Ordering::Relaxed);
        assert_eq!(other.word(72).unwrap().load(Ordering::Relaxed), 7);
        assert!(one.line(8).is_none() && one.line(4096).is_none() && one.line(usize::MAX - 63).is_none());
        assert!(one.part(4000, 97).is_none() && one.part(usize::MAX, 2).is_none());
        let about = std::fs::metadata(folder.path().join("a")).unwrap();
        assert_eq!((about.len(), about.permissions().mode() & 0o777), (4096, 0o600));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_is_none_or_was_cut_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let open = |name: &[u8]| open(&Letters, folder.path().as_os_str().as_bytes(), name, 7);
        for (name, text) in [("a", "abcd"), ("b", "another"), ("c", "")] {
            std::fs::write(folder.path().join(name), text).unwrap();
            let path = String::from("/") + name;
            assert!(open(path.as_bytes()).is_none(), "{name}");
            assert_eq!(std::fs::read_to_string(folder.path().join(name)).unwrap(), text);
        }
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("d")).unwrap();
        assert!(open(b"/d").is_none() && open(b"/no folder/a").is_none());
    }
}
