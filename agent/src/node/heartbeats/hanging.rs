//! A file whose readings never come back: on a file system of FUSE for which nobody answers once
//! the file is open.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

/// Requests of the kernel (`linux/fuse.h`).
const OPEN: u32 = 14;
const INIT: u32 = 26;
/// Bytes of the head of an answer.
const HEAD: usize = 16;
/// Bytes of a request, at least what the kernel asks for.
const REQUEST: usize = 128 << 10;

/// A file whose readers hang. A reader comes back with an error once `fuse` is dropped.
#[derive(Debug)]
pub(super) struct Hanging {
    pub(super) file: Arc<File>,
    pub(super) fuse: File,
}

impl Hanging {
    /// None, with a printed reason, where nobody may mount.
    pub(super) fn new() -> Option<Self> {
        if !nix::unistd::geteuid().is_root() {
            println!("skipped: mounting a file system that hangs needs root");
            return None;
        }
        let fuse = File::options().read(true).write(true).open("/dev/fuse").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("recorder.ring");
        File::create(&place).unwrap();
        let descriptor = fuse.as_raw_fd();
        let (mounted, is_mounted) = sync_channel(1);
        let opening = std::thread::spawn(move || {
            // The mount is this thread's alone, and the open file keeps its file system.
            unshare(CloneFlags::CLONE_NEWNS).unwrap();
            let none = None::<&str>;
            mount(none, "/", none, MsFlags::MS_PRIVATE | MsFlags::MS_REC, none).unwrap();
            mount_file(descriptor, &place);
            mounted.send(()).unwrap();
            File::open(&place).unwrap()
        });
        if is_mounted.recv().is_ok() {
            // The version, 4 KiB to be written at once and times of a nanosecond.
            let facts: [u32; 16] = [7, 31, 4096, 0, 0, 4096, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            let facts: Vec<u8> = facts.iter().flat_map(|number| number.to_ne_bytes()).collect();
            answer(&fuse, INIT, &facts);
            // A handle of 8 bytes, and that every reading is to be asked for.
            let opened: [u32; 4] = [1, 0, 1, 0];
            let opened: Vec<u8> = opened.iter().flat_map(|number| number.to_ne_bytes()).collect();
            answer(&fuse, OPEN, &opened);
        }
        let file = Arc::new(opening.join().unwrap());
        Some(Self { file, fuse })
    }
}

/// Mounts a file system that is one regular file over a file.
fn mount_file(descriptor: i32, place: &Path) {
    let options = format!("fd={descriptor},rootmode=100444,user_id=0,group_id=0");
    mount(
        Some("nobody"),
        place,
        Some("fuse"),
        MsFlags::empty(),
        Some(options.as_str()),
    )
    .unwrap();
}

/// Answers the kernel's requests until it has asked for `wanted`; any other it is told that nobody
/// can do.
fn answer(mut fuse: &File, wanted: u32, body: &[u8]) {
    const NOT_HERE: i32 = -38;
    let mut request = vec![0; REQUEST];
    loop {
        let read = fuse.read(&mut request).unwrap();
        assert!(read >= HEAD, "{read} bytes");
        let asked = u32::from_ne_bytes(*request[4..].first_chunk().unwrap());
        let (error, body) = if asked == wanted {
            (0, body)
        } else {
            (NOT_HERE, &[][..])
        };
        let length = u32::try_from(HEAD + body.len()).unwrap();
        let mut said = length.to_ne_bytes().to_vec();
        said.extend(i32::to_ne_bytes(error));
        said.extend(&request[8..16]);
        said.extend(body);
        fuse.write_all(&said).unwrap();
        if asked == wanted {
            return;
        }
    }
}
