//! What slots hold: one type per kind, whose fields are written and read in the order in which
//! they stand here. Times are ns of CUPTI's clock in the process ([`Moment`](crate::Moment)),
//! names are numbers of the [table](crate::name), all others are CUPTI's own numbers.

use crate::slot::{BODY_BYTES, Kind};

/// A number in a slot.
trait Field: Sized + Copy {
    const BYTES: usize;
    const ZERO: Self;
    fn put(self, into: &mut [u8]);
    fn get(from: &[u8]) -> Option<Self>;
}

macro_rules! field {
    ($($type:ty),*) => {
        $(impl Field for $type {
            const BYTES: usize = size_of::<Self>();
            const ZERO: Self = 0;
            #[inline]
            fn put(self, into: &mut [u8]) {
                if let Some(place) = into.first_chunk_mut() {
                    *place = self.to_le_bytes();
                }
            }
            #[inline]
            fn get(from: &[u8]) -> Option<Self> {
                Some(Self::from_le_bytes(*from.first_chunk()?))
            }
        })*
    };
}

field!(u8, u16, u32, u64);

impl<const COUNT: usize> Field for [u8; COUNT] {
    const BYTES: usize = COUNT;
    const ZERO: Self = [0; COUNT];
    fn put(self, into: &mut [u8]) {
        if let Some(place) = into.first_chunk_mut() {
            *place = self;
        }
    }
    fn get(from: &[u8]) -> Option<Self> {
        from.first_chunk().copied()
    }
}

/// Makes the type of a kind, with how it stands in a slot.
macro_rules! record {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct $name {
            $($(#[$doc])* pub $field: $type,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: Field::ZERO,)* }
            }
        }

        const _: () = assert!(0 $(+ <$type as Field>::BYTES)* <= BODY_BYTES);

        impl $name {
            /// As it stands in a slot.
            #[inline]
            fn to_body(self) -> Body {
                let mut body = [0; BODY_BYTES];
                let rest = &mut body[..];
                $(
                    self.$field.put(rest);
                    let rest = rest.get_mut(<$type as Field>::BYTES..).unwrap_or_default();
                )*
                let _ = rest;
                body
            }

            /// What stands in a slot.
            fn of_body(body: &Body) -> Self {
                let rest = &body[..];
                $(
                    let $field = Field::get(rest).unwrap_or(Field::ZERO);
                    let rest = rest.get(<$type as Field>::BYTES..).unwrap_or_default();
                )*
                let _ = rest;
                Self { $($field,)* }
            }
        }
    };
}

/// What a slot holds beside its tag.
pub type Body = [u8; BODY_BYTES];

record! {
    /// What a kernel was launched with.
    Shape {
        /// Thread blocks in x.
        grid_x: u32,
        /// Thread blocks in y.
        grid_y: u32,
        /// Thread blocks in z.
        grid_z: u32,
        /// Threads per block in x.
        block_x: u32,
        /// Threads per block in y.
        block_y: u32,
        /// Threads per block in z.
        block_z: u32,
        /// Bytes of shared memory that the kernel declares.
        static_shared: u32,
        /// Bytes of shared memory that the launch asked for.
        dynamic_shared: u32,
        /// Bytes of local memory per thread.
        local_per_thread: u32,
        /// Bytes of shared memory that the kernel ran with.
        executed_shared: u32,
        /// Registers per thread.
        registers: u16,
        /// Thread blocks of a cluster in x; 0 without clusters.
        cluster_x: u16,
        /// Thread blocks of a cluster in y.
        cluster_y: u16,
        /// Thread blocks of a cluster in z.
        cluster_z: u16,
        /// Whether the device launched it itself.
        is_device_launched: u8,
    }
}

record! {
    /// A kernel without its [`Shape`].
    KernelRun {
        /// When it began.
        start_ns: u64,
        /// When it ended.
        end_ns: u64,
        /// Node of the graph; 0 without a graph.
        graph_node: u64,
        /// Number that its launch has too.
        correlation: u32,
        /// Name, mangled as the compiler did.
        name: u32,
        /// Device.
        device: u32,
        /// Context.
        context: u32,
        /// Stream.
        stream: u32,
        /// Graph; 0 without one.
        graph: u32,
        /// Channel of the device.
        channel: u32,
        /// CUPTI's kind of launch.
        launch_kind: u8,
        /// CUPTI's kind of channel.
        channel_kind: u8,
    }
}

record! {
    /// A copy.
    MemoryCopy {
        /// When it began.
        start_ns: u64,
        /// When it ended.
        end_ns: u64,
        /// Bytes.
        bytes: u64,
        /// Node of the graph; 0 without a graph.
        graph_node: u64,
        /// Number that its call has too.
        correlation: u32,
        /// Device.
        device: u32,
        /// Context.
        context: u32,
        /// Stream.
        stream: u32,
        /// Graph; 0 without one.
        graph: u32,
        /// CUPTI's kind of copy.
        kind: u8,
        /// CUPTI's kind of the memory that it reads.
        source: u8,
        /// CUPTI's kind of the memory that it writes.
        destination: u8,
        /// CUPTI's flags: bit 0 for an asynchronous one.
        flags: u8,
    }
}

record! {
    /// A copy between two devices.
    Peer {
        /// When it began.
        start_ns: u64,
        /// When it ended.
        end_ns: u64,
        /// Bytes.
        bytes: u64,
        /// Node of the graph; 0 without a graph.
        graph_node: u64,
        /// Number that its call has too.
        correlation: u32,
        /// Device whose engine copies.
        device: u32,
        /// Context.
        context: u32,
        /// Stream.
        stream: u32,
        /// Device that is read.
        source_device: u16,
        /// Device that is written.
        destination_device: u16,
        /// CUPTI's kind of copy.
        kind: u8,
        /// CUPTI's kind of the memory that it reads.
        source: u8,
        /// CUPTI's kind of the memory that it writes.
        destination: u8,
        /// CUPTI's flags: bit 0 for an asynchronous one.
        flags: u8,
    }
}

record! {
    /// A memset.
    MemorySet {
        /// When it began.
        start_ns: u64,
        /// When it ended.
        end_ns: u64,
        /// Bytes.
        bytes: u64,
        /// Node of the graph; 0 without a graph.
        graph_node: u64,
        /// Number that its call has too.
        correlation: u32,
        /// Device.
        device: u32,
        /// Context.
        context: u32,
        /// Stream.
        stream: u32,
        /// Graph; 0 without one.
        graph: u32,
        /// CUPTI's flags: bit 0 for an asynchronous one.
        flags: u16,
        /// CUPTI's kind of the memory.
        memory: u16,
    }
}

record! {
    /// A call of CUDA's runtime or driver.
    Call {
        /// When it began.
        start_ns: u64,
        /// When it ended.
        end_ns: u64,
        /// CUPTI's number of the function; [`CallName`] says what it is called.
        function: u32,
        /// Process.
        process: u32,
        /// Thread.
        thread: u32,
        /// Number that the work has too which it launched.
        correlation: u32,
        /// What it returned.
        status: u32,
        /// [`RUNTIME`] or [`DRIVER`].
        domain: u8,
    }
}

/// The domain of calls of CUDA's driver, as CUPTI numbers it.
pub const DRIVER: u8 = 1;
/// The domain of calls of CUDA's runtime, as CUPTI numbers it.
pub const RUNTIME: u8 = 2;

record! {
    /// A wait for the GPU.
    Wait {
        /// When it began.
        start_ns: u64,
        /// When it ended.
        end_ns: u64,
        /// CUPTI's kind of wait.
        kind: u32,
        /// Number that its call has too.
        correlation: u32,
        /// Context.
        context: u32,
        /// Stream.
        stream: u32,
        /// Event.
        event: u32,
    }
}

record! {
    /// An identifier that the program gave a call.
    Correlation {
        /// The identifier.
        identifier: u64,
        /// CUPTI's kind of identifier.
        kind: u32,
        /// Number of the call.
        correlation: u32,
    }
}

record! {
    /// A graph as a whole, from its first node to its last.
    Graph {
        /// When it began.
        start_ns: u64,
        /// When it ended.
        end_ns: u64,
        /// Number that its launch has too.
        correlation: u32,
        /// Device of its first node.
        device: u32,
        /// Graph.
        graph: u32,
        /// Context of its first node.
        context: u32,
        /// Stream.
        stream: u32,
        /// Device of its last node.
        end_device: u32,
        /// Context of its last node.
        end_context: u32,
    }
}

record! {
    /// Work of CUPTI itself.
    Overhead {
        /// When it began.
        start_ns: u64,
        /// When it ended.
        end_ns: u64,
        /// CUPTI's kind of work.
        kind: u32,
        /// CUPTI's kind of what it was done for.
        object_kind: u32,
        /// Number of the call; 0 where it is not known.
        correlation: u32,
    }
}

record! {
    /// A context.
    Context {
        /// Context.
        context: u32,
        /// Device.
        device: u32,
        /// Context that it is a part of; 0 for none, or where it is not known.
        parent: u32,
        /// CUPTI's kind of interface that made it.
        api: u16,
        /// Its default stream.
        null_stream: u16,
        /// Multiprocessors that it may use; 0 where it is not known.
        multiprocessors: u16,
    }
}

record! {
    /// A stream.
    Stream {
        /// Context.
        context: u32,
        /// Stream.
        stream: u32,
        /// Priority; the highest is the lowest number.
        priority: u32,
        /// CUPTI's flags.
        flags: u32,
    }
}

record! {
    /// A device.
    Device {
        /// Identifier, the same for all programs.
        uuid: [u8; 16],
        /// Bytes of memory.
        memory_bytes: u64,
        /// Device, as the process numbers it.
        device: u32,
        /// Name.
        name: u32,
        /// Multiprocessors.
        multiprocessors: u32,
        /// Major number of what it can compute.
        major: u16,
        /// Minor number of what it can compute.
        minor: u16,
        /// Instance of the GPU (MIG).
        gpu_instance: u32,
        /// Instance within that (MIG).
        compute_instance: u32,
        /// Whether the process sees it.
        is_visible: u8,
        /// Whether it is a part of a device; a [`Partition`] says which.
        is_partition: u8,
    }
}

record! {
    /// A part of a device (MIG).
    Partition {
        /// Identifier of the part.
        uuid: [u8; 16],
        /// Device, as the process numbers it.
        device: u32,
    }
}

record! {
    /// What a number of a call is called.
    CallName {
        /// CUPTI's number of the function.
        function: u32,
        /// Name.
        name: u32,
        /// [`RUNTIME`] or [`DRIVER`].
        domain: u8,
    }
}

/// A kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Kernel {
    /// When and where it ran.
    pub run: KernelRun,
    /// What it was launched with.
    pub shape: Shape,
}

impl Kernel {
    /// The slots that it takes, its shape first.
    #[inline]
    pub fn slots(&self) -> [(Kind, Body); 2] {
        [(Kind::Shape, self.shape.to_body()), (Kind::Kernel, self.run.to_body())]
    }
}

impl Call {
    /// The slot that it takes.
    #[inline]
    pub fn slot(&self) -> (Kind, Body) {
        (Kind::Call, self.to_body())
    }
}

/// A record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record {
    /// A kernel; two slots.
    Kernel(Kernel),
    /// A copy.
    Copy(MemoryCopy),
    /// A copy between two devices.
    Peer(Peer),
    /// A memset.
    Set(MemorySet),
    /// A call of CUDA's runtime or driver.
    Call(Call),
    /// A wait for the GPU.
    Sync(Wait),
    /// An identifier that the program gave a call.
    Correlation(Correlation),
    /// A graph as a whole.
    Graph(Graph),
    /// Work of CUPTI itself.
    Overhead(Overhead),
    /// A context.
    Context(Context),
    /// A stream.
    Stream(Stream),
    /// A device.
    Device(Device),
    /// A part of a device.
    Partition(Partition),
    /// What a number of a call is called.
    CallName(CallName),
}

impl Record {
    /// The slots that it takes: one, or another one before it.
    #[inline]
    pub fn slots(&self) -> (Option<(Kind, Body)>, (Kind, Body)) {
        let one = |kind, body| (None, (kind, body));
        match self {
            Self::Kernel(kernel) => {
                let [shape, run] = kernel.slots();
                (Some(shape), run)
            }
            Self::Copy(copy) => one(Kind::Copy, copy.to_body()),
            Self::Peer(peer) => one(Kind::Peer, peer.to_body()),
            Self::Set(set) => one(Kind::Set, set.to_body()),
            Self::Call(call) => (None, call.slot()),
            Self::Sync(sync) => one(Kind::Sync, sync.to_body()),
            Self::Correlation(correlation) => one(Kind::Correlation, correlation.to_body()),
            Self::Graph(graph) => one(Kind::Graph, graph.to_body()),
            Self::Overhead(overhead) => one(Kind::Overhead, overhead.to_body()),
            Self::Context(context) => one(Kind::Context, context.to_body()),
            Self::Stream(stream) => one(Kind::Stream, stream.to_body()),
            Self::Device(device) => one(Kind::Device, device.to_body()),
            Self::Partition(partition) => one(Kind::Partition, partition.to_body()),
            Self::CallName(name) => one(Kind::CallName, name.to_body()),
        }
    }

    /// The record of a slot and of the shape before it; `None` for a shape, and for a kernel
    /// without one.
    pub fn of_slot(kind: Kind, body: &Body, shape: Option<Shape>) -> Option<Self> {
        Some(match kind {
            Kind::Shape => return None,
            Kind::Kernel => Self::Kernel(Kernel {
                run: KernelRun::of_body(body),
                shape: shape?,
            }),
            Kind::Copy => Self::Copy(MemoryCopy::of_body(body)),
            Kind::Peer => Self::Peer(Peer::of_body(body)),
            Kind::Set => Self::Set(MemorySet::of_body(body)),
            Kind::Call => Self::Call(Call::of_body(body)),
            Kind::Sync => Self::Sync(Wait::of_body(body)),
            Kind::Correlation => Self::Correlation(Correlation::of_body(body)),
            Kind::Graph => Self::Graph(Graph::of_body(body)),
            Kind::Overhead => Self::Overhead(Overhead::of_body(body)),
            Kind::Context => Self::Context(Context::of_body(body)),
            Kind::Stream => Self::Stream(Stream::of_body(body)),
            Kind::Device => Self::Device(Device::of_body(body)),
            Kind::Partition => Self::Partition(Partition::of_body(body)),
            Kind::CallName => Self::CallName(CallName::of_body(body)),
        })
    }

    /// When it began and ended; `None` for one that says what something is.
    pub const fn times(&self) -> Option<(u64, u64)> {
        Some(match self {
            Self::Kernel(kernel) => (kernel.run.start_ns, kernel.run.end_ns),
            Self::Copy(copy) => (copy.start_ns, copy.end_ns),
            Self::Peer(peer) => (peer.start_ns, peer.end_ns),
            Self::Set(set) => (set.start_ns, set.end_ns),
            Self::Call(call) => (call.start_ns, call.end_ns),
            Self::Sync(sync) => (sync.start_ns, sync.end_ns),
            Self::Graph(graph) => (graph.start_ns, graph.end_ns),
            Self::Overhead(overhead) => (overhead.start_ns, overhead.end_ns),
            _ => return None,
        })
    }
}

impl Shape {
    /// The shape of a slot of that kind.
    pub fn of_slot(body: &Body) -> Self {
        Self::of_body(body)
    }
}
