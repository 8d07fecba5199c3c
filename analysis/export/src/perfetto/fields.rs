//! Numbers of the fields that are written, from Perfetto's schema,
//! <https://github.com/google/perfetto/blob/main/protos/perfetto/trace/perfetto_trace.proto>. A test decodes what is written with
//! the schema that Perfetto itself publishes.

/// `Trace`
pub(super) mod trace {
    pub(in super::super) const PACKET: u32 = 1;
}

/// `TracePacket`
pub(super) mod packet {
    pub(in super::super) const TIMESTAMP: u32 = 8;
    pub(in super::super) const SEQUENCE_ID: u32 = 10;
    pub(in super::super) const TRACK_EVENT: u32 = 11;
    pub(in super::super) const INTERNED_DATA: u32 = 12;
    pub(in super::super) const SEQUENCE_FLAGS: u32 = 13;
    pub(in super::super) const TRACK_DESCRIPTOR: u32 = 60;
    /// Bit of `sequence_flags`: what was interned before is forgotten.
    pub(in super::super) const STATE_CLEARED: u64 = 1;
    /// Bit of `sequence_flags`: the packet refers to what was interned.
    pub(in super::super) const NEEDS_STATE: u64 = 2;
}

/// `TrackDescriptor`
pub(super) mod track {
    pub(in super::super) const UUID: u32 = 1;
    pub(in super::super) const NAME: u32 = 2;
    pub(in super::super) const PROCESS: u32 = 3;
    pub(in super::super) const PARENT: u32 = 5;
    pub(in super::super) const COUNTER: u32 = 8;
    pub(in super::super) const CHILD_ORDERING: u32 = 11;
    pub(in super::super) const SIBLING_RANK: u32 = 12;
    pub(in super::super) const SIBLING_MERGE: u32 = 15;
    /// `ChildTracksOrdering`: by rank.
    pub(in super::super) const EXPLICIT: u64 = 3;
    /// `SiblingMergeBehavior`: tracks of one name stay apart.
    pub(in super::super) const MERGE_NONE: u64 = 2;
}

/// `ProcessDescriptor`
pub(super) mod process {
    pub(in super::super) const PID: u32 = 1;
    pub(in super::super) const NAME: u32 = 6;
}

/// `CounterDescriptor`
pub(super) mod counter {
    pub(in super::super) const UNIT_NAME: u32 = 6;
}

/// `TrackEvent`
pub(super) mod event {
    pub(in super::super) const CATEGORY: u32 = 3;
    pub(in super::super) const ANNOTATION: u32 = 4;
    pub(in super::super) const TYPE: u32 = 9;
    pub(in super::super) const NAME: u32 = 10;
    pub(in super::super) const TRACK: u32 = 11;
    pub(in super::super) const DOUBLE_VALUE: u32 = 44;
    pub(in super::super) const FLOW: u32 = 47;
    pub(in super::super) const LAST_OF_FLOW: u32 = 48;
    /// `Type`
    pub(in super::super) const BEGIN: u64 = 1;
    /// `Type`
    pub(in super::super) const END: u64 = 2;
    /// `Type`
    pub(in super::super) const COUNTER: u64 = 4;
}

/// `DebugAnnotation`
pub(super) mod annotation {
    pub(in super::super) const NAME: u32 = 1;
    pub(in super::super) const UINT: u32 = 3;
    pub(in super::super) const STRING: u32 = 6;
}

/// `InternedData`
pub(super) mod interned {
    pub(in super::super) const CATEGORIES: u32 = 1;
    pub(in super::super) const NAMES: u32 = 2;
    pub(in super::super) const ANNOTATION_NAMES: u32 = 3;
    /// Of `EventCategory`, `EventName`, `DebugAnnotationName` alike.
    pub(in super::super) const IID: u32 = 1;
    /// Of these three alike.
    pub(in super::super) const NAME: u32 = 2;
}
