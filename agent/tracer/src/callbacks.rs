//! What CUPTI calls, on threads of its own or of the program: for a buffer, and with one. A child
//! of `fork` does nothing here but hand out memory that is thrown away.
#![allow(unsafe_code, reason = "addresses that another library hands over")]

use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};

use flopwatch_injected::cache;
use flopwatch_injected::clock::{MONOTONIC, nanoseconds};
use flopwatch_tracer_file::process::{Count, MAX_CALL_NS, PHASE_AT, Phase};
use flopwatch_tracer_file::record::{Call, Kernel, Record};

use crate::buffers::{self, Known};
use crate::convert::{LeftOut, Sink, convert};
use crate::cupti::{Cupti, NO_MORE};
use crate::names::Names;
use crate::segments::Writer;
use crate::tracer::{self, Tracer};
use crate::{call_names, session};

static IS_STUCK: AtomicBool = AtomicBool::new(false);

/// Whether a call of CUPTI took too long, or takes too long now: then nothing is called any more.
pub(crate) fn is_stuck(tracer: &Tracer) -> bool {
    let since = tracer.slot.call_since();
    let takes_too_long = since != 0 && nanoseconds(MONOTONIC).saturating_sub(since) > MAX_CALL_NS;
    if takes_too_long {
        set_stuck(tracer);
    }
    IS_STUCK.load(Ordering::Relaxed)
}

/// Remembers that the process is stuck, and says so.
pub(crate) fn set_stuck(tracer: &Tracer) {
    IS_STUCK.store(true, Ordering::Relaxed);
    tracer.slot.set(PHASE_AT, Phase::Stuck.bits());
}

/// What CUPTI calls for a buffer.
pub(crate) extern "C" fn requested(buffer: *mut *mut u8, bytes: *mut usize, records: *mut usize) {
    let given = match tracer::get() {
        Some(tracer) if !is_stuck(tracer) => {
            let given = buffers::take(nanoseconds(MONOTONIC));
            if let Known::Pool(_) = buffers::known(given.begin) {
                tracer.slot.lend();
            }
            given
        }
        _ => buffers::discarded(),
    };
    // SAFETY: CUPTI hands over places to write to, or null.
    unsafe {
        if let Some(place) = buffer.as_mut() {
            *place = given.begin;
        }
        if let Some(place) = bytes.as_mut() {
            *place = given.bytes;
        }
        if let Some(place) = records.as_mut() {
            // As many as fit.
            *place = 0;
        }
    }
}

/// What CUPTI calls with a buffer.
pub(crate) extern "C" fn completed(_: *mut c_void, _: u32, buffer: *mut u8, _: usize, filled: usize) {
    let Some(tracer) = tracer::get() else { return };
    match buffers::known(buffer) {
        Known::Pool(at) => {
            let filled = filled.min(buffers::BYTES);
            if let Some(cupti) = session::cupti().filter(|_| !is_stuck(tracer)) {
                read(tracer, cupti, at, buffer, filled);
            } else {
                discard(tracer, filled);
            }
            buffers::give_back(at);
            tracer.slot.take_back();
        }
        Known::Discarded => discard(tracer, filled),
        Known::Foreign => tracer.slot.count(Count::BuffersForeign, 1),
    }
}

fn discard(tracer: &Tracer, filled: usize) {
    tracer.slot.count(Count::BuffersDiscarded, 1);
    tracer
        .slot
        .count(Count::BytesDiscarded, u64::try_from(filled).unwrap_or(0));
}

/// Bytes by which a buffer's records are brought near before they are read. CUPTI has written them
/// on another processor, mostly.
const BYTES_AHEAD: usize = 1024;

/// Takes the records of a buffer to the file.
struct ToFile {
    writer: Writer,
    names: Names,
}

impl Sink for ToFile {
    #[inline]
    fn name(&mut self, address: u64) -> u32 {
        self.names.number(address)
    }

    #[inline]
    fn kernel(&mut self, kernel: &Kernel) {
        self.writer.kernel(kernel);
    }

    #[inline]
    fn call(&mut self, call: &Call) {
        call_names::note(call.domain, call.function);
        self.writer.call(call);
    }

    fn other(&mut self, record: &Record) {
        self.writer.put(record);
    }
}

/// Records that came to nothing, by why.
#[derive(Default)]
struct Lost {
    unknown: u64,
    timeless: u64,
    malformed: u64,
}

impl Lost {
    #[cold]
    fn count(&mut self, why: LeftOut) {
        let count = match why {
            LeftOut::Unknown => &mut self.unknown,
            LeftOut::Timeless => &mut self.timeless,
            LeftOut::Short => &mut self.malformed,
        };
        *count = count.wrapping_add(1);
    }
}

/// Writes the records of a buffer to the file.
fn read(tracer: &'static Tracer, cupti: &Cupti, at: usize, buffer: *mut u8, filled: usize) {
    let mut to_file = ToFile {
        writer: Writer::new(tracer),
        names: Names::new(tracer),
    };
    let mut lost = Lost::default();
    let (mut record, mut begin) = (ptr::null_mut(), None);
    loop {
        // SAFETY: the buffer was completed with so many bytes, and the record is of the last call.
        let next = unsafe { cupti.next(buffer, filled, record) };
        let place = next.map(|next| next.addr().wrapping_sub(buffer.addr()));
        // A record lies behind the one before it, so this ends.
        let is_behind = |place: usize| place < filled && begin.is_none_or(|begin| place > begin);
        let end = place.ok().filter(|place| is_behind(*place));
        if let Some(begin) = begin {
            // SAFETY: the buffer was completed, and is given back behind this.
            let bytes = unsafe { buffers::part(at, begin, end.unwrap_or(filled)) };
            if let Err(why) = convert(bytes.unwrap_or_default(), &mut to_file) {
                lost.count(why);
            }
        }
        let (Some(end), Ok(next)) = (end, next) else {
            if next != Err(NO_MORE) {
                lost.count(LeftOut::Short);
            }
            break;
        };
        // No further than CUPTI has filled it: what lies behind may be another thread's.
        if end.wrapping_add(BYTES_AHEAD) < filled {
            cache::prefetch(next.addr().wrapping_add(BYTES_AHEAD));
        }
        (record, begin) = (next, Some(end));
    }
    to_file.writer.end();
    tracer.slot.count(Count::RecordsUnknown, lost.unknown);
    tracer.slot.count(Count::RecordsTimeless, lost.timeless);
    tracer.slot.count(Count::RecordsMalformed, lost.malformed);
}
