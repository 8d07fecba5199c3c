//! The slot of a process: who it is, what it does, what it lost. Places are in bytes from the
//! slot's begin.

use crate::bytes::{joined, u32_at, u64_at};
use crate::clock::Moment;
use crate::wanted::Kinds;

/// Slots of the file.
pub const SLOTS: usize = 256;
/// Bytes of a slot.
pub const BYTES: usize = 512;

/// Which claim of the slot this is (upper 32 bits, from 1) and [`TAKEN`] or [`USED`] (lower 32
/// bits), 64 bits in all; 0 while nobody had it.
pub const CLAIM_AT: usize = 0;
/// The process as its container numbers it, 32 bits.
pub const PID_AT: usize = 8;
/// The [`Phase`], 32 bits.
pub const PHASE_AT: usize = 12;
/// When the process began, in the kernel's ticks since the boot, 64 bits.
pub const STARTED_AT: usize = 16;
/// Which order the phase answers, 32 bits.
pub const GENERATION_AT: usize = 24;
/// The [`Reason`], 32 bits.
pub const REASON_AT: usize = 28;
/// CUPTI's own code of what failed, 32 bits; 0 for none.
pub const RESULT_AT: usize = 32;
/// What `cuptiGetVersion` says, 32 bits; 0 until it was asked.
pub const CUPTI_VERSION_AT: usize = 36;
/// What `cuDriverGetVersion` says, 32 bits; 0 until it was asked.
pub const DRIVER_VERSION_AT: usize = 40;
/// The [`Holder`] of CUPTI's subscription, 32 bits.
pub const HOLDER_AT: usize = 44;
/// The [`Kinds`] that are recorded, or that were in the last window, 32 bits.
pub const KINDS_AT: usize = 48;
/// `CLOCK_MONOTONIC` when the call of CUPTI began that the library is in, in ns, 64 bits; 0 for
/// none.
pub const CALL_SINCE_AT: usize = 56;
/// CUPTI's clock at the last moment, 64 bits; written last, and 0 while the others change.
pub const CUPTI_NS_AT: usize = 64;
/// `CLOCK_MONOTONIC` at that moment, 64 bits.
pub const MONOTONIC_NS_AT: usize = 72;
/// `CLOCK_REALTIME` at that moment, 64 bits.
pub const REALTIME_NS_AT: usize = 80;
/// Buffers of the library that CUPTI has at the moment, 64 bits. Of a process that has ended: those
/// whose records went with it.
pub const HELD_AT: usize = 88;
/// The first of the [`Count`]s, 64 bits each.
pub const COUNTS_AT: usize = 128;

/// The state of a slot that is being filled.
pub const TAKEN: u32 = 1;
/// The state of a slot that says of a process what it does.
pub const USED: u32 = 2;

/// The word of a claim of a slot.
pub fn claim(serial: u32, state: u32) -> u64 {
    joined(state, serial)
}

/// How long a call of CUPTI may take, in ns. A process in which one took longer is stuck, and
/// calls CUPTI no more.
pub const MAX_CALL_NS: u64 = 2_000_000_000;

/// Makes an enum of numbers that stand in the file.
macro_rules! numbered {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $number:literal,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name {
            $($(#[$doc])* $variant,)*
        }

        impl $name {
            /// Every value.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// As it stands in the file.
            pub const fn bits(self) -> u32 {
                match self {
                    $(Self::$variant => $number,)*
                }
            }

            /// What stands in the file; `None` for a number that means nothing.
            pub const fn of(bits: u32) -> Option<Self> {
                match bits {
                    $($number => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

numbered! {
    /// What a process does.
    Phase {
        /// It sleeps: nobody asked, or what was asked is over.
        Idle = 0,
        /// It knows of a window that begins later.
        Waiting = 1,
        /// It opens CUPTI.
        Opening = 2,
        /// It records.
        Recording = 3,
        /// It ends a window.
        Ending = 4,
        /// It does not record, for the slot's reason.
        Refused = 5,
        /// A call of CUPTI took too long: it calls no more.
        Stuck = 6,
        /// The process runs another program since, which has a slot of its own.
        Replaced = 7,
    }
}

numbered! {
    /// Why a process does not record.
    Reason {
        /// There is no reason, for it does what it was asked.
        None = 0,
        /// No driver of CUDA is loaded, or it does not say its version.
        NoDriver = 1,
        /// No libcupti is loaded, and there is none of ours for the driver.
        NoCupti = 2,
        /// The libcupti that is loaded is not of the driver's major version.
        OtherMajor = 3,
        /// The libcupti is of a version that ends programs.
        ExcludedVersion = 4,
        /// Two copies of libcupti are loaded.
        TwoCopies = 5,
        /// Another profiler is loaded, which the slot's holder names.
        OtherProfiler = 6,
        /// Another has CUPTI's subscription, whom the slot's holder names.
        Held = 7,
        /// The libcupti lacks a function.
        MissingFunction = 8,
        /// CUPTI answered with the slot's result.
        Cupti = 9,
        /// CUPTI is too old to record the nodes of graphs safely.
        NodesTooOld = 10,
        /// There is no memory for buffers.
        NoMemory = 11,
        /// A call took longer than two seconds.
        Stuck = 12,
        /// None of the wanted kinds is recorded by this CUPTI.
        NoKind = 13,
    }
}

numbered! {
    /// Who has CUPTI's subscription, as the libraries of the process tell.
    Holder {
        /// Nobody, as far as is known.
        None = 0,
        /// Somebody whom no library tells.
        Unknown = 1,
        /// Nsight Systems.
        NsightSystems = 2,
        /// Nsight Compute.
        NsightCompute = 3,
        /// Polar Signals' parcagpu.
        Parcagpu = 4,
        /// PyTorch: its profiler (Kineto), or its monitor.
        Pytorch = 5,
        /// JAX or XLA.
        Jax = 6,
        /// TensorFlow.
        Tensorflow = 7,
        /// A tool that is built with NVIDIA's cupti-python.
        CuptiPython = 8,
    }
}

/// What a process counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// Records that were written.
    Records,
    /// Windows that were recorded.
    Windows,
    /// Records that CUPTI says it dropped.
    Dropped,
    /// Buffers that were thrown away, for the pool was empty.
    BuffersDiscarded,
    /// Bytes of records in them.
    BytesDiscarded,
    /// Buffers that CUPTI had not given back when a window ended.
    BuffersOpen,
    /// Buffers of somebody else that CUPTI gave us.
    BuffersForeign,
    /// Records of kinds that this version does not know.
    RecordsUnknown,
    /// Records without a time, or whose end is before their begin.
    RecordsTimeless,
    /// Records that end before their fields do; the rest of their buffer is left out.
    RecordsMalformed,
    /// Records that found no segment.
    RecordsUnplaced,
    /// Names that found no place, each time that they were looked at.
    NamesUnplaced,
    /// Names whose memory was gone, each time that they were looked at.
    NamesUnread,
}

impl Count {
    /// Every count, in the order of their places.
    pub const ALL: [Self; 13] = [
        Self::Records,
        Self::Windows,
        Self::Dropped,
        Self::BuffersDiscarded,
        Self::BytesDiscarded,
        Self::BuffersOpen,
        Self::BuffersForeign,
        Self::RecordsUnknown,
        Self::RecordsTimeless,
        Self::RecordsMalformed,
        Self::RecordsUnplaced,
        Self::NamesUnplaced,
        Self::NamesUnread,
    ];

    const fn place(self) -> usize {
        match self {
            Self::Records => 0,
            Self::Windows => 1,
            Self::Dropped => 2,
            Self::BuffersDiscarded => 3,
            Self::BytesDiscarded => 4,
            Self::BuffersOpen => 5,
            Self::BuffersForeign => 6,
            Self::RecordsUnknown => 7,
            Self::RecordsTimeless => 8,
            Self::RecordsMalformed => 9,
            Self::RecordsUnplaced => 10,
            Self::NamesUnplaced => 11,
            Self::NamesUnread => 12,
        }
    }

    /// Offset of the count in the slot, in bytes.
    pub const fn at(self) -> usize {
        COUNTS_AT + self.place() * 8
    }
}

const _: () = assert!(COUNTS_AT + Count::ALL.len() * 8 <= BYTES);

/// A process, as its slot says. Nothing of it is certain: the file belongs to the container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    /// Which claim of its slot it is, from 1.
    pub serial: u32,
    /// The process as its container numbers it.
    pub pid: u32,
    /// When it began, in the kernel's ticks since the boot.
    pub started: u64,
    /// What it does.
    pub phase: Phase,
    /// Which order that answers.
    pub generation: u32,
    /// Why it does not record.
    pub reason: Reason,
    /// CUPTI's own code of what failed; 0 for none.
    pub result: u32,
    /// What `cuptiGetVersion` says; 0 where it was not asked.
    pub cupti_version: u32,
    /// What `cuDriverGetVersion` says; 0 where it was not asked.
    pub driver_version: u32,
    /// Who has CUPTI's subscription.
    pub holder: Holder,
    /// What is recorded, or was in the last window.
    pub kinds: Kinds,
    /// `CLOCK_MONOTONIC` when the call of CUPTI began that it is in.
    pub call_since_ns: Option<u64>,
    /// The last moment on its clocks; `None` where it has told none, or was about to.
    pub moment: Option<Moment>,
    /// Buffers that CUPTI has now. Of a process that has ended, their records are missing.
    pub held: u64,
    counts: [u64; Count::ALL.len()],
}

impl Process {
    /// The process of a slot; `None` for a slot that is free, is being filled, or makes no sense.
    pub fn of_bytes(slot: &[u8; BYTES]) -> Option<Self> {
        let (half, word) = (|at| u32_at(slot, at), |at| u64_at(slot, at));
        let serial = half(CLAIM_AT + 4)?;
        if half(CLAIM_AT)? != USED || serial == 0 {
            return None;
        }
        let moment = Moment {
            cupti_ns: word(CUPTI_NS_AT)?,
            monotonic_ns: word(MONOTONIC_NS_AT)?,
            realtime_ns: word(REALTIME_NS_AT)?,
        };
        let mut counts = [0; Count::ALL.len()];
        for (to, count) in counts.iter_mut().zip(Count::ALL) {
            *to = word(count.at())?;
        }
        Some(Self {
            serial,
            pid: half(PID_AT)?,
            started: word(STARTED_AT)?,
            phase: Phase::of(half(PHASE_AT)?)?,
            generation: half(GENERATION_AT)?,
            reason: Reason::of(half(REASON_AT)?)?,
            result: half(RESULT_AT)?,
            cupti_version: half(CUPTI_VERSION_AT)?,
            driver_version: half(DRIVER_VERSION_AT)?,
            holder: Holder::of(half(HOLDER_AT)?)?,
            kinds: Kinds::of(half(KINDS_AT)?),
            call_since_ns: word(CALL_SINCE_AT).filter(|since| *since != 0),
            moment: Some(moment).filter(|moment| moment.cupti_ns != 0),
            held: word(HELD_AT)?,
            counts,
        })
    }

    /// What it counted.
    pub fn count(&self, what: Count) -> u64 {
        self.counts.get(what.place()).copied().unwrap_or(0)
    }

    /// What it does at a time of `CLOCK_MONOTONIC`: one that waits for CUPTI for too long cannot
    /// say itself that it is stuck.
    pub fn phase_at(&self, monotonic_ns: u64) -> Phase {
        match self.call_since_ns {
            Some(since) if monotonic_ns.saturating_sub(since) > MAX_CALL_NS => Phase::Stuck,
            _ => self.phase,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used() -> [u8; BYTES] {
        let mut slot = [0; BYTES];
        slot[CLAIM_AT] = 2;
        slot[CLAIM_AT + 4] = 9;
        slot
    }

    #[test]
    fn a_used_slot_is_a_process_and_any_other_is_none() {
        let mut slot = used();
        slot[Count::NamesUnread.at()] = 5;
        slot[HELD_AT] = 3;
        let process = Process::of_bytes(&slot).unwrap();
        assert_eq!((process.serial, process.phase), (9, Phase::Idle));
        assert_eq!((process.count(Count::NamesUnread), process.held), (5, 3));
        assert_eq!((process.moment, process.call_since_ns), (None, None));
        assert_eq!(Process::of_bytes(&[0; BYTES]), None);
        for (at, byte) in [
            (CLAIM_AT, 1),
            (CLAIM_AT + 4, 0),
            (PHASE_AT, 99),
            (REASON_AT + 3, 1),
            (HOLDER_AT, 200),
        ] {
            let mut slot = used();
            slot[at] = byte;
            assert_eq!(Process::of_bytes(&slot), None, "{at}");
        }
    }

    #[test]
    fn a_process_that_waits_for_cupti_for_long_is_stuck() {
        let mut slot = used();
        slot[CALL_SINCE_AT..][..8].copy_from_slice(&1_000_u64.to_le_bytes());
        let process = Process::of_bytes(&slot).unwrap();
        assert_eq!(process.phase_at(1_000 + MAX_CALL_NS), Phase::Idle);
        assert_eq!(process.phase_at(1_001 + MAX_CALL_NS), Phase::Stuck);
        assert_eq!(process.phase_at(0), Phase::Idle);
    }

    #[test]
    fn counts_have_places_of_their_own() {
        for (at, count) in Count::ALL.into_iter().enumerate() {
            assert_eq!(count.at(), COUNTS_AT + at * 8);
        }
        for phase in Phase::ALL {
            assert_eq!(Phase::of(phase.bits()), Some(*phase));
        }
        assert_eq!(Reason::of(1 << 20), None);
    }
}
