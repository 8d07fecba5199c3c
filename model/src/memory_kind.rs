//! Kinds of memory that a copy reads from or writes to, or that a memset sets.

use strum::{IntoStaticStr, VariantArray};

/// A kind of memory. Its number is the value of [`super::ColumnId::SrcMemoryKind`] and
/// [`super::ColumnId::DstMemoryKind`], whichever way the source numbers kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum MemoryKind {
    /// Host memory that is not page-locked: an asynchronous copy from or to it blocks the calling
    /// thread.
    Pageable,
    /// Page-locked host memory, which the GPU reads and writes by itself.
    Pinned,
    /// Memory of a GPU.
    Device,
    /// A CUDA array, in which textures are stored.
    Array,
    /// Managed (unified) memory, whose pages migrate between host and device.
    Managed,
    /// A static variable in the memory of a GPU (`__device__`).
    DeviceStatic,
    /// A static variable in managed memory (`__managed__`).
    ManagedStatic,
    /// The profiler recorded that it did not know the kind of memory.
    Unknown,
}

impl MemoryKind {
    /// Every kind, in the order of [`Self::number`].
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// The kind's name in JSON, in the command line and on pages.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The kind's number in columns of events; 0 stands for no kind.
    pub const fn number(self) -> u32 {
        match self {
            Self::Pageable => 1,
            Self::Pinned => 2,
            Self::Device => 3,
            Self::Array => 4,
            Self::Managed => 5,
            Self::DeviceStatic => 6,
            Self::ManagedStatic => 7,
            Self::Unknown => 8,
        }
    }

    /// The kind with this number in columns; `None` for 0, which events have where the source gives
    /// no kind, and for any other number without a kind.
    pub fn from_number(number: u64) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|kind| u64::from(kind.number()) == number)
    }

    /// The kind whose name a profiler wrote, as `Pageable`, `Device Static` or `DEVICE_STATIC`;
    /// `None` of any other text.
    pub fn from_words(text: &[u8]) -> Option<Self> {
        let letters = |bytes: &[u8]| -> Vec<u8> {
            let letters = bytes.iter().filter(|byte| byte.is_ascii_alphabetic());
            letters.map(u8::to_ascii_lowercase).collect()
        };
        let wanted = letters(text);
        Self::ALL
            .iter()
            .copied()
            .find(|kind| letters(kind.name().as_bytes()) == wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_found_by_its_number_and_by_what_profilers_call_it() {
        for kind in MemoryKind::ALL.iter().copied() {
            assert_eq!(MemoryKind::from_number(u64::from(kind.number())), Some(kind));
            assert_eq!(MemoryKind::from_words(kind.name().as_bytes()), Some(kind));
        }
        assert_eq!(MemoryKind::from_number(0), None);
        assert_eq!(MemoryKind::from_words(b"Device Static"), Some(MemoryKind::DeviceStatic));
        assert_eq!(MemoryKind::from_words(b"Texture"), None);
    }
}
