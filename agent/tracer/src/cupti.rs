//! The functions of libcupti that are called, and no others: not one that ends or unloads it, none
//! of its second interface, which would lock out whoever uses the first.
#![allow(unsafe_code, reason = "functions of another library")]

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr;

use flopwatch_injected::loader::Library;

/// A code of CUPTI; 0 is well.
pub(crate) type Code = c_int;
/// The code that says that another has the subscription.
pub(crate) const MULTIPLE_SUBSCRIBERS: u32 = 39;
/// The code behind a buffer's last record.
pub(crate) const NO_MORE: u32 = 12;
/// The most device buffers that CUPTI keeps, as it numbers that attribute.
pub(crate) const POOL_LIMIT: c_int = 2;

/// What CUPTI calls for a buffer: where it goes, its bytes, the most records.
pub(crate) type Requested = extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
/// What CUPTI calls with a buffer: context, stream, buffer, its bytes, those that are filled.
pub(crate) type Completed = extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);
type Callback = extern "C" fn(*mut c_void, c_int, u32, *const c_void);

/// An opened libcupti.
pub(crate) struct Cupti {
    version: extern "C" fn(*mut u32) -> Code,
    timestamp: extern "C" fn(*mut u64) -> Code,
    subscribe: extern "C" fn(*mut *mut c_void, Callback, *mut c_void) -> Code,
    unsubscribe: extern "C" fn(*mut c_void) -> Code,
    register: extern "C" fn(Requested, Completed) -> Code,
    set_attribute: extern "C" fn(c_int, *mut usize, *mut c_void) -> Code,
    enable: extern "C" fn(c_int) -> Code,
    disable: extern "C" fn(c_int) -> Code,
    flush: extern "C" fn(u32) -> Code,
    next: extern "C" fn(*mut u8, usize, *mut *mut u8) -> Code,
    dropped: extern "C" fn(*mut c_void, u32, *mut usize) -> Code,
    callback_name: extern "C" fn(c_int, u32, *mut *const c_char) -> Code,
}

/// CUPTI's name for who listens: this library.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subscriber(*mut c_void);

// SAFETY: it is a name that only CUPTI looks behind.
unsafe impl Send for Subscriber {}

impl Cupti {
    /// The functions of an opened library; `None` where it lacks one.
    #[allow(
        clippy::missing_transmute_annotations,
        reason = "the field that an address goes to says the type"
    )]
    pub(crate) fn of(library: Library) -> Option<Self> {
        macro_rules! function {
            ($name:literal) => {{
                let address = library.find($name)?;
                // SAFETY: the type that the caller keeps it in is that of CUPTI's function of this
                // name, from 11.8 to 13.5.
                unsafe { core::mem::transmute::<*mut c_void, _>(address) }
            }};
        }
        Some(Self {
            version: function!(c"cuptiGetVersion"),
            timestamp: function!(c"cuptiGetTimestamp"),
            subscribe: function!(c"cuptiSubscribe"),
            unsubscribe: function!(c"cuptiUnsubscribe"),
            register: function!(c"cuptiActivityRegisterCallbacks"),
            set_attribute: function!(c"cuptiActivitySetAttribute"),
            enable: function!(c"cuptiActivityEnable"),
            disable: function!(c"cuptiActivityDisable"),
            flush: function!(c"cuptiActivityFlushAll"),
            next: function!(c"cuptiActivityGetNextRecord"),
            dropped: function!(c"cuptiActivityGetNumDroppedRecords"),
            callback_name: function!(c"cuptiGetCallbackName"),
        })
    }

    /// Its API version.
    pub(crate) fn version(&self) -> Result<u32, u32> {
        let mut version = 0;
        code((self.version)(&raw mut version)).map(|()| version)
    }

    /// Now on its clock, in ns.
    pub(crate) fn timestamp(&self) -> Result<u64, u32> {
        let mut now = 0;
        code((self.timestamp)(&raw mut now)).map(|()| now)
    }

    /// Takes the subscription. No domain of callbacks is enabled: nothing is called for a launch.
    pub(crate) fn subscribe(&self) -> Result<Subscriber, u32> {
        let mut subscriber = ptr::null_mut();
        code((self.subscribe)(&raw mut subscriber, ignore, ptr::null_mut())).map(|()| Subscriber(subscriber))
    }

    /// Gives the subscription back.
    pub(crate) fn unsubscribe(&self, subscriber: Subscriber) -> Result<(), u32> {
        code((self.unsubscribe)(subscriber.0))
    }

    /// Says where buffers come from and go to.
    pub(crate) fn register(&self, requested: Requested, completed: Completed) -> Result<(), u32> {
        code((self.register)(requested, completed))
    }

    /// Sets an attribute that is a size.
    pub(crate) fn set_size(&self, attribute: c_int, mut value: usize) -> Result<(), u32> {
        let mut bytes = size_of::<usize>();
        code((self.set_attribute)(attribute, &raw mut bytes, (&raw mut value).cast()))
    }

    /// Begins records of a kind.
    pub(crate) fn enable(&self, kind: c_int) -> Result<(), u32> {
        code((self.enable)(kind))
    }

    /// Ends records of a kind.
    pub(crate) fn disable(&self, kind: c_int) -> Result<(), u32> {
        code((self.disable)(kind))
    }

    /// Asks for the buffers whose records are complete. It never asks for others: records that the
    /// GPU still writes to would come without their times.
    pub(crate) fn flush(&self) -> Result<(), u32> {
        code((self.flush)(0))
    }

    /// Records that were dropped since the last time.
    pub(crate) fn dropped(&self) -> Result<usize, u32> {
        let mut dropped = 0;
        code((self.dropped)(ptr::null_mut(), 0, &raw mut dropped)).map(|()| dropped)
    }

    /// The address of the name of a function of the runtime or driver.
    pub(crate) fn callback_name(&self, domain: u8, function: u32) -> Result<usize, u32> {
        let mut name = ptr::null();
        code((self.callback_name)(c_int::from(domain), function, &raw mut name)).map(|()| name.addr())
    }

    /// The record behind `record` in a buffer, or the first one for null.
    ///
    /// # Safety
    ///
    /// `buffer` is one that CUPTI has completed with so many bytes, and `record` null or what this
    /// function gave for it.
    pub(crate) unsafe fn next(&self, buffer: *mut u8, bytes: usize, mut record: *mut u8) -> Result<*mut u8, u32> {
        code((self.next)(buffer, bytes, &raw mut record)).map(|()| record)
    }
}

fn code(code: Code) -> Result<(), u32> {
    match u32::try_from(code) {
        Ok(0) => Ok(()),
        Ok(code) => Err(code),
        // No code of CUPTI is negative: what is, says nothing but that it failed.
        Err(_) => Err(u32::MAX),
    }
}

/// Stands for the callback that CUPTI wants of a subscriber.
extern "C" fn ignore(_: *mut c_void, _: c_int, _: u32, _: *const c_void) {}

/// Whether a library exports a function.
pub(crate) fn exports(library: Library, function: &CStr) -> bool {
    library.find(function).is_some()
}
