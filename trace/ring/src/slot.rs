//! A slot: a value of 64 bits, and a tag of 64 bits that is written last. Slots that belong to an
//! event stand before it.

/// Bytes of a slot.
pub const BYTES: usize = 16;
/// Where the tag is within a slot.
pub const TAG_AT: usize = 8;

/// What a slot is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A range of the thread's stack begins; the value is the time in ticks.
    Push,
    /// The innermost range of the domain ends.
    Pop,
    /// A range begins that any thread may end; its [`Kind::Range`] stands before it.
    Start,
    /// Such a range ends.
    End,
    /// A moment.
    Mark,
    /// The payload of the next event; the tag's name is its type as NVTX numbers them.
    Payload,
    /// Colour (lower 32 bits, ARGB) and category (upper 32 bits) of the next event.
    Style,
    /// The identifier of the next event's range.
    Range,
    /// A piece of the next event's name, which has no entry: 8 bytes of the value, then those of
    /// domain and name of the tag.
    Text,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 9] = [
        Self::Push,
        Self::Pop,
        Self::Start,
        Self::End,
        Self::Mark,
        Self::Payload,
        Self::Style,
        Self::Range,
        Self::Text,
    ];

    /// As it stands in a tag.
    pub const fn bits(self) -> u8 {
        match self {
            Self::Push => 1,
            Self::Pop => 2,
            Self::Start => 3,
            Self::End => 4,
            Self::Mark => 5,
            Self::Payload => 16,
            Self::Style => 17,
            Self::Range => 18,
            Self::Text => 19,
        }
    }

    /// The kind of a tag; `None` for bits that are of no kind.
    pub fn of(bits: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.bits() == bits)
    }

    /// Whether it is an event, and not what stands before one.
    pub const fn is_event(self) -> bool {
        matches!(self, Self::Push | Self::Pop | Self::Start | Self::End | Self::Mark)
    }
}

/// Pieces of a name that stand before an event.
pub const TEXTS: usize = 8;
/// Bytes of a name in one slot.
pub const TEXT_BYTES: usize = 11;

/// The tag of a slot: the segment's claim, kind, domain, number of the name.
pub const fn tag(claim: u32, kind: Kind, domain: u8, name: u16) -> u64 {
    let [a, b, c, d] = claim.to_le_bytes();
    let [low, high] = name.to_le_bytes();
    u64::from_le_bytes([low, high, domain, kind.bits(), a, b, c, d])
}

/// Claim, bits of the kind, domain and number of the name of a tag.
pub const fn of_tag(tag: u64) -> (u32, u8, u8, u16) {
    let [low, high, domain, kind, a, b, c, d] = tag.to_le_bytes();
    (
        u32::from_le_bytes([a, b, c, d]),
        kind,
        domain,
        u16::from_le_bytes([low, high]),
    )
}
