//! Our thread: it sleeps until the agent wants something, and makes every call of CUPTI.

use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::Ordering;

use flopwatch_injected::clock::{MONOTONIC, REALTIME, nanoseconds};
use flopwatch_injected::kernel;
use flopwatch_tracer_file::header::WANTED_AT;
use flopwatch_tracer_file::process::{Phase, Reason};
use flopwatch_tracer_file::wanted::{TICK_NS, Wanted};

use crate::orders::{Window, wanted};
use crate::session::Session;
use crate::slot::Refusal;
use crate::tracer::{self, Tracer};

/// How long it sleeps at most, where nobody wakes it: file systems without a shared futex.
const LONGEST_SLEEP_NS: u64 = 250_000_000;
/// How much of its time a window's ticks may take: one part of so many.
const TICK_SHARE: u64 = 20;
/// Longest time between two ticks of a window, however long they take.
const LONGEST_TICK_NS: u64 = 1_000_000_000;
/// How long what was refused is not tried again by orders that go on: a try looks at all mappings
/// of the process, and such orders come each second.
const REFUSAL_NS: u64 = 30_000_000_000;

/// The thread's first function. It never returns, for the end of a thread runs what libraries
/// have for it.
pub(crate) extern "C" fn main(_: *mut c_void) -> *mut c_void {
    kernel::name_thread(c"flopwatch-cuda");
    let Some(tracer) = tracer::get() else {
        return ptr::null_mut();
    };
    let mut service = Service {
        tracer,
        seen: 0,
        state: State::Idle,
    };
    loop {
        let word = service.look();
        if let State::Stuck = service.state {
            service.sleep(word, u64::MAX);
        } else {
            let now = nanoseconds(MONOTONIC);
            let until = service.act(now).unwrap_or(u64::MAX);
            service.sleep(word, until);
        }
    }
}

/// What the thread does.
enum State {
    Idle,
    Waiting {
        window: Window,
        wanted: Wanted,
    },
    Recording {
        session: Session,
        /// The order that it began with.
        wanted: Wanted,
        end_ns: u64,
        tick_ns: u64,
    },
    Refused {
        refusal: Refusal,
        /// The order that was refused.
        wanted: Wanted,
        until_ns: u64,
    },
    Stuck,
}

struct Service {
    tracer: &'static Tracer,
    /// The order that was looked at last.
    seen: u32,
    state: State,
}

impl Service {
    /// Follows a new order, and gives the word that says which one it is.
    fn look(&mut self) -> u32 {
        let file = &self.tracer.file;
        let word = file.half(WANTED_AT).map_or(0, |word| word.load(Ordering::Acquire));
        if word == self.seen || matches!(self.state, State::Stuck) {
            return word;
        }
        if let Some(wanted) = wanted(file) {
            self.seen = wanted.generation;
            if self.goes_on(&wanted) || self.stays_refused(&wanted) {
                return word;
            }
            self.end();
            let window = Window::of(&wanted, nanoseconds(MONOTONIC), nanoseconds(REALTIME));
            match window {
                _ if matches!(self.state, State::Stuck) => {}
                Some(window) => {
                    self.enter(Phase::Waiting);
                    self.state = State::Waiting { window, wanted };
                }
                None => self.enter(Phase::Idle),
            }
        }
        word
    }

    /// Whether what is recorded goes on by a new order, which only moves its end: nothing is asked
    /// of CUPTI for it.
    fn goes_on(&mut self, next: &Wanted) -> bool {
        let State::Recording { wanted, end_ns, .. } = &mut self.state else {
            return false;
        };
        let now = nanoseconds(MONOTONIC);
        let window = Window::of(next, now, nanoseconds(REALTIME)).filter(|window| window.begin_ns <= now);
        let Some(window) = window.filter(|_| next.goes_on_from(wanted)) else {
            return false;
        };
        *end_ns = window.end_ns;
        self.enter(Phase::Recording);
        true
    }

    /// Whether a new order goes on with one that was refused a short time ago, and so is too.
    fn stays_refused(&self, next: &Wanted) -> bool {
        let State::Refused {
            refusal,
            wanted,
            until_ns,
        } = &self.state
        else {
            return false;
        };
        let is_so = nanoseconds(MONOTONIC) < *until_ns && next.goes_on_from(wanted);
        if is_so {
            self.tracer.slot.refuse(*refusal, self.seen);
        }
        is_so
    }

    /// Does what is due, and gives when the next thing is; `None` for nothing.
    fn act(&mut self, now: u64) -> Option<u64> {
        match &mut self.state {
            State::Idle | State::Refused { .. } | State::Stuck => None,
            State::Waiting { window, wanted } => {
                let (window, wanted) = (*window, *wanted);
                if now < window.begin_ns {
                    return Some(window.begin_ns);
                }
                self.begin(window, &wanted)
            }
            State::Recording {
                session,
                end_ns,
                tick_ns,
                ..
            } => {
                if now >= *end_ns {
                    self.end();
                    return None;
                }
                if now >= *tick_ns {
                    if let Err(refusal) = session.tick(now) {
                        self.refuse(refusal);
                        return None;
                    }
                    let then = nanoseconds(MONOTONIC);
                    *tick_ns = then.saturating_add(pause_behind(then.saturating_sub(now)));
                }
                Some((*end_ns).min(*tick_ns))
            }
        }
    }

    fn begin(&mut self, window: Window, wanted: &Wanted) -> Option<u64> {
        self.enter(Phase::Opening);
        match Session::begin(self.tracer, wanted) {
            Ok(session) => {
                let tick_ns = nanoseconds(MONOTONIC).saturating_add(TICK_NS);
                self.enter(Phase::Recording);
                self.state = State::Recording {
                    session,
                    wanted: *wanted,
                    end_ns: window.end_ns,
                    tick_ns,
                };
                Some(tick_ns.min(window.end_ns))
            }
            Err(refusal) => {
                self.refuse(refusal);
                if !matches!(self.state, State::Stuck) {
                    self.state = State::Refused {
                        refusal,
                        wanted: *wanted,
                        until_ns: nanoseconds(MONOTONIC).saturating_add(REFUSAL_NS),
                    };
                }
                None
            }
        }
    }

    /// Ends what runs or waits.
    fn end(&mut self) {
        let before = core::mem::replace(&mut self.state, State::Idle);
        match before {
            State::Recording { session, .. } => {
                self.enter(Phase::Ending);
                match session.end() {
                    Ok(()) => self.enter(Phase::Idle),
                    Err(refusal) => self.refuse(refusal),
                }
            }
            State::Waiting { .. } => self.enter(Phase::Idle),
            State::Idle | State::Refused { .. } => {}
            State::Stuck => self.state = State::Stuck,
        }
    }

    fn enter(&self, phase: Phase) {
        self.tracer.slot.enter(phase, self.seen);
    }

    fn refuse(&mut self, refusal: Refusal) {
        self.state = if refusal.reason == Reason::Stuck {
            State::Stuck
        } else {
            State::Idle
        };
        self.tracer.slot.refuse(refusal, self.seen);
    }

    /// Sleeps until a time, or until the order is another one than `seen`.
    fn sleep(&self, seen: u32, until: u64) {
        let left = until.saturating_sub(nanoseconds(MONOTONIC)).min(LONGEST_SLEEP_NS);
        if let Some(word) = self.tracer.file.half(WANTED_AT).filter(|_| left > 0) {
            kernel::sleep_on(word, seen, left);
        }
    }
}

/// How long is waited behind a tick that took so long: one that CUPTI takes long over comes less
/// often.
const fn pause_behind(took_ns: u64) -> u64 {
    let pause = took_ns.saturating_mul(TICK_SHARE);
    if pause < TICK_NS {
        TICK_NS
    } else if pause > LONGEST_TICK_NS {
        LONGEST_TICK_NS
    } else {
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_that_takes_long_comes_less_often() {
        let ms = 1_000_000;
        for (took, expected) in [(0, 50), (1, 50), (10, 200), (49, 980), (2000, 1000)] {
            assert_eq!(pause_behind(took * ms), expected * ms, "{took} ms");
        }
        assert_eq!(pause_behind(u64::MAX), LONGEST_TICK_NS);
    }
}
