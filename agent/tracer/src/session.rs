//! A window: how CUPTI is opened, enabled, asked for what it has, and left. Our own thread makes
//! every call here, one at a time, and each is timed.

use core::sync::atomic::AtomicU32;

use flopwatch_injected::Path;
use flopwatch_injected::clock::{MONOTONIC, REALTIME, nanoseconds};
use flopwatch_injected::kernel;
use flopwatch_injected::loader::Library;
use flopwatch_injected::once::Once;
use flopwatch_tracer_file::Moment;
use flopwatch_tracer_file::process::{
    CUPTI_VERSION_AT, Count, DRIVER_VERSION_AT, Holder, KINDS_AT, MAX_CALL_NS, Reason,
};
use flopwatch_tracer_file::record::{CallName, Record};
use flopwatch_tracer_file::wanted::{GraphLevel, Kinds, Wanted};

use crate::cupti::{Cupti, MULTIPLE_SUBSCRIBERS, POOL_LIMIT, Subscriber, exports};
use crate::kinds::{ENABLED, is_wanted};
use crate::libraries::Libraries;
use crate::names::{self, Names};
use crate::rules::{self, NODES_FROM, Origin};
use crate::segments::{self, Writer};
use crate::slot::Refusal;
use crate::tracer::Tracer;
use crate::{buffers, call_names, callbacks, driver};

/// The most buffers on the device that CUPTI keeps, of 3.2 MB each; it would keep 250.
const DEVICE_BUFFERS: usize = 8;
/// How long is waited behind each request for the buffers that are out, in ms: 255 in all.
const PAUSES_MS: [u64; 8] = [1, 2, 4, 8, 16, 32, 64, 128];
const PER_MILLISECOND: u64 = 1_000_000;
/// Between two moments that are told, in ns.
const MOMENT_NS: u64 = 1_000_000_000;
/// Reads of the clocks close to each other, of which the closest is taken.
const READINGS: usize = 3;

/// The one libcupti of the process.
static CUPTI: Once<Cupti> = Once::new();

/// The libcupti that was opened, where one was.
pub(crate) fn cupti() -> Option<&'static Cupti> {
    CUPTI.get()
}

/// A window that is recorded.
pub(crate) struct Session {
    tracer: &'static Tracer,
    cupti: &'static Cupti,
    subscriber: Subscriber,
    /// Places in [`ENABLED`] of what is enabled, a bit each.
    enabled: u32,
    /// When the clocks were told last, on the monotonic one.
    told_ns: u64,
}

impl Session {
    /// Begins to record.
    pub(crate) fn begin(tracer: &'static Tracer, wanted: &Wanted) -> Result<Self, Refusal> {
        let driver = driver::version().ok_or(Reason::NoDriver)?;
        tracer.slot.set(DRIVER_VERSION_AT, driver);
        let libraries = Libraries::of_process().ok_or(Reason::NoCupti)?;
        let cupti = open(tracer, driver, &libraries)?;
        if !buffers::prepare() {
            return Err(Reason::NoMemory.into());
        }
        let version = ask(tracer, || cupti.version())?;
        tracer.slot.set(CUPTI_VERSION_AT, version);
        if wanted.graphs == GraphLevel::Nodes && version < NODES_FROM {
            return Err(Reason::NodesTooOld.into());
        }
        let subscriber = ask(tracer, || cupti.subscribe()).map_err(|refusal| match refusal.result {
            MULTIPLE_SUBSCRIBERS => Refusal {
                reason: Reason::Held,
                holder: libraries.holder(),
                ..refusal
            },
            _ => refusal,
        })?;
        let mut session = Self {
            tracer,
            cupti,
            subscriber,
            enabled: 0,
            told_ns: nanoseconds(MONOTONIC),
        };
        match session.enable(wanted) {
            Ok(()) => Ok(session),
            Err(refusal) => {
                // Where leaving fails too, the first failure is the one that says why.
                session.leave().ok();
                Err(refusal)
            }
        }
    }

    fn enable(&mut self, wanted: &Wanted) -> Result<(), Refusal> {
        let (tracer, cupti) = (self.tracer, self.cupti);
        call_names::forget();
        names::forget();
        ask(tracer, || cupti.set_size(POOL_LIMIT, DEVICE_BUFFERS))?;
        ask(tracer, || cupti.register(callbacks::requested, callbacks::completed))?;
        self.tell_moment()?;
        let mut recorded = Kinds::default();
        let mut failed = Refusal::from(Reason::NoKind);
        for (place, kind) in (0_u32..).zip(&ENABLED) {
            if !is_wanted(kind, wanted.kinds, wanted.graphs) {
                continue;
            }
            match ask(tracer, || cupti.enable(kind.kind)) {
                Ok(()) => {
                    self.enabled |= 1_u32.wrapping_shl(place);
                    recorded = recorded.with(kind.wanted);
                }
                Err(refusal) if refusal.reason == Reason::Cupti && kind.wanted != Kinds::KERNELS => failed = refusal,
                Err(refusal) => return Err(refusal),
            }
        }
        tracer.slot.set(KINDS_AT, recorded.bits());
        if recorded.is_empty() { Err(failed) } else { Ok(()) }
    }

    /// What is to be done at each tick, which is now: buffers that are complete come, with names of
    /// functions; once a second the clocks are told.
    pub(crate) fn tick(&mut self, now: u64) -> Result<(), Refusal> {
        if now.saturating_sub(self.told_ns) >= MOMENT_NS {
            self.told_ns = now;
            self.tell_moment()?;
        }
        well(ask(self.tracer, || self.cupti.flush()))?;
        self.tell_calls()?;
        self.count_dropped()
    }

    /// Ends the window. Buffers that CUPTI does not give back in time are counted; their records
    /// come when it does.
    pub(crate) fn end(mut self) -> Result<(), Refusal> {
        self.disable()?;
        for pause in PAUSES_MS {
            well(ask(self.tracer, || self.cupti.flush()))?;
            if buffers::given() == 0 {
                break;
            }
            pause_for(pause.wrapping_mul(PER_MILLISECOND));
        }
        self.tracer.slot.count(Count::BuffersOpen, buffers::given());
        self.tell_calls()?;
        self.count_dropped()?;
        self.tracer.slot.count(Count::Windows, 1);
        let tracer = self.tracer;
        let left = self.leave();
        segments::close(tracer);
        left
    }

    fn disable(&mut self) -> Result<(), Refusal> {
        for (place, kind) in (0_u32..).zip(&ENABLED) {
            let bit = 1_u32.wrapping_shl(place);
            if self.enabled & bit != 0 {
                self.enabled &= !bit;
                well(ask(self.tracer, || self.cupti.disable(kind.kind)))?;
            }
        }
        Ok(())
    }

    fn leave(mut self) -> Result<(), Refusal> {
        self.disable()?;
        let (cupti, subscriber) = (self.cupti, self.subscriber);
        well(ask(self.tracer, || cupti.unsubscribe(subscriber))).map(drop)
    }

    fn count_dropped(&self) -> Result<(), Refusal> {
        let dropped = well(ask(self.tracer, || self.cupti.dropped()))?;
        let dropped = u64::try_from(dropped.unwrap_or(0)).unwrap_or(0);
        self.tracer.slot.count(Count::Dropped, dropped);
        Ok(())
    }

    /// Tells what the clocks say, read close to each other.
    fn tell_moment(&self) -> Result<(), Refusal> {
        let mut best = (u64::MAX, Moment::default());
        for _ in 0..READINGS {
            let before = nanoseconds(MONOTONIC);
            let Some(cupti_ns) = well(ask(self.tracer, || self.cupti.timestamp()))? else {
                return Ok(());
            };
            let monotonic = nanoseconds(MONOTONIC);
            let ahead = nanoseconds(REALTIME).wrapping_sub(nanoseconds(MONOTONIC));
            let took = monotonic.saturating_sub(before);
            if took < best.0 {
                let monotonic_ns = before.wrapping_add(took >> 1);
                let realtime_ns = monotonic_ns.wrapping_add(ahead);
                best = (
                    took,
                    Moment {
                        cupti_ns,
                        monotonic_ns,
                        realtime_ns,
                    },
                );
            }
        }
        self.tracer.slot.set_moment(best.1);
        Ok(())
    }

    /// Tells the names of functions that were called for the first time.
    fn tell_calls(&self) -> Result<(), Refusal> {
        let (mut writer, names) = (Writer::new(self.tracer), Names::new(self.tracer));
        let told = call_names::tell(|domain, function| {
            let address = well(ask(self.tracer, || self.cupti.callback_name(domain, function)))?;
            let name = names.number(u64::try_from(address.unwrap_or(0)).unwrap_or(0));
            writer.put(&Record::CallName(CallName { function, name, domain }));
            Ok(())
        });
        writer.end();
        told
    }
}

/// Opens the libcupti that may be called, and no second one.
fn open(tracer: &Tracer, driver: u32, libraries: &Libraries) -> Result<&'static Cupti, Refusal> {
    let own;
    let origin = rules::choose(libraries).map_err(|reason| Refusal {
        reason,
        result: 0,
        holder: libraries.profiler,
    })?;
    let mapped = libraries.cupti.as_ref().filter(|_| origin == Origin::Mapped);
    let (path, library) = if let Some(path) = mapped {
        (path, timed(tracer, || Library::loaded(path.text()))?)
    } else {
        own = own_copy(tracer, driver).ok_or(Reason::NoCupti)?;
        (&own, timed(tracer, || Library::open(own.text()))?)
    };
    let library = library.ok_or(Reason::NoCupti)?;
    rules::check(driver, path.bytes(), |function| exports(library, function))?;
    if let Some(known) = CUPTI.get() {
        return Ok(known);
    }
    let cupti = Cupti::of(library).ok_or(Reason::MissingFunction)?;
    CUPTI.begin(|| Some(cupti)).ok_or(Reason::MissingFunction.into())
}

/// The path of our copy for a driver; `None` where there is none.
fn own_copy(tracer: &Tracer, driver: u32) -> Option<Path> {
    let folder = tracer.own.bytes();
    let name = rules::own_name(driver).filter(|_| !folder.is_empty())?;
    Path::of(&[folder, name])
}

/// Sleeps.
fn pause_for(ns: u64) {
    static NOBODY_WAKES: AtomicU32 = AtomicU32::new(0);
    kernel::sleep_on(&NOBODY_WAKES, 0, ns);
}

/// Makes a call, and notes since when. One that takes too long is the last one.
fn timed<T>(tracer: &Tracer, call: impl FnOnce() -> T) -> Result<T, Refusal> {
    if callbacks::is_stuck(tracer) {
        return Err(Reason::Stuck.into());
    }
    let since = nanoseconds(MONOTONIC).max(1);
    tracer.slot.set_call_since(since);
    let answer = call();
    tracer.slot.set_call_since(0);
    if nanoseconds(MONOTONIC).saturating_sub(since) > MAX_CALL_NS {
        callbacks::set_stuck(tracer);
    }
    if callbacks::is_stuck(tracer) {
        return Err(Reason::Stuck.into());
    }
    Ok(answer)
}

/// Asks CUPTI for something.
fn ask<T>(tracer: &Tracer, call: impl FnOnce() -> Result<T, u32>) -> Result<T, Refusal> {
    timed(tracer, call)?.map_err(|result| Refusal {
        reason: Reason::Cupti,
        result,
        holder: Holder::None,
    })
}

/// An answer that may be missing: CUPTI's own failure is nothing to end for, a stuck process is.
fn well<T>(answer: Result<T, Refusal>) -> Result<Option<T>, Refusal> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(refusal) if refusal.reason == Reason::Cupti => Ok(None),
        Err(refusal) => Err(refusal),
    }
}
