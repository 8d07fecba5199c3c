//! What is asked of the kernel, on x86-64, without a C library and without touching `errno`.
#![allow(unsafe_code, reason = "the kernel is asked by an instruction")]

use core::arch::asm;
use core::ffi::CStr;
use core::ptr::NonNull;
use core::sync::atomic::AtomicU32;

const RT_SIGPROCMASK: usize = 14;
const PREAD: usize = 17;
const PWRITE: usize = 18;
const PRCTL: usize = 157;
const FUTEX: usize = 202;
const PROCESS_VM_READV: usize = 310;
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
const MADV_POPULATE_WRITE: usize = 23;
const O_RDWR: usize = 0o2;
const O_CREAT_EXCL: usize = 0o300;
/// Not through a link, not into a child, not waiting for the other end of a pipe.
const O_SAFE: usize = 0o400_000 | 0o2_000_000 | 0o4_000;
const OWNER_ALONE: usize = 0o600;
const PAGE_BYTES: usize = 4096;

const PR_SET_NAME: usize = 15;
const FUTEX_WAIT: usize = 0;
const SIG_SETMASK: usize = 2;
/// Every signal but 32 to 34: the C library stops threads by these to change who a process is.
const ALL_SIGNALS: u64 = !(0b111 << 31);
const PER_SECOND: u64 = 1_000_000_000;

/// An open file.
#[derive(Debug)]
pub struct File(usize);

impl File {
    /// Makes a new file.
    pub fn create(path: &CStr) -> Option<Self> {
        Self::open_with(path, O_RDWR | O_CREAT_EXCL | O_SAFE)
    }

    /// Opens one that is there.
    pub fn open(path: &CStr) -> Option<Self> {
        Self::open_with(path, O_RDWR | O_SAFE)
    }

    /// Opens one that is only read.
    pub fn open_to_read(path: &CStr) -> Option<Self> {
        Self::open_with(path, O_SAFE)
    }

    fn open_with(path: &CStr, flags: usize) -> Option<Self> {
        let asked = [CURRENT_FOLDER, path.as_ptr().addr(), flags, OWNER_ALONE];
        usize::try_from(call(OPENAT, asked)).ok().map(Self)
    }

    /// Gives the file its length and all its space: a mapped page for which there is no space would
    /// end the program.
    pub fn reserve(&self, bytes: usize) -> bool {
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
    pub fn begin(&self, into: &mut [u8]) -> bool {
        let read = call(PREAD, [self.0, into.as_mut_ptr().addr(), into.len(), 0]);
        usize::try_from(read) == Ok(into.len())
    }

    /// Fills a part of `into` with the bytes from `at` on, and gives how many there were; 0 at the
    /// end, `None` where they cannot be read.
    pub fn read_at(&self, at: usize, into: &mut [u8]) -> Option<usize> {
        let read = call(PREAD, [self.0, into.as_mut_ptr().addr(), into.len(), at]);
        usize::try_from(read).ok()
    }

    /// Whether the byte at `at` is there.
    pub fn has(&self, at: usize) -> bool {
        let mut byte = [0_u8];
        call(PREAD, [self.0, byte.as_mut_ptr().addr(), 1, at]) == 1
    }

    /// Writes `bytes` at the file's begin.
    pub fn write(&self, bytes: &[u8]) -> bool {
        let written = call(PWRITE, [self.0, bytes.as_ptr().addr(), bytes.len(), 0]);
        usize::try_from(written) == Ok(bytes.len())
    }

    /// Maps the file's first `bytes`, for as long as the process runs this program.
    pub fn map(&self, bytes: usize) -> Option<NonNull<u8>> {
        mapping([0, bytes, PROT_READ_WRITE, MAP_SHARED, self.0, 0])
    }
}

impl Drop for File {
    fn drop(&mut self) {
        call(CLOSE, [self.0]);
    }
}

/// Gives the file at `from` a second name, unless there is a file of that name.
pub fn link(from: &CStr, to: &CStr) {
    let (from, to) = (from.as_ptr().addr(), to.as_ptr().addr());
    call(LINKAT, [CURRENT_FOLDER, from, CURRENT_FOLDER, to, 0]);
}

/// Removes a name of a file.
pub fn unlink(path: &CStr) {
    call(UNLINKAT, [CURRENT_FOLDER, path.as_ptr().addr(), 0]);
}

/// A number in memory that is 0 in every child, however it was forked; Linux 4.14 or later.
pub fn wiped_in_children() -> Option<&'static AtomicU32> {
    let page = mapping([0, PAGE_BYTES, PROT_READ_WRITE, MAP_PRIVATE_ANONYMOUS, usize::MAX, 0])?;
    let wiped = call(MADVISE, [page.addr().get(), PAGE_BYTES, MADV_WIPEONFORK]) == 0;
    // SAFETY: the page was just mapped, is zero, is aligned, belongs to nobody else and is never
    // unmapped.
    wiped.then(|| unsafe { page.cast::<AtomicU32>().as_ref() })
}

/// Memory of this process, zero, which nothing gives back.
pub fn anonymous(bytes: usize) -> Option<NonNull<u8>> {
    mapping([0, bytes, PROT_READ_WRITE, MAP_PRIVATE_ANONYMOUS, usize::MAX, 0])
}

/// Maps the pages of `bytes` bytes from `begin` on, a page's begin, to be written to: one call in
/// the place of a fault for each of them. Nothing happens before Linux 5.14, and where one of them
/// cannot be had the call ends without a signal; each is then mapped as it is touched.
pub fn populate(begin: NonNull<u8>, bytes: usize) {
    call(MADVISE, [begin.addr().get(), bytes, MADV_POPULATE_WRITE]);
}

fn mapping(asked: [usize; 6]) -> Option<NonNull<u8>> {
    let address = usize::try_from(call(MMAP, asked)).ok()?;
    NonNull::new(core::ptr::with_exposed_provenance_mut(address))
}

/// The process, as its PID namespace numbers it.
pub fn process() -> u32 {
    u32::try_from(call::<0>(GETPID, [])).unwrap_or(0)
}

/// The thread, as its PID namespace numbers it.
pub fn thread() -> u32 {
    u32::try_from(call::<0>(GETTID, [])).unwrap_or(0)
}

/// Whether a thread of a process has ended, as far as this PID namespace tells.
pub fn has_ended(process: u32, thread: u32) -> bool {
    let ids = [process, thread].map(|id| usize::try_from(id).unwrap_or(0));
    // No signal: the kernel says whether it could be sent.
    call(TGKILL, [ids[0], ids[1], 0]) == NO_SUCH_THREAD
}

/// Sleeps until somebody wakes the word, it no longer has the value, or the time is over.
pub fn sleep_on(word: &AtomicU32, value: u32, ns: u64) {
    let seconds = ns.checked_div(PER_SECOND).unwrap_or(0);
    let time = [seconds, ns.wrapping_sub(seconds.wrapping_mul(PER_SECOND))];
    let value = usize::try_from(value).unwrap_or(0);
    call(FUTEX, [word.as_ptr().addr(), FUTEX_WAIT, value, time.as_ptr().addr()]);
}

/// Blocks the signals of the calling thread but those that its C library needs, and gives those
/// that were blocked before. A thread begins with those of the thread that makes it.
pub fn block_signals() -> u64 {
    set_signals(ALL_SIGNALS)
}

/// Blocks these signals of the calling thread and no others, and gives those that were blocked
/// before.
pub fn set_signals(blocked: u64) -> u64 {
    let mut before = 0_u64;
    let (new, old) = ((&raw const blocked).addr(), (&raw mut before).addr());
    call(RT_SIGPROCMASK, [SIG_SETMASK, new, old, 8]);
    before
}

/// Names the calling thread.
pub fn name_thread(name: &CStr) {
    call(PRCTL, [PR_SET_NAME, name.as_ptr().addr()]);
}

/// Copies what lies at an address of this process, up to the first page that is not there, and
/// gives how many bytes that were; `None` where nothing is there, or the kernel does not do it.
/// Memory that its owner gives back meanwhile is no fault. `into` is at most a page.
pub fn copy_from(address: usize, into: &mut [u8]) -> Option<usize> {
    // What is there is copied by parts: one for each page, as a part is copied as a whole.
    let in_page = PAGE_BYTES.wrapping_sub(address & PAGE_BYTES.wrapping_sub(1));
    let first = into.len().min(in_page);
    let rest = into.len().wrapping_sub(first);
    let local = [into.as_mut_ptr().addr(), into.len()];
    let remote = [address, first, address.wrapping_add(first), rest];
    let own = usize::try_from(process()).ok()?;
    let parts = if rest == 0 { 1 } else { 2 };
    let (local, remote) = ((&raw const local).addr(), (&raw const remote).addr());
    let copied = call(PROCESS_VM_READV, [own, local, 1, remote, parts, 0]);
    usize::try_from(copied).ok()
}

/// Lets other threads run.
pub fn step_aside() {
    call::<0>(SCHED_YIELD, []);
}

/// Seconds and nanoseconds of a clock.
pub fn clock(clock: u32, into: &mut [i64; 2]) {
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
    // say; the kernel changes the registers that are named here and no others. The address that
    // `copy_from` reads is the kernel's to check.
    unsafe {
        asm!("syscall", inlateout("rax") number => answer, in("rdi") all[0], in("rsi") all[1], in("rdx") all[2], in("r10") all[3], in("r8") all[4],
            in("r9") all[5],
            lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    answer
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn memory_that_is_not_there_is_none_and_a_text_before_it_is_read() {
        let mut into = [0; 64];
        assert_eq!(copy_from(16, &mut into), None);
        let text = *b"kernel\0";
        let mut into = [0; 7];
        assert_eq!(copy_from(text.as_ptr().addr(), &mut into), Some(7));
        assert_eq!(into, text);
    }

    #[test]
    fn signals_are_blocked_but_those_of_the_c_library() {
        let before = block_signals();
        // The kernel never blocks SIGKILL (9) and SIGSTOP (19).
        assert_eq!(set_signals(before), ALL_SIGNALS & !(1 << 8) & !(1 << 18));
    }

    #[test]
    fn pages_that_are_populated_hold_what_they_held() {
        let memory = anonymous(4 * PAGE_BYTES).unwrap();
        // SAFETY: the memory was just mapped, is aligned as a page is, and is never unmapped.
        let word = unsafe { memory.cast::<AtomicU32>().as_ref() };
        word.store(7, Ordering::Relaxed);
        populate(memory, 4 * PAGE_BYTES);
        // Not a page's begin, and nothing that is mapped: the kernel refuses.
        populate(NonNull::new(memory.as_ptr().wrapping_add(8)).unwrap(), PAGE_BYTES);
        populate(NonNull::dangling(), PAGE_BYTES);
        assert_eq!(word.load(Ordering::Relaxed), 7);
    }

    #[test]
    fn a_word_that_has_changed_is_not_slept_on() {
        let word = AtomicU32::new(3);
        sleep_on(&word, 4, 60 * PER_SECOND);
        sleep_on(&word, 3, 1_000);
    }
}
