//! What is asked of the kernel, on x86-64, without a C library and without touching `errno`.
#![allow(unsafe_code, reason = "the kernel is asked by an instruction")]

use core::arch::asm;
use core::ffi::CStr;
use core::ptr::NonNull;
use core::sync::atomic::AtomicU32;

const PWRITE: usize = 18;
const PREAD: usize = 17;
const CLOSE: usize = 3;
const MMAP: usize = 9;
const SCHED_YIELD: usize = 24;
const MADVISE: usize = 28;
const GETPID: usize = 39;
const FTRUNCATE: usize = 77;
const GETTID: usize = 186;
const CLOCK_GETTIME: usize = 228;
const TGKILL: usize = 234;
const NO_SUCH_THREAD: isize = -3;
const OPENAT: usize = 257;
const UNLINKAT: usize = 263;
const LINKAT: usize = 265;
const FALLOCATE: usize = 285;

const CURRENT_FOLDER: usize = usize::MAX.wrapping_sub(99);
const PROT_READ_WRITE: usize = 3;
const MAP_SHARED: usize = 1;
const MAP_PRIVATE_ANONYMOUS: usize = 0x22;
const MADV_WIPEONFORK: usize = 18;
const O_RDWR: usize = 0o2;
const O_CREAT_EXCL: usize = 0o300;
/// Not through a link, not into a child, not waiting for the other end of a pipe.
const O_SAFE: usize = 0o400_000 | 0o2_000_000 | 0o4_000;
const OWNER_ALONE: usize = 0o600;
const PAGE_BYTES: usize = 4096;

/// An open file.
pub(crate) struct File(usize);

impl File {
    /// Makes a new file.
    pub(crate) fn create(path: &CStr) -> Option<Self> {
        Self::open_with(path, O_RDWR | O_CREAT_EXCL | O_SAFE)
    }

    /// Opens one that is there.
    pub(crate) fn open(path: &CStr) -> Option<Self> {
        Self::open_with(path, O_RDWR | O_SAFE)
    }

    fn open_with(path: &CStr, flags: usize) -> Option<Self> {
        let asked = [CURRENT_FOLDER, path.as_ptr().addr(), flags, OWNER_ALONE];
        usize::try_from(call(OPENAT, asked)).ok().map(Self)
    }

    /// Gives the file its length and all its space: a mapped page for which there is no space would
    /// end the program.
    pub(crate) fn reserve(&self, bytes: usize) -> bool {
        if call(FTRUNCATE, [self.0, bytes]) != 0 {
            return false;
        }
        if call(FALLOCATE, [self.0, 0, 0, bytes]) == 0 {
            return true;
        }
        // A file system without that: every page is written once.
        let zeros = [0_u64; PAGE_BYTES / 8];
        (0..bytes).step_by(PAGE_BYTES).all(|at| {
            let written = call(PWRITE, [self.0, zeros.as_ptr().addr(), PAGE_BYTES, at]);
            usize::try_from(written) == Ok(PAGE_BYTES)
        })
    }

    /// Fills `into` from the file's begin; false where the file is shorter or is none.
    pub(crate) fn begin(&self, into: &mut [u8]) -> bool {
        let read = call(PREAD, [self.0, into.as_mut_ptr().addr(), into.len(), 0]);
        usize::try_from(read) == Ok(into.len())
    }

    /// Whether the byte at `at` is there.
    pub(crate) fn has(&self, at: usize) -> bool {
        let mut byte = [0_u8];
        call(PREAD, [self.0, byte.as_mut_ptr().addr(), 1, at]) == 1
    }

    /// Writes `bytes` at the file's begin.
    pub(crate) fn write(&self, bytes: &[u8]) -> bool {
        let written = call(PWRITE, [self.0, bytes.as_ptr().addr(), bytes.len(), 0]);
        usize::try_from(written) == Ok(bytes.len())
    }

    /// Maps the file's first `bytes`, for as long as the process runs this program.
    pub(crate) fn map(&self, bytes: usize) -> Option<NonNull<u8>> {
        mapping([0, bytes, PROT_READ_WRITE, MAP_SHARED, self.0, 0])
    }
}

impl Drop for File {
    fn drop(&mut self) {
        call(CLOSE, [self.0]);
    }
}

/// Gives the file at `from` a second name, unless there is a file of that name.
pub(crate) fn link(from: &CStr, to: &CStr) {
    let (from, to) = (from.as_ptr().addr(), to.as_ptr().addr());
    call(LINKAT, [CURRENT_FOLDER, from, CURRENT_FOLDER, to, 0]);
}

/// Removes a name of a file.
pub(crate) fn unlink(path: &CStr) {
    call(UNLINKAT, [CURRENT_FOLDER, path.as_ptr().addr(), 0]);
}

/// A number in memory that is 0 in every child, however it was forked; Linux 4.14 or later.
pub(crate) fn wiped_in_children() -> Option<&'static AtomicU32> {
    let page = mapping([0, PAGE_BYTES, PROT_READ_WRITE, MAP_PRIVATE_ANONYMOUS, usize::MAX, 0])?;
    let wiped = call(MADVISE, [page.addr().get(), PAGE_BYTES, MADV_WIPEONFORK]) == 0;
    // SAFETY: the page was just mapped, is zero, is aligned, belongs to nobody else and is never
    // unmapped.
    wiped.then(|| unsafe { page.cast::<AtomicU32>().as_ref() })
}

fn mapping(asked: [usize; 6]) -> Option<NonNull<u8>> {
    let address = usize::try_from(call(MMAP, asked)).ok()?;
    NonNull::new(core::ptr::with_exposed_provenance_mut(address))
}

/// The process, as its PID namespace numbers it.
pub(crate) fn process() -> u32 {
    u32::try_from(call::<0>(GETPID, [])).unwrap_or(0)
}

/// The thread, as its PID namespace numbers it.
pub(crate) fn thread() -> u32 {
    u32::try_from(call::<0>(GETTID, [])).unwrap_or(0)
}

/// Whether a thread of a process has ended, as far as this PID namespace tells.
pub(crate) fn has_ended(process: u32, thread: u32) -> bool {
    let ids = [process, thread].map(|id| usize::try_from(id).unwrap_or(0));
    // No signal: the kernel says whether it could be sent.
    call(TGKILL, [ids[0], ids[1], 0]) == NO_SUCH_THREAD
}

/// Lets other threads run.
pub(crate) fn step_aside() {
    call::<0>(SCHED_YIELD, []);
}

/// Seconds and nanoseconds of a clock.
pub(crate) fn clock(clock: u32, into: &mut [i64; 2]) {
    let clock = usize::try_from(clock).unwrap_or(0);
    call(CLOCK_GETTIME, [clock, into.as_mut_ptr().addr()]);
}

/// Asks the kernel; a negative answer is an error.
fn call<const COUNT: usize>(number: usize, given: [usize; COUNT]) -> isize {
    let mut all = [0; 6];
    for (to, from) in all.iter_mut().zip(given) {
        *to = from;
    }
    let answer: isize;
    // SAFETY: the callers above hand over addresses of memory that is theirs and as long as they
    // say; the kernel changes the registers that are named here and no others.
    unsafe {
        asm!("syscall", inlateout("rax") number => answer, in("rdi") all[0], in("rsi") all[1], in("rdx") all[2], in("r10") all[3], in("r8") all[4],
            in("r9") all[5],
            lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    answer
}
