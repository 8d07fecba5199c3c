//! How much memory a window may take, and what bounds it.

use std::fmt;

use flopwatch_attach::usage::memory::Room;

use super::mebibytes;

/// What a container must have left of its limit: a twentieth, 64 MiB to 1 GiB.
const CONTAINER_FLOOR_PART: u64 = 20;
const CONTAINER_FLOOR_LEAST_BYTES: u64 = 64 << 20;
const CONTAINER_FLOOR_MOST_BYTES: u64 = 1 << 30;
/// The part of what the node has free that one window may take, as a divisor.
const NODE_PART: u64 = 2;

/// Memory that a window may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::profilers::kineto) struct Memory {
    /// Bytes of the window.
    pub(in crate::profilers::kineto) bytes: u64,
    /// Why it is no more.
    pub(super) by: MemoryBy,
}

/// What bounds the memory of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MemoryBy {
    /// A limit of the container, or of what it lies in.
    Container(Room),
    /// What the node has free.
    Node(Room),
    /// The agent's own limit.
    Agent,
}

impl Memory {
    /// The least of what the container's limit leaves, of a part of what the node has free, and of
    /// `most` bytes.
    pub(in crate::profilers::kineto) fn of(container: Option<Room>, node: Option<Room>, most: u64) -> Self {
        let of_container = container.map(|room| {
            let floor = room.whole_bytes / CONTAINER_FLOOR_PART;
            let floor = floor.clamp(CONTAINER_FLOOR_LEAST_BYTES, CONTAINER_FLOOR_MOST_BYTES);
            Self {
                bytes: room.left_bytes.saturating_sub(floor),
                by: MemoryBy::Container(room),
            }
        });
        let of_node = node.map(|room| Self {
            bytes: room.left_bytes / NODE_PART,
            by: MemoryBy::Node(room),
        });
        let of_agent = Self {
            bytes: most,
            by: MemoryBy::Agent,
        };
        let others = of_container.into_iter().chain(of_node);
        others.fold(
            of_agent,
            |least, other| if other.bytes < least.bytes { other } else { least },
        )
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = mebibytes(self.bytes);
        match self.by {
            MemoryBy::Container(room) => write!(
                f,
                "the {bytes} MiB that its limit of {} MiB leaves the container, beside what is taken and what must stay free",
                mebibytes(room.whole_bytes)
            ),
            MemoryBy::Node(room) => write!(
                f,
                "the {bytes} MiB that a window may take of the {} MiB that the node has free",
                mebibytes(room.left_bytes)
            ),
            MemoryBy::Agent => write!(
                f,
                "the {bytes} MiB that the agent lets a window take (--max-window-memory-bytes)"
            ),
        }
    }
}
