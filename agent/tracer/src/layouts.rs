//! Where CUPTI's records have the fields that the tracer reads, by the names that NVIDIA's headers
//! give them. `cargo xtask cupti-layouts` holds a release's headers against this table. A record is
//! converted from these bytes and no others, which the tests below show.

/// The last kind of records that was looked at: 13.5's.
pub const LAST_KIND: u32 = 59;

/// A type of records, with what is read of it.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// The kinds whose records have it: the name behind `CUPTI_ACTIVITY_KIND_`, and the number.
    pub kinds: &'static [(&'static str, u32)],
    /// Name of the type behind `CUpti_Activity`, without the number of its version.
    pub family: &'static str,
    /// The last version of the type that was looked at, 13.5's; a name without a number is the
    /// first one.
    pub version: u32,
    /// Bytes of that version.
    pub bytes: usize,
    /// The fields that are read, beside the kind at the begin.
    pub fields: &'static [Field],
}

/// A field of a record.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// Name that NVIDIA's header gives it.
    pub name: &'static str,
    /// Offset in bytes.
    pub at: usize,
    /// Bytes that are read; the field may have more.
    pub bytes: usize,
    /// Whether a later release than 11.8 appended it: earlier records end before it.
    pub is_appended: bool,
}

const fn field(name: &'static str, at: usize, bytes: usize) -> Field {
    Field {
        name,
        at,
        bytes,
        is_appended: false,
    }
}

const fn appended(name: &'static str, at: usize, bytes: usize) -> Field {
    Field {
        is_appended: true,
        ..field(name, at, bytes)
    }
}

/// Every type that is read.
pub const LAYOUTS: [Layout; 12] = [
    Layout {
        kinds: &[("KERNEL", 3), ("CONCURRENT_KERNEL", 10)],
        family: "Kernel",
        version: 13,
        bytes: 248,
        fields: &[
            field("registersPerThread", 6, 2),
            field("start", 16, 8),
            field("end", 24, 8),
            field("deviceId", 40, 4),
            field("contextId", 44, 4),
            field("streamId", 48, 4),
            field("gridX", 52, 4),
            field("gridY", 56, 4),
            field("gridZ", 60, 4),
            field("blockX", 64, 4),
            field("blockY", 68, 4),
            field("blockZ", 72, 4),
            field("staticSharedMemory", 76, 4),
            field("dynamicSharedMemory", 80, 4),
            field("localMemoryPerThread", 84, 4),
            field("correlationId", 92, 4),
            field("name", 104, 8),
            field("launchType", 136, 1),
            field("sharedMemoryExecuted", 140, 4),
            field("graphNodeId", 144, 8),
            field("graphId", 156, 4),
            field("channelID", 168, 4),
            field("channelType", 172, 1),
            field("clusterX", 176, 4),
            field("clusterY", 180, 4),
            field("clusterZ", 184, 4),
            appended("isDeviceLaunched", 208, 1),
        ],
    },
    Layout {
        kinds: &[("MEMCPY", 1)],
        family: "Memcpy",
        version: 7,
        bytes: 112,
        fields: &[
            field("copyKind", 4, 1),
            field("srcKind", 5, 1),
            field("dstKind", 6, 1),
            field("flags", 7, 1),
            field("bytes", 8, 8),
            field("start", 16, 8),
            field("end", 24, 8),
            field("deviceId", 32, 4),
            field("contextId", 36, 4),
            field("streamId", 40, 4),
            field("correlationId", 44, 4),
            field("graphNodeId", 64, 8),
            field("graphId", 72, 4),
        ],
    },
    Layout {
        kinds: &[("MEMCPY2", 22)],
        family: "MemcpyPtoP",
        version: 4,
        bytes: 96,
        fields: &[
            field("copyKind", 4, 1),
            field("srcKind", 5, 1),
            field("dstKind", 6, 1),
            field("flags", 7, 1),
            field("bytes", 8, 8),
            field("start", 16, 8),
            field("end", 24, 8),
            field("deviceId", 32, 4),
            field("contextId", 36, 4),
            field("streamId", 40, 4),
            field("srcDeviceId", 44, 4),
            field("dstDeviceId", 52, 4),
            field("correlationId", 60, 4),
            field("graphNodeId", 72, 8),
        ],
    },
    Layout {
        kinds: &[("MEMSET", 2)],
        family: "Memset",
        version: 5,
        bytes: 104,
        fields: &[
            field("bytes", 8, 8),
            field("start", 16, 8),
            field("end", 24, 8),
            field("deviceId", 32, 4),
            field("contextId", 36, 4),
            field("streamId", 40, 4),
            field("correlationId", 44, 4),
            field("flags", 48, 2),
            field("memoryKind", 50, 2),
            field("graphNodeId", 64, 8),
            field("graphId", 72, 4),
        ],
    },
    Layout {
        kinds: &[("DRIVER", 4), ("RUNTIME", 5)],
        family: "API",
        version: 1,
        bytes: 40,
        fields: &[
            field("cbid", 4, 4),
            field("start", 8, 8),
            field("end", 16, 8),
            field("processId", 24, 4),
            field("threadId", 28, 4),
            field("correlationId", 32, 4),
            field("returnValue", 36, 4),
        ],
    },
    Layout {
        kinds: &[("SYNCHRONIZATION", 38)],
        family: "Synchronization",
        version: 2,
        bytes: 56,
        fields: &[
            field("type", 4, 4),
            field("start", 8, 8),
            field("end", 16, 8),
            field("correlationId", 24, 4),
            field("contextId", 28, 4),
            field("streamId", 32, 4),
            field("cudaEventId", 36, 4),
        ],
    },
    Layout {
        kinds: &[("EXTERNAL_CORRELATION", 39)],
        family: "ExternalCorrelation",
        version: 1,
        bytes: 24,
        fields: &[
            field("externalKind", 4, 4),
            field("externalId", 8, 8),
            field("correlationId", 16, 4),
        ],
    },
    Layout {
        kinds: &[("GRAPH_TRACE", 51)],
        family: "GraphTrace",
        version: 2,
        bytes: 56,
        fields: &[
            field("correlationId", 4, 4),
            field("start", 8, 8),
            field("end", 16, 8),
            field("deviceId", 24, 4),
            field("graphId", 28, 4),
            field("contextId", 32, 4),
            field("streamId", 36, 4),
            appended("endDeviceId", 48, 4),
            appended("endContextId", 52, 4),
        ],
    },
    Layout {
        kinds: &[("CONTEXT", 9)],
        family: "Context",
        version: 4,
        bytes: 40,
        fields: &[
            field("contextId", 4, 4),
            field("deviceId", 8, 4),
            field("computeApiKind", 12, 2),
            field("nullStreamId", 14, 2),
            appended("parentContextId", 16, 4),
            appended("numMultiprocessors", 22, 2),
        ],
    },
    Layout {
        kinds: &[("STREAM", 37)],
        family: "Stream",
        version: 1,
        bytes: 24,
        fields: &[
            field("contextId", 4, 4),
            field("streamId", 8, 4),
            field("priority", 12, 4),
            field("flag", 16, 4),
        ],
    },
    Layout {
        kinds: &[("DEVICE", 8)],
        family: "Device",
        version: 6,
        bytes: 192,
        fields: &[
            field("globalMemorySize", 16, 8),
            field("numMultiprocessors", 44, 4),
            field("computeCapabilityMajor", 104, 4),
            field("computeCapabilityMinor", 108, 4),
            field("id", 112, 4),
            field("uuid", 120, 16),
            field("name", 136, 8),
            field("isCudaVisible", 144, 1),
            field("isMigEnabled", 145, 1),
            field("gpuInstanceId", 152, 4),
            field("computeInstanceId", 156, 4),
            field("migUuid", 160, 16),
        ],
    },
    Layout {
        kinds: &[("OVERHEAD", 17)],
        family: "Overhead",
        version: 3,
        bytes: 56,
        fields: &[
            field("overheadKind", 4, 4),
            field("objectKind", 8, 4),
            field("start", 24, 8),
            field("end", 32, 8),
            appended("correlationId", 40, 4),
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convert::tests::converted;
    use crate::kinds::ENABLED;

    /// A record whose times are in order whichever byte is changed, of a device that is a part.
    fn whole(layout: &Layout, kind: u32) -> Vec<u8> {
        let mut bytes = vec![0; layout.bytes];
        bytes[..4].copy_from_slice(&kind.to_le_bytes());
        for field in layout.fields {
            let value: u64 = match field.name {
                "start" | "isMigEnabled" => 1,
                "end" => u64::MAX >> 1,
                _ => continue,
            };
            bytes[field.at..field.at + field.bytes].copy_from_slice(&value.to_le_bytes()[..field.bytes]);
        }
        bytes
    }

    #[test]
    fn exactly_the_bytes_of_the_table_are_read() {
        for layout in &LAYOUTS {
            for (name, kind) in layout.kinds {
                let bytes = whole(layout, *kind);
                let before = converted(&bytes, 1);
                assert!(before.0.is_ok(), "{name}: {before:?}");
                for at in 4..layout.bytes {
                    let mut other = bytes.clone();
                    other[at] ^= 0x40;
                    let is_read = converted(&other, 1) != before;
                    let of = |field: &&Field| (field.at..field.at + field.bytes).contains(&at);
                    let field = layout.fields.iter().find(of).map(|field| field.name);
                    assert_eq!(is_read, field.is_some(), "byte {at} of {name}: {field:?}");
                }
            }
        }
    }

    #[test]
    fn every_kind_that_a_window_enables_has_a_layout() {
        let numbers = || LAYOUTS.iter().flat_map(|layout| layout.kinds);
        for enabled in &ENABLED {
            let known = numbers().any(|(_, kind)| i32::try_from(*kind) == Ok(enabled.kind));
            assert!(known, "{}", enabled.kind);
        }
        assert!(numbers().all(|(_, kind)| *kind <= LAST_KIND));
    }

    #[test]
    fn a_record_of_11_8_ends_before_what_later_releases_append() {
        for layout in &LAYOUTS {
            let appended = layout.fields.iter().filter(|field| field.is_appended);
            let end = appended.map(|field| field.at).min().unwrap_or(layout.bytes);
            let (_, kind) = layout.kinds[0];
            let (short, _) = converted(&whole(layout, kind)[..end], 1);
            assert!(short.is_ok(), "{}: {short:?}", layout.family);
            let fields = layout.fields.iter().filter(|field| !field.is_appended);
            assert!(fields.max_by_key(|field| field.at).unwrap().at < end);
        }
    }
}
