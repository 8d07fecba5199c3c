//! bpf(2), as far as device programs of cgroups need it.
#![allow(
    unsafe_code,
    reason = "no crate in this tree wraps bpf(2); the ones that do bring loaders of objects and maps along"
)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use nix::libc;

/// Command of bpf(2) that loads a program; the others follow.
const PROG_LOAD: libc::c_int = 5;
const PROG_ATTACH: libc::c_int = 8;
const PROG_GET_FD_BY_ID: libc::c_int = 13;
const PROG_QUERY: libc::c_int = 16;
/// `BPF_PROG_TYPE_CGROUP_DEVICE` and the place that such programs are attached to,
/// `BPF_CGROUP_DEVICE`.
const TYPE_CGROUP_DEVICE: u32 = 15;
const AT_CGROUP_DEVICE: u32 = 6;
/// Beside the programs that are there: all of them must agree.
const ALLOW_MULTI: u32 = 1 << 1;
/// With the programs of the cgroups above.
const QUERY_EFFECTIVE: u32 = 1 << 0;
/// Programs of one cgroup that are asked for; the kernel attaches 64 at most to each.
const MAX_PROGRAMS: u32 = 1024;

/// One instruction of eBPF.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Instruction {
    pub(crate) code: u8,
    /// Destination in the low four bits, source in the high ones (little-endian machines, which are
    /// all that NVIDIA's driver serves).
    pub(crate) registers: u8,
    pub(crate) offset: i16,
    pub(crate) immediate: i32,
}

/// `union bpf_attr`, zeroed beyond what a command fills in.
#[repr(C, align(8))]
struct Attributes([u8; 128]);

impl Attributes {
    const fn new() -> Self {
        Self([0; 128])
    }

    fn put(mut self, offset: usize, bytes: &[u8]) -> Self {
        if let Some(place) = self.0.get_mut(offset..offset + bytes.len()) {
            place.copy_from_slice(bytes);
        }
        self
    }

    fn number(self, offset: usize, value: u32) -> Self {
        self.put(offset, &value.to_ne_bytes())
    }

    fn descriptor(self, offset: usize, value: BorrowedFd<'_>) -> Self {
        self.put(offset, &value.as_raw_fd().to_ne_bytes())
    }

    fn address<T>(self, offset: usize, value: *const T) -> Self {
        let address = u64::try_from(value.expose_provenance()).unwrap_or(0);
        self.put(offset, &address.to_ne_bytes())
    }
}

/// # Safety
/// Every address in `attributes` is of memory that lives until this returns and that `command` may
/// use as it does.
unsafe fn call(command: libc::c_int, attributes: &mut Attributes) -> io::Result<libc::c_long> {
    let size = size_of::<Attributes>();
    // SAFETY: the attributes are as long as is said, zero where the command has no field, and by
    // this function's contract what they point to is there.
    let outcome = unsafe { libc::syscall(libc::SYS_bpf, command, &raw mut *attributes, size) };
    if outcome < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(outcome)
    }
}

/// # Safety
/// As [`call`], and the command returns a descriptor.
unsafe fn call_for_descriptor(command: libc::c_int, attributes: &mut Attributes) -> io::Result<OwnedFd> {
    // SAFETY: by this function's own contract.
    let outcome = unsafe { call(command, attributes)? };
    let fd = RawFd::try_from(outcome).map_err(io::Error::other)?;
    // SAFETY: the kernel has just made the descriptor for this call, so nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Loads a device program.
pub(crate) fn load(program: &[Instruction]) -> io::Result<OwnedFd> {
    let licence = c"Apache-2.0";
    let count = u32::try_from(program.len()).map_err(io::Error::other)?;
    let mut attributes = Attributes::new()
        .number(0, TYPE_CGROUP_DEVICE)
        .number(4, count)
        .address(8, program.as_ptr())
        .address(16, licence.as_ptr())
        .put(48, b"flopwatch");
    // SAFETY: the instructions and the licence outlive the call, which reads them: as many
    // instructions as are there, of the layout that the kernel has (`repr(C)`, eight bytes), and a
    // terminated string.
    unsafe { call_for_descriptor(PROG_LOAD, &mut attributes) }
}

/// Attaches a device program to a cgroup (a folder of version 2), beside those that it has.
pub(crate) fn attach(cgroup: BorrowedFd<'_>, program: BorrowedFd<'_>) -> io::Result<()> {
    let mut attributes = Attributes::new()
        .descriptor(0, cgroup)
        .descriptor(4, program)
        .number(8, AT_CGROUP_DEVICE)
        .number(12, ALLOW_MULTI);
    // SAFETY: no address is in the attributes.
    unsafe { call(PROG_ATTACH, &mut attributes) }.map(drop)
}

/// Numbers of the device programs of a cgroup; with `effective` those of the cgroups above too.
pub(crate) fn attached(cgroup: BorrowedFd<'_>, effective: bool) -> io::Result<Vec<u32>> {
    /// Where the kernel says how many there are.
    const COUNT: usize = 24;
    let mut numbers = vec![0_u32; usize::try_from(MAX_PROGRAMS).unwrap_or(0)];
    let flags = if effective { QUERY_EFFECTIVE } else { 0 };
    let mut attributes = Attributes::new()
        .descriptor(0, cgroup)
        .number(4, AT_CGROUP_DEVICE)
        .number(8, flags)
        .address(16, numbers.as_mut_ptr())
        .number(COUNT, MAX_PROGRAMS);
    // SAFETY: the numbers outlive the call, which writes no more of them than it was told there is
    // room for.
    unsafe { call(PROG_QUERY, &mut attributes) }?;
    let count = attributes
        .0
        .get(COUNT..COUNT + 4)
        .and_then(|bytes| bytes.try_into().ok());
    let count = usize::try_from(u32::from_ne_bytes(count.unwrap_or_default())).unwrap_or(0);
    numbers.truncate(count);
    Ok(numbers)
}

/// The program of that number.
pub(crate) fn program(number: u32) -> io::Result<OwnedFd> {
    let mut attributes = Attributes::new().number(0, number);
    // SAFETY: no address is in the attributes.
    unsafe { call_for_descriptor(PROG_GET_FD_BY_ID, &mut attributes) }
}
