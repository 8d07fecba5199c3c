//! A folder whose files are replaced, told by the kernel.

use std::io;
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use tokio::net::unix::pipe::Receiver;

/// Bytes of what is told that are read at once; what it says is not looked at.
const EVENT_BUFFER_BYTES: usize = 4096;

/// The changes of a folder. What the kernel tells of them is read as from a pipe.
#[derive(Debug)]
pub(crate) struct Changes(Receiver);

impl Changes {
    /// Of files that are written in the folder, or come to it by another name: as a mounted
    /// Secret's do.
    pub(crate) fn of(folder: &Path) -> io::Result<Self> {
        let descriptor = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        inotify::add_watch(&descriptor, folder, WatchFlags::CLOSE_WRITE | WatchFlags::MOVED_TO)?;
        Ok(Self(Receiver::from_owned_fd_unchecked(descriptor)?))
    }

    /// Waits for the next.
    pub(crate) async fn next(&self) -> io::Result<()> {
        loop {
            self.0.readable().await?;
            match self.0.try_read(&mut [0; EVENT_BUFFER_BYTES]) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return read.map(drop),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_that_is_written_and_one_that_is_replaced_are_told_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tls.crt");
        let changes = Changes::of(folder.path()).unwrap();
        std::fs::write(&file, "one").unwrap();
        changes.next().await.unwrap();
        let elsewhere = tempfile::tempdir_in(folder.path()).unwrap();
        std::fs::write(elsewhere.path().join("new"), "two").unwrap();
        std::fs::rename(elsewhere.path().join("new"), &file).unwrap();
        changes.next().await.unwrap();
        std::fs::read(&file).unwrap();
        let more = tokio::time::timeout(std::time::Duration::from_millis(200), changes.next()).await;
        assert!(more.is_err(), "nothing was written");
    }
}
