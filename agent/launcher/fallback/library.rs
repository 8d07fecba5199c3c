//! A library that is preloaded before the profiler's own, so that no trouble of the profiler costs
//! the workload a program.
//!
//! Nsight Systems' library connects to its session while a program is loaded, and calls `exit(1)`
//! when it cannot: the session was killed, answers too late, or the program runs in a network or
//! mount namespace from which it cannot be reached. Every program that the workload starts from
//! then on would end before its first instruction. So `exit` passes through here until the
//! libraries are loaded: where the profiler's library calls it, the program is started over, in
//! place, with the environment that it would have without the graft.
//!
//! It links no C library, for it is loaded into every program of the workload, whatever that is
//! built for; the four functions on memory and strings that the compiler calls are in every one,
//! under the same names. `build.rs` compiles this file; the crate carries the result and installs
//! it beside the launcher.
#![no_std]
#![allow(
    unsafe_code,
    reason = "a preloaded library speaks with the loader and the kernel in their own terms"
)]

use core::arch::{asm, global_asm, naked_asm};
use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicBool, Ordering};

/// The end of this library's own name in `LD_PRELOAD`; what stands before it is the workload's own.
const OWN_NAME: &[u8] = b"/libflopwatch-fallback.so";
/// Names of the variables that the graft added, with colons between them.
const ADDED: &[u8] = b"FLOPWATCH_GRAFTED=";
/// What the file names of the profiler's libraries have in common.
const PROFILER: &[u8] = b"/libToolsInjection";
/// Said on standard error after the profiler's own complaint.
const NOTE: &[u8] = b"flopwatch: the program starts without the profiler\n";
/// Largest environment or command line that is read, the kernel's own bound for both together (3/4
/// of 8 MiB).
const MAX_FILE_BYTES: usize = 6 << 20;
/// Descriptors that are looked at.
const MAX_DESCRIPTORS: usize = 256;

/// True until the constructors have run. The loader runs that of the first preloaded library last;
/// were it otherwise somewhere, everything would be as without this library.
static LOADING: AtomicBool = AtomicBool::new(true);

extern "C" fn loaded() {
    LOADING.store(false, Ordering::Relaxed);
}

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = loaded;

/// Stands before the C library's `exit` and hands on who called it.
// SAFETY: the name is that of the C library's function on purpose; the signature is the same.
#[unsafe(no_mangle)]
#[unsafe(naked)]
extern "C" fn exit(code: c_int) -> ! {
    naked_asm!("mov rsi, [rsp]", "jmp {leave}", leave = sym leave)
}

extern "C" fn leave(code: c_int, caller: *const c_void) -> ! {
    if LOADING.load(Ordering::Relaxed) && is_of_the_profiler(caller) {
        start_over();
    }
    if let Some(exit) = next_exit() {
        exit(code)
    }
    loop {
        system_call(EXIT_GROUP, [usize::try_from(code & 0xff).unwrap_or(1)]);
    }
}

// Of the C library and the loader only what they offer: a weak name that nobody has is null.
global_asm!(".weak dlsym", ".weak dladdr");

/// As in `dlfcn.h`.
#[repr(C)]
struct SymbolInfo {
    file_name: *const c_char,
    file_base: *mut c_void,
    symbol_name: *const c_char,
    symbol_address: *mut c_void,
}

type FindSymbol = extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;
type DescribeAddress = extern "C" fn(*const c_void, *mut SymbolInfo) -> c_int;

fn next_exit() -> Option<extern "C" fn(c_int) -> !> {
    let address: *mut c_void;
    // SAFETY: reads this library's own slot for `dlsym`, which the loader has filled or left null.
    unsafe { asm!("mov {}, [rip + dlsym@GOTPCREL]", out(reg) address, options(nostack, preserves_flags)) };
    // SAFETY: null becomes none, anything else is `dlsym`, whose signature is this.
    let find: Option<FindSymbol> = unsafe { core::mem::transmute(address) };
    // RTLD_NEXT: the next one behind this library.
    let next = find?(core::ptr::without_provenance_mut(usize::MAX), c"exit".as_ptr());
    // SAFETY: null becomes none, anything else is a function called `exit`, whose signature is
    // this.
    unsafe { core::mem::transmute(next) }
}

fn is_of_the_profiler(address: *const c_void) -> bool {
    let function: *mut c_void;
    // SAFETY: reads this library's own slot for `dladdr`, which the loader has filled or left null.
    unsafe { asm!("mov {}, [rip + dladdr@GOTPCREL]", out(reg) function, options(nostack, preserves_flags)) };
    // SAFETY: null becomes none, anything else is `dladdr`, whose signature is this.
    let describe: Option<DescribeAddress> = unsafe { core::mem::transmute(function) };
    let mut info = SymbolInfo {
        file_name: core::ptr::null(),
        file_base: core::ptr::null_mut(),
        symbol_name: core::ptr::null(),
        symbol_address: core::ptr::null_mut(),
    };
    if describe.is_none_or(|describe| describe(address, &raw mut info) == 0) || info.file_name.is_null() {
        return false;
    }
    // SAFETY: `dladdr` said yes, so the name is a terminated string that lives as long as the file
    // is loaded.
    let name = unsafe { CStr::from_ptr(info.file_name) }.to_bytes();
    name.windows(PROFILER.len()).any(|part| part == PROFILER)
}

/// Runs this process's program anew, with the workload's own environment. Returns only when that
/// cannot be done.
fn start_over() {
    let Some(words) = read(c"/proc/self/cmdline").and_then(|text| pointers(text, |word| Some(word.len()))) else {
        return;
    };
    let Some(environment) = read(c"/proc/self/environ") else {
        return;
    };
    let mut added = [0; 4096];
    // Without the list, or with one that is too long, this is no graft of ours.
    let Some(added) = list_of_added(environment, &mut added) else {
        return;
    };
    let Some(entries) = pointers(environment, |entry| own_part(entry, added)) else {
        return;
    };
    system_call(WRITE, [2, NOTE.as_ptr().addr(), NOTE.len()]);
    close_what_the_profiler_opened();
    let entries = entries.as_ptr().expose_provenance();
    let run = |file: usize, words: &[usize]| system_call(EXECVE, [file, words.as_ptr().expose_provenance(), entries]);
    let own = c"/proc/self/exe".as_ptr().addr();
    if let Some(name) = name_at_start() {
        // The process keeps the name that the kernel gave it: that of a script, where it runs one.
        if is_same_file(name.as_ptr().addr(), own) {
            run(name.as_ptr().addr(), words);
        } else if let Some(script) = words.iter().skip(1).position(|word| is_text(*word, name)) {
            run(name.as_ptr().addr(), words.get(script + 1..).unwrap_or_default());
        }
    }
    run(own, words);
}

/// The file name with which this program was started.
fn name_at_start() -> Option<&'static CStr> {
    let vector = read(c"/proc/self/auxv")?;
    let mut pairs = vector.chunks_exact(2 * size_of::<usize>()).filter_map(|pair| {
        let (kind, value) = pair.split_first_chunk()?;
        Some((usize::from_ne_bytes(*kind), usize::from_ne_bytes(*value.first_chunk()?)))
    });
    let (_, address) = pairs.find(|(kind, address)| *kind == AT_EXECFN && *address != 0)?;
    // SAFETY: the kernel keeps that terminated string on the process's first stack, where nobody
    // writes.
    Some(unsafe { CStr::from_ptr(core::ptr::with_exposed_provenance(address)) })
}

/// Whether a word of the command line is this text.
fn is_text(word: usize, text: &CStr) -> bool {
    // SAFETY: the words are the addresses of terminated strings, less the null at their end.
    word != 0 && unsafe { CStr::from_ptr(core::ptr::with_exposed_provenance(word)) } == text
}

/// Whether both paths lead to the same file.
fn is_same_file(one: usize, other: usize) -> bool {
    let identity = |path: usize| {
        // Device and inode are the first two fields of the kernel's structure of 144 bytes.
        let mut facts = [0_u64; 18];
        let answer = system_call(STAT, [path, facts.as_mut_ptr().addr()]);
        (answer == 0).then_some((facts[0], facts[1]))
    };
    identity(one).is_some() && identity(one) == identity(other)
}

/// Copies the value of [`ADDED`].
fn list_of_added<'a>(environment: &[u8], into: &'a mut [u8]) -> Option<&'a [u8]> {
    let value = environment
        .split(|byte| *byte == 0)
        .find_map(|entry| entry.strip_prefix(ADDED))?;
    let into = into.get_mut(..value.len())?;
    into.copy_from_slice(value);
    Some(into)
}

/// How much of an entry stays when what the graft added goes; none: nothing.
fn own_part(entry: &[u8], added: &[u8]) -> Option<usize> {
    let name = entry.split(|byte| *byte == b'=').next()?;
    if name == b"LD_PRELOAD" {
        let Some(own) = entry.windows(OWN_NAME.len()).position(|part| part == OWN_NAME) else {
            return Some(entry.len());
        };
        // Up to the colon before this library; the first one has the equals sign there.
        let kept = entry.get(..own)?.iter().rposition(|byte| matches!(byte, b':' | b'='))?;
        return (kept > name.len()).then_some(kept);
    }
    let is_added = ADDED.strip_suffix(b"=") == Some(name) || added.split(|byte| *byte == b':').any(|one| one == name);
    (!is_added).then_some(entry.len())
}

/// The addresses of the terminated strings in `text`, each cut to what is kept of it, and a null at
/// their end.
fn pointers(text: &'static mut [u8], kept: impl Fn(&[u8]) -> Option<usize>) -> Option<&'static [usize]> {
    let count = text.iter().filter(|byte| **byte == 0).count().checked_add(1)?;
    let array = memory(count.checked_mul(size_of::<usize>())?)?;
    // SAFETY: zero bytes are valid numbers, and fresh memory begins at the start of a page.
    let (_, array, _) = unsafe { array.align_to_mut::<usize>() };
    let mut slots = array.iter_mut();
    for entry in text.split_inclusive_mut(|byte| *byte == 0) {
        let (_, body) = entry.split_last()?;
        let Some(length) = kept(body) else { continue };
        *entry.get_mut(length)? = 0;
        *slots.next()? = entry.as_ptr().expose_provenance();
    }
    // The rest is zero, as fresh memory is: one slot more than there are entries.
    Some(array)
}

/// Sockets that were to reach the session and did not: an inherited socket of that kind would be
/// connected or listening.
fn close_what_the_profiler_opened() {
    let answer = |descriptor: usize, option: usize| {
        let (mut value, mut length) = (0_i32, 4_u32);
        let asked = [
            descriptor,
            SOL_SOCKET,
            option,
            (&raw mut value).addr(),
            (&raw mut length).addr(),
        ];
        (system_call(GETSOCKOPT, asked) == 0).then_some(value)
    };
    for descriptor in 3..MAX_DESCRIPTORS {
        let is_plain = answer(descriptor, SO_DOMAIN) == Some(AF_INET)
            && answer(descriptor, SO_TYPE) == Some(SOCK_STREAM)
            && answer(descriptor, SO_ACCEPTCONN) == Some(0);
        let (mut name, mut length) = ([0_u8; 128], 128_u32);
        let asked = [descriptor, name.as_mut_ptr().addr(), (&raw mut length).addr()];
        if is_plain && system_call(GETPEERNAME, asked) == -ENOTCONN {
            system_call(CLOSE, [descriptor]);
        }
    }
}

/// The whole of a file of at most [`MAX_FILE_BYTES`] bytes that ends in a zero.
fn read(path: &CStr) -> Option<&'static mut [u8]> {
    let file = usize::try_from(system_call(OPEN, [path.as_ptr().addr(), O_CLOEXEC])).ok()?;
    let buffer = memory(MAX_FILE_BYTES)?;
    let mut filled = 0;
    let ended = loop {
        let rest = buffer.get_mut(filled..)?;
        match usize::try_from(system_call(READ, [file, rest.as_mut_ptr().addr(), rest.len()])) {
            Ok(0) => break !rest.is_empty(),
            Ok(bytes) => filled = filled.checked_add(bytes)?,
            Err(_) => break false,
        }
    };
    system_call(CLOSE, [file]);
    let text = buffer.get_mut(..filled)?;
    (ended && text.ends_with(&[0])).then_some(text)
}

/// Fresh memory, zero, for as long as the process runs this program.
fn memory(bytes: usize) -> Option<&'static mut [u8]> {
    let asked = [
        0,
        bytes,
        PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS,
        usize::MAX,
        0,
    ];
    let address = usize::try_from(system_call(MMAP, asked)).ok()?;
    // SAFETY: the kernel has just mapped so many bytes there, for nobody else, and nothing ever
    // unmaps them.
    Some(unsafe { core::slice::from_raw_parts_mut(core::ptr::with_exposed_provenance_mut(address), bytes) })
}

const READ: usize = 0;
const WRITE: usize = 1;
const OPEN: usize = 2;
const CLOSE: usize = 3;
const STAT: usize = 4;
const MMAP: usize = 9;
const GETPEERNAME: usize = 52;
const GETSOCKOPT: usize = 55;
const EXECVE: usize = 59;
const EXIT_GROUP: usize = 231;
const AT_EXECFN: usize = 31;
const O_CLOEXEC: usize = 0o2_000_000;
const PROT_READ: usize = 1;
const PROT_WRITE: usize = 2;
const MAP_PRIVATE: usize = 2;
const MAP_ANONYMOUS: usize = 0x20;
const SOL_SOCKET: usize = 1;
const SO_TYPE: usize = 3;
const SO_ACCEPTCONN: usize = 30;
const SO_DOMAIN: usize = 39;
const AF_INET: i32 = 2;
const SOCK_STREAM: i32 = 1;
const ENOTCONN: isize = 107;

/// Asks the kernel, on x86-64; a negative answer is an error.
fn system_call<const COUNT: usize>(number: usize, given: [usize; COUNT]) -> isize {
    let mut all = [0; 6];
    for (to, from) in all.iter_mut().zip(given) {
        *to = from;
    }
    let answer: isize;
    // SAFETY: the callers above hand over addresses of memory that is theirs and as long as they
    // say; the kernel changes the registers that are named here and no others.
    unsafe {
        asm!("syscall", inlateout("rax") number => answer, in("rdi") all[0], in("rsi") all[1], in("rdx") all[2],
            in("r10") all[3], in("r8") all[4], in("r9") all[5], lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    answer
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        system_call(EXIT_GROUP, [127]);
    }
}
