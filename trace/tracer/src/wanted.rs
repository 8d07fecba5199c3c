//! What the agent wants of every process of the container: one value in the header, which the
//! agent writes and the libraries read.
//!
//! The generation stands at both ends. The agent writes everything behind the first four bytes,
//! then these, then wakes whoever sleeps on them: a library that looks meanwhile sees two
//! generations, and keeps to what it knew.

use crate::bytes::{u32_at, u64_at};

/// Bytes of the value.
pub const BYTES: usize = 40;
/// Where the mode is, 32 bits; before it is the generation, 32 bits.
pub const MODE_AT: usize = 4;
/// Where the kinds of records are, 32 bits.
pub const KINDS_AT: usize = 8;
/// Where the level of graphs is, 32 bits.
pub const GRAPHS_AT: usize = 12;
/// Where the time of the begin is, 64 bits.
pub const START_AT: usize = 16;
/// Where the time of the end is, 64 bits.
pub const DEADLINE_AT: usize = 24;
/// Where the generation stands once more, 32 bits.
pub const CHECK_AT: usize = 32;

/// The longest window in ns: a library ends one by itself then, whatever the deadline says.
pub const MAX_WINDOW_NS: u64 = 3_600_000_000_000;

/// How often a library asks CUPTI for what is complete while a window is open, in ns: 20 times a
/// second, and never outside of one.
pub const TICK_NS: u64 = 50_000_000;

/// Whether anything is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Nothing: libcupti is not even opened.
    Off,
    /// Records are written from `start_at_ns` to `deadline_ns`.
    Window,
    /// The same, for as long as somebody wants it: an order that [goes on](Wanted::goes_on_from)
    /// with what is recorded moves the deadline, and nothing ends or begins for it.
    Continuous,
}

impl Mode {
    const fn bits(self) -> u32 {
        match self {
            Self::Off => 0,
            Self::Window => 1,
            Self::Continuous => 2,
        }
    }

    const fn of(bits: u32) -> Option<Self> {
        match bits {
            0 => Some(Self::Off),
            1 => Some(Self::Window),
            2 => Some(Self::Continuous),
            _ => None,
        }
    }
}

/// How launches of CUDA graphs are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GraphLevel {
    /// A launch is one record, from its first node to its last.
    Whole,
    /// Each node is a record: costs far more.
    Nodes,
}

impl GraphLevel {
    const fn bits(self) -> u32 {
        match self {
            Self::Whole => 0,
            Self::Nodes => 1,
        }
    }

    const fn of(bits: u32) -> Option<Self> {
        match bits {
            0 => Some(Self::Whole),
            1 => Some(Self::Nodes),
            _ => None,
        }
    }
}

/// Kinds of records, a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Kinds(u32);

impl Kinds {
    /// Kernels.
    pub const KERNELS: Self = Self(1);
    /// Copies.
    pub const COPIES: Self = Self(1 << 1);
    /// Memsets.
    pub const SETS: Self = Self(1 << 2);
    /// Waits for the GPU.
    pub const SYNCS: Self = Self(1 << 3);
    /// Calls of the runtime.
    pub const RUNTIME: Self = Self(1 << 4);
    /// Calls of the driver.
    pub const DRIVER: Self = Self(1 << 5);
    /// Launches of graphs as wholes; left out where nodes are wanted.
    pub const GRAPHS: Self = Self(1 << 6);
    /// What CUPTI itself took.
    pub const OVERHEAD: Self = Self(1 << 7);
    /// Devices, contexts and streams.
    pub const PLACES: Self = Self(1 << 8);
    /// Identifiers that the program gave its calls.
    pub const CORRELATIONS: Self = Self(1 << 9);
    /// Every kind.
    pub const ALL: Self = Self((1 << 10) - 1);

    /// The bits of a word; those that have no meaning are left out.
    pub const fn of(bits: u32) -> Self {
        Self(bits & Self::ALL.0)
    }

    /// As they stand in the file.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Both together.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of another set are in this one.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// What the agent wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// Which order this is: a library acts on one that it has not seen. 0 for none yet.
    pub generation: u32,
    /// Whether anything is recorded.
    pub mode: Mode,
    /// What is recorded.
    pub kinds: Kinds,
    /// How graphs are recorded.
    pub graphs: GraphLevel,
    /// When to begin, ns of `CLOCK_REALTIME`; a time that is past is now.
    pub start_at_ns: u64,
    /// When to end, ns of `CLOCK_REALTIME`; 0 for [`MAX_WINDOW_NS`] after the begin.
    pub deadline_ns: u64,
}

impl Wanted {
    /// As it stands in the file.
    pub fn to_bytes(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        let words = [self.generation, self.mode.bits(), self.kinds.bits(), self.graphs.bits()];
        let parts = words
            .into_iter()
            .flat_map(u32::to_le_bytes)
            .chain(self.start_at_ns.to_le_bytes())
            .chain(self.deadline_ns.to_le_bytes())
            .chain(self.generation.to_le_bytes());
        for (to, from) in bytes.iter_mut().zip(parts) {
            *to = from;
        }
        bytes
    }

    /// Whether this order has what `before` began go on: both are continuous, of the same records.
    pub fn goes_on_from(&self, before: &Self) -> bool {
        let is_continuous = self.mode == Mode::Continuous && before.mode == Mode::Continuous;
        is_continuous && self.kinds == before.kinds && self.graphs == before.graphs
    }

    /// What stands in the file; `None` where it is being written or has a number without meaning.
    pub fn of_bytes(bytes: &[u8; BYTES]) -> Option<Self> {
        let half = |at| u32_at(bytes, at);
        let generation = half(0)?;
        if half(CHECK_AT)? != generation {
            return None;
        }
        Some(Self {
            generation,
            mode: Mode::of(half(MODE_AT)?)?,
            kinds: Kinds::of(half(KINDS_AT)?),
            graphs: GraphLevel::of(half(GRAPHS_AT)?)?,
            start_at_ns: u64_at(bytes, START_AT)?,
            deadline_ns: u64_at(bytes, DEADLINE_AT)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Wanted = Wanted {
        generation: 7,
        mode: Mode::Window,
        kinds: Kinds::KERNELS.with(Kinds::COPIES),
        graphs: GraphLevel::Nodes,
        start_at_ns: 1 << 60,
        deadline_ns: u64::MAX,
    };

    #[test]
    fn what_was_written_is_read() {
        assert_eq!(Wanted::of_bytes(&WINDOW.to_bytes()), Some(WINDOW));
        let nothing = Wanted::of_bytes(&[0; BYTES]).unwrap();
        assert_eq!((nothing.generation, nothing.mode), (0, Mode::Off));
    }

    #[test]
    fn an_order_goes_on_with_a_continuous_one_of_the_same_records_and_with_no_window() {
        let continuous = Wanted {
            mode: Mode::Continuous,
            ..WINDOW
        };
        assert_eq!(Wanted::of_bytes(&continuous.to_bytes()), Some(continuous));
        let later = Wanted {
            generation: 8,
            start_at_ns: 0,
            deadline_ns: 5,
            ..continuous
        };
        assert!(later.goes_on_from(&continuous));
        let others = [
            Wanted {
                kinds: Kinds::KERNELS,
                ..later
            },
            Wanted {
                graphs: GraphLevel::Whole,
                ..later
            },
            WINDOW,
        ];
        for other in others {
            assert!(
                !other.goes_on_from(&continuous) && !continuous.goes_on_from(&other),
                "{other:?}"
            );
        }
        assert!(!WINDOW.goes_on_from(&WINDOW));
    }

    #[test]
    fn a_value_that_is_half_written_or_makes_no_sense_is_none() {
        for (at, byte) in [(0, 8), (CHECK_AT, 6), (MODE_AT, 9), (GRAPHS_AT + 3, 1)] {
            let mut bytes = WINDOW.to_bytes();
            bytes[at] = byte;
            assert_eq!(Wanted::of_bytes(&bytes), None, "{at}");
        }
    }

    #[test]
    fn bits_without_meaning_are_no_kinds() {
        assert_eq!(Kinds::of(u32::MAX), Kinds::ALL);
        assert!(Kinds::ALL.has(Kinds::GRAPHS) && !Kinds::KERNELS.has(Kinds::ALL));
        assert!(Kinds::of(1 << 31).is_empty());
    }
}
