//! Kinds of memory that are copied from, copied to or set.

/// A kind of memory. Its number is the value of [`super::ColumnId::SrcMemoryKind`] and [`super::ColumnId::DstMemoryKind`],
/// whichever way the source numbers kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemoryKind {
    /// Of the host, not page-locked: an asynchronous copy waits for it.
    Pageable,
    /// Of the host, page-locked.
    Pinned,
    /// Of a device.
    Device,
    /// A CUDA array.
    Array,
    /// Managed: it moves between host and device.
    Managed,
    /// A static variable of a device.
    DeviceStatic,
    /// A static variable in managed memory.
    ManagedStatic,
    /// The profiler could not tell.
    Unknown,
}

impl MemoryKind {
    /// Every kind.
    pub const ALL: [Self; 8] = [
        Self::Pageable,
        Self::Pinned,
        Self::Device,
        Self::Array,
        Self::Managed,
        Self::DeviceStatic,
        Self::ManagedStatic,
        Self::Unknown,
    ];

    /// Name for people and in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pageable => "pageable",
            Self::Pinned => "pinned",
            Self::Device => "device",
            Self::Array => "array",
            Self::Managed => "managed",
            Self::DeviceStatic => "device_static",
            Self::ManagedStatic => "managed_static",
            Self::Unknown => "unknown",
        }
    }

    /// Its number in columns.
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

    /// The kind of that number; none for 0, which says nothing.
    pub fn from_number(number: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| u64::from(kind.number()) == number)
    }

    /// The kind as profilers write it: `Pageable`, `Device Static`, `DEVICE_STATIC`.
    pub fn from_words(text: &[u8]) -> Option<Self> {
        let letters = |bytes: &[u8]| -> Vec<u8> {
            let letters = bytes.iter().filter(|byte| byte.is_ascii_alphabetic());
            letters.map(u8::to_ascii_lowercase).collect()
        };
        let wanted = letters(text);
        Self::ALL
            .into_iter()
            .find(|kind| letters(kind.name().as_bytes()) == wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_found_by_its_number_and_by_what_profilers_call_it() {
        for kind in MemoryKind::ALL {
            assert_eq!(MemoryKind::from_number(u64::from(kind.number())), Some(kind));
            assert_eq!(MemoryKind::from_words(kind.name().as_bytes()), Some(kind));
        }
        assert_eq!(MemoryKind::from_number(0), None);
        assert_eq!(MemoryKind::from_words(b"Device Static"), Some(MemoryKind::DeviceStatic));
        assert_eq!(MemoryKind::from_words(b"Texture"), None);
    }
}
