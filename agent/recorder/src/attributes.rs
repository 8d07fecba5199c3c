//! The attributes of an event, as NVTX lays them out in memory.
#![allow(unsafe_code, reason = "the program's memory")]

use core::ffi::{c_char, c_void};

use crate::handles::STRINGS;
use crate::text::{Text, Wide};

const ASCII: i32 = 1;
const UNICODE: i32 = 2;
const REGISTERED: i32 = 3;

/// As in `nvToolsExt.h`, all of whose versions agree on it.
#[repr(C)]
#[derive(Clone, Copy)]
struct Raw {
    version: u16,
    size: u16,
    category: u32,
    color_type: i32,
    color: u32,
    payload_type: i32,
    reserved: i32,
    payload: u64,
    message_type: i32,
    padding: i32,
    message: *mut c_void,
}

/// Attributes of an event; opaque to those that pass them on.
#[repr(C)]
pub(crate) struct Attributes(Raw);

/// What stands beside the name of an event.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Extras {
    /// A value with its type as NVTX numbers them.
    pub(crate) payload: Option<(u64, u16)>,
    /// Colour and category, where there is either.
    pub(crate) style: Option<u64>,
    /// Which range it is of.
    pub(crate) range: Option<u64>,
}

/// The name of an event.
#[derive(Clone, Copy)]
pub(crate) enum Name<'a> {
    None,
    Text(Text<'a>),
    /// A registered string with its number in the file.
    Number(u16),
}

/// Hands name and extras of `attributes` to `with`.
///
/// # Safety
///
/// `attributes` is null or what NVTX asks its callers for.
pub(crate) unsafe fn read<T>(attributes: *const Attributes, with: impl FnOnce(Name<'_>, Extras) -> T) -> T {
    // SAFETY: it is null or points to at least version and size.
    let size = unsafe { attributes.cast::<u16>().add(1).as_ref() }.map_or(0, |size| usize::from(*size));
    if size < size_of::<Raw>() {
        return with(Name::None, Extras::default());
    }
    // SAFETY: the caller's structure is as long as it says, and that is as long as ours.
    let raw = unsafe { attributes.cast::<Raw>().read() };
    let color = if raw.color_type == 0 { 0 } else { raw.color };
    let style = u64::from(color) | (u64::from(raw.category) << 32);
    let payload_type = u16::try_from(raw.payload_type).unwrap_or(0);
    let extras = Extras {
        payload: (payload_type != 0).then_some((raw.payload, payload_type)),
        style: (style != 0).then_some(style),
        range: None,
    };
    match raw.message_type {
        ASCII => {
            // SAFETY: a message of that type is such a string, for as long as the call lasts.
            let text = unsafe { Text::of_c(raw.message.cast::<c_char>()) };
            with(text.map_or(Name::None, Name::Text), extras)
        }
        UNICODE => {
            // SAFETY: a message of that type is such a string.
            let wide = unsafe { Wide::of_c(raw.message.cast()) };
            with(wide.text().map_or(Name::None, Name::Text), extras)
        }
        REGISTERED => {
            let number = STRINGS
                .number(raw.message)
                .and_then(|number| u16::try_from(number).ok());
            with(number.map_or(Name::None, Name::Number), extras)
        }
        _ => with(Name::None, extras),
    }
}
