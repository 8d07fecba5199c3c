//! The timeline file: a [`Timeline`](flopwatch_model::Timeline) as HDF5 that h5py, h5wasm and
//! h5dump read.
//!
//! ```text
//! /meta             attributes; `categories`, `devices/` below, whose columns of MIG instances are
//!                   there where one is
//! /<category>/      start_ns, duration_ns, stream, name_idx, row, lane, correlation and the category's own columns
//! /names/<category> string[], which name_idx refers to
//! /names/<category>.short_name, .mangled_name, .domain  string[], what is known of each of /names/<category> beside itself, as
//!                   `model::NameDetail` describes. Absent where the source does not say it
//! /names/<category>.<column>  string[], which the values of a column of texts refer to, sorted; the first one is empty and
//!                   stands for none
//! /rows/            a column per field of a row; a missing number is the largest of its type; `lanes`: how many lanes its events take,
//!                   those of all categories together; 0 for a row without events
//! /tiles/<category>/ of a category with events, an element per chunk of events: first, count, t_min, t_max (the latest end in it), max_end (the latest end up
//!                   to it); `columns` and their `width` in bytes; `offset` and `bytes`, as many elements per chunk as there
//!                   are columns; attribute chunk_events
//! /lod/<category>/  entries/ bucket, event, duration_ns, count, busy_ns, as `model::LodLevel` describes, and name_idx, that of
//!                   `event`; levels/ shift, row, lane, first, count: which entries are of which level, row and lane, sorted by
//!                   these. Lane 63 holds the lanes behind it too. Absent where a category is small
//! /counters/<source>/<device>/<metric>/  t_ns, value; attribute unit
//! /allocations/     an element per allocation or release of memory: t_ns, process, thread (the largest number where it is not said), correlation (0
//!                   for none), device (the largest number for the host's memory), kind (the number of a `model::MemoryKind`; 0 of an allocator of a
//!                   framework), address, bytes (signed: below 0 where it is released, 0 where it is and its size is not said), allocated and reserved
//!                   (in all by then; the largest number where it is not said). Absent where there is none
//! /programs/        an element per compiled program: name, id, to which the column program_id refers, and bytes, of proto, which holds the
//!                   messages (`xla.HloProto`) one behind the other. Absent where there is none
//! /profiles/        a launch per element: id, name, process, device, context, stream, grid and block; metrics/ name and unit;
//!                   values/, integers/ and texts/ profile, metric and value, as a number, a whole number or a string. Absent where there is none
//! /stacks/          samples by stack without a time: kind and unit of the values, default_kind, taken_utc_ns, text, which the next refer to; per frame
//!                   function, file and line; per sample stack_length and labels, how many of stack (frames, the innermost first) and of label_key,
//!                   label_text and label_number are its; value, one per sample and kind. Absent where there is none
//! /call_stacks/     stacks that the column call_stack of cpu_sample refers to: text, the first of
//!                   which is empty and stands for none; per frame function and module, of text;
//!                   per stack frame, the innermost, and caller, the number of the stack around it:
//!                   0 for none, 1 the first, less than its own. Absent where there is none
//! /summary          the summary artifact: the bytes of JSON in UTF-8
//! ```
//!
//! Filters are shuffle and deflate, in chunks of 64 Ki events, or of all events where there are
//! fewer. Columns are as narrow as their values allow, never narrower than documented. There are no
//! object times: equal timelines give equal bytes.
//!
//! # Reading a part
//!
//! The bytes of a chunk, `bytes` from `offset` on, are a zlib stream. Inflated, they are
//! `chunk_events` times `width` bytes: first the lowest byte of each value, then the second lowest
//! of each, and so on. Behind the last event of a category come zeros.
//!
//! What runs between two times is in the chunks whose `t_min` is before the later and whose `t_max`
//! is behind the earlier time: a range that began long ago brings in the chunk that holds it, and
//! none of those between. `max_end` rises from chunk to chunk, so a binary search in it finds the
//! first chunk to look at.
//!
//! In a level of detail, what began before a time and still runs then is the `event` of its lane's
//! last entry before that time, or ends no more than a bucket behind its own bucket;
//! `model::LodLevel` says why. No chunk of events need be read for it.
//!
//! The file's structure is gathered in blocks of 128 KiB, the first of which is at its begin: a
//! reader that fetches that much finds the headers of most files in it.

mod access;
mod allocations;
mod call_stacks;
mod devices;
mod events;
mod layout;
mod profiles;
mod programs;
mod read;
mod stacks;
mod write;

pub use layout::{Columns, Layout};
pub use read::{Failure, OpenError, Part, filled_groups, is_one, read, read_for};
pub use write::{WriteError, WriteFailure, overwrite, write, write_unsynced};

/// Version of the layout, attribute `schema_version` of `/meta`. Additions do not change it, but
/// for work that keeps a GPU busy: whoever does not know it would tell that the GPU was idle. Since
/// 2 there are whole graphs (`cuda_graph`), migrations of unified memory that are no copies
/// (`cuda_migration`), and copies whose size is not known.
pub const SCHEMA_VERSION: u32 = 2;

/// Events per chunk.
const CHUNK_EVENTS: usize = 1 << 16;

/// How hard deflate tries: shuffled columns gain little from more, and the level below has no codes
/// of its own, which costs a tenth of the file.
const DEFLATE_LEVEL: u8 = 2;

/// Stands for a missing device or thread in `/rows`.
const NONE_U32: u32 = u32::MAX;

/// Stands for a missing context or stream in `/rows`.
const NONE_U64: u64 = u64::MAX;
