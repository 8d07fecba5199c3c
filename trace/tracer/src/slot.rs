//! A slot: seven words, and a tag of 64 bits that is written last.

/// Bytes of a slot.
pub const BYTES: usize = 64;
/// Bytes of what a slot holds.
pub const BODY_BYTES: usize = BYTES - 8;
/// Where the tag is within a slot.
pub const TAG_AT: usize = BODY_BYTES;

/// What a slot holds beside its tag, as the words in which it is written.
pub type Words = [u64; BODY_BYTES / 8];

/// The words of what a slot holds.
#[inline]
pub fn words(body: &[u8; BODY_BYTES]) -> Words {
    let (parts, _) = body.as_chunks::<8>();
    let mut words = [0; BODY_BYTES / 8];
    for (to, from) in words.iter_mut().zip(parts) {
        *to = u64::from_le_bytes(*from);
    }
    words
}

/// What a slot is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A kernel; its [`Kind::Shape`] is the slot before it.
    Kernel,
    /// What the next slot's kernel was launched with.
    Shape,
    /// A copy.
    Copy,
    /// A copy between two devices.
    Peer,
    /// A memset.
    Set,
    /// A call of CUDA's runtime or driver.
    Call,
    /// A wait for the GPU.
    Sync,
    /// An identifier that the program gave a call.
    Correlation,
    /// A graph as a whole.
    Graph,
    /// Work of CUPTI itself.
    Overhead,
    /// A context.
    Context,
    /// A stream.
    Stream,
    /// A device.
    Device,
    /// A part of a device (MIG).
    Partition,
    /// What a number of a call is called.
    CallName,
}

impl Kind {
    /// Every kind, in the order of their numbers from 1.
    pub const ALL: [Self; 15] = [
        Self::Kernel,
        Self::Shape,
        Self::Copy,
        Self::Peer,
        Self::Set,
        Self::Call,
        Self::Sync,
        Self::Correlation,
        Self::Graph,
        Self::Overhead,
        Self::Context,
        Self::Stream,
        Self::Device,
        Self::Partition,
        Self::CallName,
    ];

    /// As it stands in a tag.
    #[inline]
    pub const fn bits(self) -> u8 {
        match self {
            Self::Kernel => 1,
            Self::Shape => 2,
            Self::Copy => 3,
            Self::Peer => 4,
            Self::Set => 5,
            Self::Call => 6,
            Self::Sync => 7,
            Self::Correlation => 8,
            Self::Graph => 9,
            Self::Overhead => 10,
            Self::Context => 11,
            Self::Stream => 12,
            Self::Device => 13,
            Self::Partition => 14,
            Self::CallName => 15,
        }
    }

    /// The kind of a tag; `None` for bits that are of no kind.
    pub fn of(bits: u8) -> Option<Self> {
        let place = usize::from(bits.checked_sub(1)?);
        Self::ALL.get(place).copied()
    }
}

/// The tag of a slot of a claim.
#[inline]
pub const fn tag(claim: u32, kind: Kind) -> u64 {
    let [a, b, c, d] = claim.to_le_bytes();
    u64::from_le_bytes([kind.bits(), 0, 0, 0, a, b, c, d])
}

/// The claim of a tag, and its kind where it has one.
pub fn of_tag(tag: u64) -> (u32, Option<Kind>) {
    let [kind, zero_1, zero_2, zero_3, a, b, c, d] = tag.to_le_bytes();
    let kind = Kind::of(kind).filter(|_| [zero_1, zero_2, zero_3] == [0; 3]);
    (u32::from_le_bytes([a, b, c, d]), kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_slot_are_its_bytes_in_their_order() {
        let mut body = [0; BODY_BYTES];
        for (to, number) in body.iter_mut().zip(1..) {
            *to = number;
        }
        let mut left = body.iter();
        for byte in words(&body).into_iter().flat_map(u64::to_le_bytes) {
            assert_eq!(left.next(), Some(&byte));
        }
        assert_eq!(left.next(), None);
    }

    #[test]
    fn a_tag_says_its_claim_and_kind() {
        for (at, kind) in Kind::ALL.into_iter().enumerate() {
            assert_eq!(usize::from(kind.bits()), at + 1);
            assert_eq!(of_tag(tag(77, kind)), (77, Some(kind)));
        }
        assert_eq!(of_tag(0), (0, None));
        assert_eq!(of_tag(1 << 8 | 1), (0, None));
        assert_eq!(Kind::of(16), None);
    }
}
