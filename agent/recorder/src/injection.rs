//! How NVTX begins with this library: the profiler's library fills its tables first, then this one
//! puts itself before it.
#![allow(unsafe_code, reason = "tables of another library")]

use core::ffi::{CStr, c_int, c_uint, c_void};
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, Ordering};

use flopwatch_injected::clock::wait_until;
use flopwatch_injected::loader;
use flopwatch_ring::header::Count;

use crate::calls::{CORE, CORE2, HOOKS_OF, MAX_FUNCTIONS, MAX_SETS, NEXT, NextFunction};
use crate::recorder;
use crate::thread::Thread;

/// Names the profiler's library, which sees every call too.
const PROFILER: &CStr = c"FLOPWATCH_NVTX_NEXT";
/// NVTX's number of the table that gives all others.
const CALLBACKS: u32 = 1;

/// Which version of NVTX asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// The headers: every program that includes them has a copy.
    Three,
    /// The library `libnvToolsExt`.
    Two,
}

impl Version {
    /// The entry point that this version looks for in a library.
    const fn entry(self) -> &'static CStr {
        match self {
            Self::Three => c"InitializeInjectionNvtx2",
            Self::Two => c"InitializeInjectionNvtx",
        }
    }
}

/// NVTX's function that gives a table by its number, or null.
pub type GetExportTable = unsafe extern "C" fn(u32) -> *const c_void;

/// NVTX's table of tables, as it lays it out.
#[repr(C)]
struct Callbacks {
    bytes: usize,
    module: Option<unsafe extern "C" fn(c_int, *mut *const *const NextFunction, *mut c_uint) -> c_int>,
}

/// Where a module's functions are, as far as they are known here.
struct Module([Option<&'static NextFunction>; MAX_FUNCTIONS]);

impl Module {
    /// # Safety
    ///
    /// `get` is NVTX's own.
    unsafe fn of(get: GetExportTable, number: c_int) -> Self {
        let mut module = Self([None; MAX_FUNCTIONS]);
        // SAFETY: NVTX gives a table of that layout or null.
        let callbacks = unsafe { get(CALLBACKS).cast::<Callbacks>().as_ref() };
        let Some(table_of) = callbacks
            .filter(|callbacks| callbacks.bytes >= size_of::<Callbacks>())
            .and_then(|callbacks| callbacks.module)
        else {
            return module;
        };
        let (mut table, mut count) = (ptr::null(), 0);
        // SAFETY: both are places to write to.
        let found = unsafe { table_of(number, &raw mut table, &raw mut count) };
        if found == 0 || table.is_null() {
            return module;
        }
        let count = usize::try_from(count).unwrap_or(0);
        for (at, place) in module.0.iter_mut().enumerate().take(count) {
            // SAFETY: NVTX said that so many places are there; each is null or lives as long as
            // NVTX.
            *place = unsafe { table.add(at).read().as_ref() };
        }
        module
    }

    /// Whether it calls the functions of a set.
    fn is_of(&self, set: usize) -> bool {
        let mut hooks = HOOKS_OF.get(set).into_iter().flatten();
        hooks.any(|hook| {
            let place = self.0.get(hook.number).copied().flatten();
            hook.module == CORE
                && place.is_some_and(|place| place.load(Ordering::Acquire).cast_const() == hook.function)
        })
    }

    /// Puts a function in its place, where there is one.
    fn put(&self, number: usize, function: *mut c_void) {
        if let Some(Some(place)) = self.0.get(number) {
            place.store(function, Ordering::Release);
        }
    }
}

/// The table of a module that a profiler's library fills for a set: NVTX's own would be called
/// before ours stands before it.
struct Filled([&'static NextFunction; MAX_FUNCTIONS]);

#[allow(
    clippy::indexing_slicing,
    reason = "the compiler makes it, and fails where a place is not there"
)]
static TABLES: [[Filled; 2]; MAX_SETS] = {
    let mut tables = [const { [const { Filled([&NEXT[0][0]; MAX_FUNCTIONS]) }; 2] }; MAX_SETS];
    let mut at = 0;
    while at < MAX_SETS * 2 * MAX_FUNCTIONS {
        let (set, place) = (at / (2 * MAX_FUNCTIONS), at % (2 * MAX_FUNCTIONS));
        tables[set][place / MAX_FUNCTIONS].0[place % MAX_FUNCTIONS] = &NEXT[set][place];
        at += 1;
    }
    tables
};

static OWN_CALLBACKS: Callbacks = Callbacks {
    bytes: size_of::<Callbacks>(),
    module: Some(own_module),
};

/// NVTX's own function, of the copy that asked last.
static GET: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// What a profiler's library is given in place of NVTX's function.
unsafe extern "C" fn own_get(table: u32) -> *const c_void {
    if table == CALLBACKS && Thread::with(|thread| thread.fills.get()) != 0 {
        return (&raw const OWN_CALLBACKS).cast();
    }
    call_real(table)
}

/// Gives the tables of the set that the calling thread's profiler fills, and NVTX's own of all
/// other modules.
unsafe extern "C" fn own_module(module: c_int, table: *mut *const *const NextFunction, count: *mut c_uint) -> c_int {
    let set = Thread::with(|thread| thread.fills.get()).checked_sub(1);
    let tables = set.and_then(|set| TABLES.get(usize::try_from(set).ok()?));
    let filled = match (tables, module) {
        (Some([core, _]), CORE) => core,
        (Some([_, core2]), CORE2) => core2,
        _ => {
            // SAFETY: NVTX's function gives a table of that layout or null.
            let callbacks = unsafe { call_real(CALLBACKS).cast::<Callbacks>().as_ref() };
            // SAFETY: it gets what it was asked for.
            return callbacks
                .and_then(|callbacks| callbacks.module)
                .map_or(0, |table_of| unsafe { table_of(module, table, count) });
        }
    };
    // SAFETY: both are null or places to write to, as NVTX's function asks of its callers.
    unsafe {
        if let Some(table) = table.as_mut() {
            *table = filled.0.as_ptr().cast();
        }
        if let Some(count) = count.as_mut() {
            *count = 16;
        }
    }
    1
}

/// Asks NVTX's own function.
fn call_real(table: u32) -> *const c_void {
    let get = GET.load(Ordering::Acquire);
    // SAFETY: null becomes none, anything else is NVTX's function.
    let get: Option<GetExportTable> = unsafe { core::mem::transmute(get) };
    // SAFETY: it gets what it was asked for.
    get.map_or(ptr::null(), |get| unsafe { get(table) })
}

/// A copy of NVTX.
struct Copy {
    /// Where it keeps its first function; null for none yet.
    first: AtomicPtr<NextFunction>,
    /// Whether it was answered.
    is_answered: AtomicBool,
    answer: AtomicI32,
}

/// Copies of NVTX that have asked, each with the set of functions of its place.
static COPIES: [Copy; MAX_SETS] = [const {
    Copy {
        first: AtomicPtr::new(ptr::null_mut()),
        is_answered: AtomicBool::new(false),
        answer: AtomicI32::new(0),
    }
}; MAX_SETS];

/// What NVTX calls for each copy of itself: 1 where anybody listens to it, 0 where nobody does and
/// NVTX may do without.
///
/// It should call once. Headers of 2023 and before compare and swap with the arguments in the wrong
/// order, so that all threads that come while it begins call at once; the profiler's library and
/// ours see one call of a copy all the same.
pub fn initialize(version: Version, get: Option<GetExportTable>) -> c_int {
    let Some(get) = get else { return 0 };
    // Whoever names this library as the profiler's would have it call itself for ever.
    if Thread::with(|thread| thread.is_calling_on.get()) {
        return 0;
    }
    // SAFETY: NVTX hands over its own function.
    let core = unsafe { Module::of(get, CORE) };
    let first = core.0.iter().flatten().next().copied();
    let Some(first) = first.map(|place| ptr::from_ref(place).cast_mut()) else {
        return begin(version, get, None);
    };
    for (set, copy) in COPIES.iter().enumerate() {
        let known = copy
            .first
            .compare_exchange(ptr::null_mut(), first, Ordering::Relaxed, Ordering::Relaxed);
        if known == Err(first) {
            wait_until(|| copy.is_answered.load(Ordering::Acquire));
        }
        let answered = copy.answer.load(Ordering::Relaxed);
        // A library that was unloaded may have had its copy where another one has it now.
        let is_another = known == Err(first) && answered != 0 && !core.is_of(set);
        if known.is_ok() || is_another {
            let answer = begin(version, get, Some(set));
            copy.answer.store(answer, Ordering::Relaxed);
            copy.is_answered.store(true, Ordering::Release);
            return answer;
        }
        if known == Err(first) {
            return answered;
        }
    }
    begin(version, get, None)
}

/// Has the profiler's library begin, then puts the functions of a set before its own.
fn begin(version: Version, get: GetExportTable, set: Option<usize>) -> c_int {
    let recorder = recorder::begin();
    let set = set.filter(|_| recorder.is_some());
    let profiler = loader::variable(PROFILER).map(|path| {
        let entry = loader::symbol(path, version.entry())?;
        // SAFETY: a function of that name has that signature.
        let entry: unsafe extern "C" fn(GetExportTable) -> c_int = unsafe { core::mem::transmute(entry) };
        Some(call_on(entry, get, set)).filter(|answer| *answer != 0)
    });
    let without_us = profiler.flatten().unwrap_or(0);
    let Some(recorder) = recorder else {
        return without_us;
    };
    if profiler == Some(None) {
        recorder.memory.count(Count::ProfilersNotLoaded);
    }
    let Some((set, hooks)) = set.and_then(|set| Some((set, HOOKS_OF.get(set)?))) else {
        recorder.memory.count(Count::CopiesLeftOut);
        return without_us;
    };
    recorder.memory.count(Count::Copies);
    // SAFETY: NVTX hands over its own function.
    let (core, core2) = unsafe { (Module::of(get, CORE), Module::of(get, CORE2)) };
    let places = NEXT.get(set).into_iter().flatten().enumerate();
    for (at, place) in places {
        if profiler == Some(None) {
            // What a library wrote before it failed.
            place.store(ptr::null_mut(), Ordering::Release);
        }
        let function = place.load(Ordering::Acquire);
        let (module, number) = if at < MAX_FUNCTIONS {
            (&core, at)
        } else {
            (&core2, at.wrapping_sub(MAX_FUNCTIONS))
        };
        if !function.is_null() && number > 0 {
            // Those that we have functions for are replaced below.
            let is_ours = hooks.iter().any(|hook| hook.function_index() == at);
            if !is_ours {
                module.put(number, function);
            }
        }
    }
    for hook in hooks {
        let module = if hook.module == CORE { &core } else { &core2 };
        module.put(hook.number, hook.function.cast_mut());
    }
    1
}

/// Calls the profiler's library, which fills the tables of a set, or NVTX's own without one.
fn call_on(entry: unsafe extern "C" fn(GetExportTable) -> c_int, get: GetExportTable, set: Option<usize>) -> c_int {
    #[allow(clippy::as_conversions, reason = "a function's address has no other conversion")]
    GET.store(get as *mut c_void, Ordering::Release);
    let fills = set.and_then(|set| u32::try_from(set.wrapping_add(1)).ok());
    Thread::with(|thread| {
        thread.is_calling_on.set(true);
        thread.fills.set(fills.unwrap_or(0));
        // SAFETY: it gets a function that answers as NVTX's does.
        let answer = unsafe { entry(if fills.is_some() { own_get } else { get }) };
        thread.fills.set(0);
        thread.is_calling_on.set(false);
        answer
    })
}
