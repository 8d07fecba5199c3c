//! The functions that NVTX calls in its own functions' stead: each records, and calls what the
//! profiler's library had put in its place.
//!
//! Every copy of NVTX in a process has a table of functions of its own, and the profiler may give
//! each other ones. A function cannot tell which copy called it, so each copy has a set of
//! functions of its own, up to [`MAX_SETS`].
//!
//! The profiler's part of a begin comes before ours and that of an end after it, so that its time
//! is not in our ranges.
#![allow(unsafe_code, reason = "functions of C")]

use core::ffi::{c_char, c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use flopwatch_ring::header::{Count, OTHER_DOMAIN};
use flopwatch_ring::label::{OF_CATEGORY, OF_THREAD};
use flopwatch_ring::slot::Kind;

use crate::attributes::{self, Attributes, Extras, Name};
use crate::handles::{self, DOMAINS, Handles, STRINGS};
use crate::text::{Text, Wide};
use crate::{claim, event, labels, names, recorder};

/// Copies of NVTX in one process that are recorded.
pub(crate) const MAX_SETS: usize = 16;
/// Functions of a module of NVTX, its first place being unused.
pub(crate) const MAX_FUNCTIONS: usize = 16;
/// NVTX's number of the module of functions without a domain.
pub(crate) const CORE: c_int = 1;
/// NVTX's number of the module of functions with one.
pub(crate) const CORE2: c_int = 5;

/// Where the address of a function is kept.
pub(crate) type NextFunction = AtomicPtr<c_void>;

/// What the functions of each set call on, by module and number.
pub(crate) static NEXT: [[NextFunction; 2 * MAX_FUNCTIONS]; MAX_SETS] =
    [const { [const { AtomicPtr::new(ptr::null_mut()) }; 2 * MAX_FUNCTIONS] }; MAX_SETS];

/// What a function calls on, of a type of functions.
///
/// # Safety
///
/// `F` is the type that NVTX's function at `PLACE` has.
#[inline]
unsafe fn next<const SET: usize, const PLACE: usize, F: Copy>() -> Option<F> {
    const { assert!(SET < MAX_SETS && PLACE < 2 * MAX_FUNCTIONS && size_of::<F>() == size_of::<*mut c_void>()) }
    let address = NEXT.get(SET)?.get(PLACE)?.load(Ordering::Acquire);
    // SAFETY: what is no null is the profiler's function for that place, whose type is NVTX's.
    (!address.is_null()).then(|| unsafe { core::mem::transmute_copy(&address) })
}

/// A function of a set, with its module and its number in it.
pub(crate) struct Hook {
    pub(crate) module: c_int,
    pub(crate) number: usize,
    pub(crate) function: *const c_void,
}

// SAFETY: the address of a function is the same for every thread.
unsafe impl Sync for Hook {}

impl Hook {
    /// Index of the function among those that are called on.
    pub(crate) fn function_index(&self) -> usize {
        function_index(self.module, self.number)
    }
}

/// The place of a function among those that are called on.
const fn function_index(module: c_int, number: usize) -> usize {
    if module == CORE {
        number
    } else {
        number.wrapping_add(MAX_FUNCTIONS)
    }
}

/// Functions of a set.
const HOOK_COUNT: usize = 26;

/// Every set.
pub(crate) static HOOKS_OF: [[Hook; HOOK_COUNT]; MAX_SETS] = [
    Calls::<0>::HOOK_COUNT,
    Calls::<1>::HOOK_COUNT,
    Calls::<2>::HOOK_COUNT,
    Calls::<3>::HOOK_COUNT,
    Calls::<4>::HOOK_COUNT,
    Calls::<5>::HOOK_COUNT,
    Calls::<6>::HOOK_COUNT,
    Calls::<7>::HOOK_COUNT,
    Calls::<8>::HOOK_COUNT,
    Calls::<9>::HOOK_COUNT,
    Calls::<10>::HOOK_COUNT,
    Calls::<11>::HOOK_COUNT,
    Calls::<12>::HOOK_COUNT,
    Calls::<13>::HOOK_COUNT,
    Calls::<14>::HOOK_COUNT,
    Calls::<15>::HOOK_COUNT,
];

type Handle = *mut c_void;
type Wchar = u32;

/// A set of functions.
struct Calls<const SET: usize>;

macro_rules! calls {
    ($($module:ident $number:literal $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? { $($body:tt)* })*) => {
        impl<const SET: usize> Calls<SET> {
            const HOOK_COUNT: [Hook; HOOK_COUNT] = [$(Hook {
                module: $module,
                number: $number,
                #[allow(clippy::as_conversions, reason = "a function's address has no other conversion")]
                function: Self::$name as *const c_void,
            }),*];

            $(unsafe extern "C" fn $name($($argument: $type),*) $(-> $result)? {
                const PLACE: usize = function_index($module, $number);
                // SAFETY: the type is that of this function, which is NVTX's.
                let next = unsafe { next::<SET, PLACE, unsafe extern "C" fn($($type),*) $(-> $result)?>() };
                let call = move || {
                    // SAFETY: the profiler's function gets what the program gave.
                    next.map(|next| unsafe { next($($argument),*) })
                };
                calls!(@body call, $($body)*)
            })*
        }
    };
    // What the program sees is what the profiler says, or what we say without one.
    (@body $call:ident, first; $($ours:tt)*) => {{
        let theirs = $call();
        // SAFETY: NVTX's contract with the program holds for the arguments.
        let ours = unsafe { $($ours)* };
        theirs.unwrap_or(ours)
    }};
    (@body $call:ident, last; $($ours:tt)*) => {{
        // SAFETY: NVTX's contract with the program holds for the arguments.
        let ours = unsafe { $($ours)* };
        $call().unwrap_or(ours)
    }};
    (@body $call:ident, last safe; $($ours:tt)*) => {{
        let ours = $($ours)*;
        $call().unwrap_or(ours)
    }};
    // The profiler's answer is a part of what is recorded.
    (@body $call:ident, with; $($ours:tt)*) => {{
        // SAFETY: NVTX's contract with the program holds for the arguments.
        unsafe { ($($ours)*)($call()) }
    }};
}

calls! {
    CORE 1 mark_ex(attributes: *const Attributes) { last; mark(0, attributes) }
    CORE 2 mark_a(message: *const c_char) { last; plain(Kind::Mark, message); }
    CORE 3 mark_w(message: *const Wchar) { last; wide(Kind::Mark, message); }
    CORE 4 start_ex(attributes: *const Attributes) -> u64 { with; |id| start(0, attributes, id) }
    CORE 5 start_a(message: *const c_char) -> u64 { with; |id| start_named(name(message), id) }
    CORE 6 start_w(message: *const Wchar) -> u64 { with; |id| start_wide(message, id) }
    CORE 7 end(id: u64) { last safe; end(0, id) }
    CORE 8 push_ex(attributes: *const Attributes) -> c_int { first; push(0, attributes) }
    CORE 9 push_a(message: *const c_char) -> c_int { first; plain(Kind::Push, message) }
    CORE 10 push_w(message: *const Wchar) -> c_int { first; wide(Kind::Push, message) }
    CORE 11 pop() -> c_int { last safe; pop(0) }
    CORE 12 name_category_a(category: u32, text: *const c_char) { last; label(OF_CATEGORY, 0, category, Text::of_c(text)) }
    CORE 13 name_category_w(category: u32, text: *const Wchar) { last; label_wide(OF_CATEGORY, 0, category, text) }
    CORE 14 name_thread_a(thread: u32, text: *const c_char) { last; label(OF_THREAD, 0, thread, Text::of_c(text)) }
    CORE 15 name_thread_w(thread: u32, text: *const Wchar) { last; label_wide(OF_THREAD, 0, thread, text) }
    CORE2 1 domain_mark(domain: Handle, attributes: *const Attributes) { last; mark(number_of(domain), attributes) }
    CORE2 2 domain_start(domain: Handle, attributes: *const Attributes) -> u64 { with; |id| start(number_of(domain), attributes, id) }
    CORE2 3 domain_end(domain: Handle, id: u64) { last safe; end(number_of(domain), id) }
    CORE2 4 domain_push(domain: Handle, attributes: *const Attributes) -> c_int { first; push(number_of(domain), attributes) }
    CORE2 5 domain_pop(domain: Handle) -> c_int { last safe; pop(number_of(domain)) }
    CORE2 8 domain_name_category_a(domain: Handle, category: u32, text: *const c_char) {
        last; label(OF_CATEGORY, number_of(domain), category, Text::of_c(text))
    }
    CORE2 9 domain_name_category_w(domain: Handle, category: u32, text: *const Wchar) {
        last; label_wide(OF_CATEGORY, number_of(domain), category, text)
    }
    CORE2 10 register_a(domain: Handle, text: *const c_char) -> Handle { with; |handle| string(handle, Text::of_c(text)) }
    CORE2 11 register_w(domain: Handle, text: *const Wchar) -> Handle { with; |handle| string_wide(handle, text) }
    CORE2 12 create_a(text: *const c_char) -> Handle { with; |handle| domain(handle, Text::of_c(text)) }
    CORE2 13 create_w(text: *const Wchar) -> Handle { with; |handle| domain_wide(handle, text) }
}

fn name_of(text: Option<Text<'_>>) -> Name<'_> {
    text.map_or(Name::None, Name::Text)
}

/// # Safety
///
/// `message` is null or a terminated string for as long as the call lasts.
#[inline]
unsafe fn name<'a>(message: *const c_char) -> Name<'a> {
    // SAFETY: as the caller says.
    name_of(unsafe { Text::of_c(message) })
}

/// What a push or a pop answers without a profiler: the range's depth from 0, or that there is
/// none.
#[inline]
fn depth(depth: Option<u32>) -> c_int {
    depth.map_or(-1, u32::cast_signed)
}

#[inline]
fn record(kind: Kind, domain: u8, name: Name<'_>, extras: Extras) -> c_int {
    depth(recorder::get().and_then(|recorder| event::record(recorder, kind, domain, name, extras)))
}

/// # Safety
///
/// As of [`name`].
#[inline]
unsafe fn plain(kind: Kind, message: *const c_char) -> c_int {
    // SAFETY: as the caller says.
    record(kind, 0, unsafe { name(message) }, Extras::default())
}

/// # Safety
///
/// `message` is null or a terminated string.
#[inline(never)]
unsafe fn wide(kind: Kind, message: *const Wchar) -> c_int {
    // SAFETY: as the caller says.
    let text = unsafe { Wide::of_c(message) };
    record(kind, 0, name_of(text.text()), Extras::default())
}

/// # Safety
///
/// `attributes` is null or what NVTX asks its callers for.
#[inline(never)]
unsafe fn mark(domain: u8, attributes: *const Attributes) {
    // SAFETY: as the caller says.
    unsafe { attributes::read(attributes, |name, extras| record(Kind::Mark, domain, name, extras)) };
}

/// # Safety
///
/// As of [`mark`].
#[inline(never)]
unsafe fn push(domain: u8, attributes: *const Attributes) -> c_int {
    // SAFETY: as the caller says.
    unsafe { attributes::read(attributes, |name, extras| record(Kind::Push, domain, name, extras)) }
}

#[inline]
fn pop(domain: u8) -> c_int {
    record(Kind::Pop, domain, Name::None, Extras::default())
}

/// # Safety
///
/// As of [`mark`].
unsafe fn start(domain: u8, attributes: *const Attributes, theirs: Option<u64>) -> u64 {
    // SAFETY: as the caller says.
    unsafe { attributes::read(attributes, |name, extras| start_in(domain, name, extras, theirs)) }
}

/// # Safety
///
/// As of [`wide`].
#[inline(never)]
unsafe fn start_wide(message: *const Wchar, theirs: Option<u64>) -> u64 {
    // SAFETY: as the caller says.
    let text = unsafe { Wide::of_c(message) };
    start_named(name_of(text.text()), theirs)
}

fn start_named(name: Name<'_>, theirs: Option<u64>) -> u64 {
    start_in(0, name, Extras::default(), theirs)
}

#[inline(never)]
fn start_in(domain: u8, name: Name<'_>, extras: Extras, theirs: Option<u64>) -> u64 {
    let Some(id) = theirs.or_else(|| claim::unique(recorder::get()?)) else {
        return 0;
    };
    let range = Some(id);
    record(Kind::Start, domain, name, Extras { range, ..extras });
    id
}

#[inline(never)]
fn end(domain: u8, id: u64) {
    let range = Some(id);
    record(
        Kind::End,
        domain,
        Name::None,
        Extras {
            range,
            ..Extras::default()
        },
    );
}

#[inline(never)]
fn label(kind: u8, domain: u8, number: u32, text: Option<Text<'_>>) {
    if let (Some(recorder), Some(text)) = (recorder::get(), text) {
        labels::name(&recorder.memory, kind, domain, number, &text);
    }
}

/// # Safety
///
/// As of [`wide`].
#[inline(never)]
unsafe fn label_wide(kind: u8, domain: u8, number: u32, text: *const Wchar) {
    // SAFETY: as the caller says.
    let text = unsafe { Wide::of_c(text) };
    label(kind, domain, number, text.text());
}

/// The number of a domain's handle; none is the default domain.
#[inline]
fn number_of(handle: Handle) -> u8 {
    if handle.is_null() {
        return 0;
    }
    let number = DOMAINS.number(handle).and_then(|number| u8::try_from(number).ok());
    number.unwrap_or(OTHER_DOMAIN)
}

#[inline(never)]
fn domain(theirs: Option<Handle>, text: Option<Text<'_>>) -> Handle {
    let number = recorder::get()
        .zip(text)
        .map_or(OTHER_DOMAIN, |(recorder, text)| labels::domain(&recorder.memory, &text));
    handle(&DOMAINS, theirs, u32::from(number))
}

/// # Safety
///
/// As of [`wide`].
#[inline(never)]
unsafe fn domain_wide(theirs: Option<Handle>, text: *const Wchar) -> Handle {
    // SAFETY: as the caller says.
    let text = unsafe { Wide::of_c(text) };
    domain(theirs, text.text())
}

/// # Safety
///
/// As of [`wide`].
#[inline(never)]
unsafe fn string_wide(theirs: Option<Handle>, text: *const Wchar) -> Handle {
    // SAFETY: as the caller says.
    let text = unsafe { Wide::of_c(text) };
    string(theirs, text.text())
}

#[inline(never)]
fn string(theirs: Option<Handle>, text: Option<Text<'_>>) -> Handle {
    let number = recorder::get()
        .zip(text)
        .map_or(0, |(recorder, text)| names::number(&recorder.memory, &text));
    handle(&STRINGS, theirs, u32::from(number))
}

/// The program's handle: the profiler's, whose number is noted, or our own.
fn handle<const ENTRIES: usize>(table: &Handles<ENTRIES>, theirs: Option<Handle>, number: u32) -> Handle {
    let Some(theirs) = theirs else {
        return handles::own(number);
    };
    if !theirs.is_null()
        && !table.note(theirs, number)
        && let Some(recorder) = recorder::get()
    {
        recorder.memory.count(Count::HandlesWithoutEntry);
    }
    theirs
}
