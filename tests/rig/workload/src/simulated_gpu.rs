//! The simulated GPU (`tests/rig/fake-cupti`), as a program calls it: what is launched takes the
//! time that the program says, and nothing is computed.

#![allow(
    unsafe_code,
    reason = "the stand-in for CUDA's driver is a library of C that is loaded at run time"
)]

use std::ffi::{CStr, c_char, c_int, c_uint};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use libloading::Library;

use super::rest;

/// The driver, as the loader finds it.
const DRIVER: &str = "libcuda.so.1";
/// From the begin of a call to that of its work, where nothing is before it.
const LAUNCH_DELAY_NS: u64 = 6000;
/// From the end of some work to the begin of the next.
const SWITCH_NS: u64 = 1200;
/// How long a call takes that launches.
const CALL_NS: u64 = 4500;

/// Functions of CUDA's runtime, by CUPTI's numbers.
const MEMCPY_ASYNC: c_uint = 41;
const STREAM_SYNCHRONIZE: c_uint = 131;
const LAUNCH_KERNEL: c_uint = 211;

/// Kinds of work, as `cuda.h` numbers them.
const KERNEL: c_uint = 0;
const COPY: c_uint = 1;
const WAIT: c_uint = 5;

/// Kinds of memory, by CUPTI's numbers.
const PINNED_MEMORY: c_uint = 2;
const DEVICE_MEMORY: c_uint = 3;

/// `struct launch` of `cuda.h`.
#[derive(Debug)]
#[repr(C)]
struct Launch {
    work: c_uint,
    name: *const c_char,
    start_ns: u64,
    duration_ns: u64,
    stream: c_uint,
    device: c_uint,
    function: c_uint,
    call_start_ns: u64,
    call_ns: u64,
    bytes: u64,
    source: c_uint,
    destination: c_uint,
    blocks: c_uint,
}

type Init = unsafe extern "C" fn(c_uint) -> c_int;
type LaunchAs = unsafe extern "C" fn(*const Launch) -> c_int;

/// The simulated GPU. Its driver stays loaded until the process ends, as CUDA's does.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SimulatedGpu {
    launch: LaunchAs,
}

impl SimulatedGpu {
    /// Begins CUDA.
    pub(crate) fn begin() -> anyhow::Result<Self> {
        // SAFETY: what the library does when it is loaded, it may do at any time and on any thread.
        let library = unsafe { Library::new(DRIVER) };
        let library = library.context("load the driver of the simulated GPU, whose folder LD_LIBRARY_PATH names")?;
        // SAFETY: `cuda.c` has it, and no driver of a GPU.
        let launch = unsafe { library.get::<LaunchAs>(c"fakeCudaLaunchAs") };
        let launch = *launch.context("this driver is that of a real GPU, and nothing is launched on it")?;
        // SAFETY: its type is that of the stand-in.
        let init = *unsafe { library.get::<Init>(c"cuInit") }.context("the simulated GPU begins nothing")?;
        // SAFETY: it takes flags, of which there are none.
        let code = unsafe { init(0) };
        anyhow::ensure!(code == 0, "the simulated GPU answers {code}");
        std::mem::forget(library);
        Ok(Self { launch })
    }

    /// A stream on which nothing was launched yet.
    pub(crate) fn stream(self, number: u32) -> Stream {
        Stream {
            gpu: self,
            number,
            free_ns: 0,
        }
    }
}

/// What the GPU is to do.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Work {
    /// Run a kernel of a name, in so many blocks.
    Kernel(&'static CStr, u32),
    /// Copy so many bytes from pinned memory.
    CopyToDevice(u64),
    /// Copy so many bytes to pinned memory.
    CopyToHost(u64),
}

/// A stream: work that is launched begins when all that was launched before has ended.
#[derive(Debug)]
pub(crate) struct Stream {
    gpu: SimulatedGpu,
    number: u32,
    /// When the last work ends, in Unix nanoseconds.
    free_ns: u64,
}

impl Stream {
    /// Launches work of a length, without waiting for it: the call takes as long as it says.
    pub(crate) fn launch(&mut self, work: Work, length: Duration) {
        let call_start_ns = now_ns();
        let start_ns = (call_start_ns + LAUNCH_DELAY_NS).max(self.free_ns + SWITCH_NS);
        let duration_ns = nanoseconds(length);
        self.free_ns = start_ns + duration_ns;
        let launch = Launch {
            start_ns,
            duration_ns,
            call_start_ns,
            call_ns: CALL_NS,
            ..self.nothing()
        };
        self.tell(&match work {
            Work::Kernel(name, blocks) => Launch {
                name: name.as_ptr(),
                blocks,
                ..launch
            },
            Work::CopyToDevice(bytes) => Launch {
                work: COPY,
                function: MEMCPY_ASYNC,
                bytes,
                source: PINNED_MEMORY,
                destination: DEVICE_MEMORY,
                ..launch
            },
            Work::CopyToHost(bytes) => Launch {
                work: COPY,
                function: MEMCPY_ASYNC,
                bytes,
                source: DEVICE_MEMORY,
                destination: PINNED_MEMORY,
                ..launch
            },
        });
        while now_ns() < call_start_ns + CALL_NS {
            std::hint::spin_loop();
        }
    }

    /// Waits until all that was launched has ended.
    pub(crate) fn synchronize(&mut self) {
        let start_ns = now_ns();
        rest(Duration::from_nanos(self.free_ns.saturating_sub(start_ns)));
        let duration_ns = now_ns().saturating_sub(start_ns);
        self.tell(&Launch {
            work: WAIT,
            function: STREAM_SYNCHRONIZE,
            start_ns,
            duration_ns,
            call_start_ns: start_ns,
            call_ns: duration_ns,
            ..self.nothing()
        });
    }

    /// A kernel that is launched at no time.
    fn nothing(&self) -> Launch {
        Launch {
            work: KERNEL,
            name: c"".as_ptr(),
            start_ns: 0,
            duration_ns: 0,
            stream: self.number,
            device: 0,
            function: LAUNCH_KERNEL,
            call_start_ns: 0,
            call_ns: 0,
            bytes: 0,
            source: 0,
            destination: 0,
            blocks: 1,
        }
    }

    fn tell(&self, launch: &Launch) {
        // SAFETY: the function reads the launch while it is called, and whoever records it the name
        // later: names are constants.
        unsafe { (self.gpu.launch)(launch) };
    }
}

/// Now, on the clock of the simulated GPU: in Unix nanoseconds.
fn now_ns() -> u64 {
    nanoseconds(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

fn nanoseconds(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}
