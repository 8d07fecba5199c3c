//! One program as the tracer's file and as an export of Nsight Systems: the tables are equal.

use std::path::Path;

use flopwatch_model::{Category, ColumnId, Device, Events, Timeline};
use flopwatch_trace::{ReadLimits, nsys_sqlite, tracer};
use flopwatch_tracer_file::wanted::Kinds;
use rusqlite::Connection;

use super::agent::{Agent, now_ns};
use super::rig::Rig;
use super::timeline::timeline;

/// Launches of the program, a hundred of each kind of work.
const LAUNCHES: i64 = 600;
/// Names of its kernels.
const KERNELS: i64 = 50;
/// Ids of strings of the export.
const RUNTIME_CALL: i64 = 1;
const DRIVER_CALL: i64 = 2;
const FIRST_KERNEL: i64 = 10;

/// Columns that all tables of GPU work have.
const ACTIVITY: &str = "start end deviceId contextId streamId correlationId globalPid";
/// What the tables have beside them.
const TABLES: [(Work, &str, &str); 5] = [
    (
        Work::Kernel,
        "KERNEL",
        "demangledName registersPerThread gridX gridY gridZ blockX blockY blockZ staticSharedMemory dynamicSharedMemory",
    ),
    (Work::Copy, "MEMCPY", "bytes copyKind"),
    (Work::Set, "MEMSET", "bytes"),
    (Work::Graph, "GRAPH_TRACE", "graphId graphExecId"),
    (Work::Wait, "SYNCHRONIZATION", "syncType"),
];

/// A table of work, by what it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    Kernel,
    /// From the host, or between devices.
    Copy,
    Set,
    Graph,
    Wait,
}

/// A launch of the program; times are ns from its first call on.
struct Launch {
    /// The number that the call and its work share.
    number: i64,
    /// The kind of work as the stand-in numbers it.
    kind: i64,
    /// The kernel's name.
    name: i64,
    call_ns: i64,
    length_ns: i64,
    device: i64,
    stream: i64,
}

impl Launch {
    /// The launches: on each device three streams, on which nothing overlaps.
    fn all() -> Vec<Self> {
        let launch = |at: i64| Self {
            number: at + 1,
            kind: at % 6,
            name: at % KERNELS,
            call_ns: at * 20_000,
            length_ns: 1_000 + at * 37 % 4_000,
            device: at / 7 % 2,
            stream: 7 + at % 3,
        };
        (0..LAUNCHES).map(launch).collect()
    }

    /// When its work begins.
    fn start_ns(&self) -> i64 {
        self.call_ns + 3_000
    }

    /// The line by which the program launches it, its first call at `zero_ns`.
    fn line(&self, zero_ns: i64) -> String {
        let start_ns = zero_ns + self.start_ns();
        let Self {
            kind,
            name,
            length_ns,
            stream,
            device,
            ..
        } = self;
        format!("at {kind} {name} {start_ns} {length_ns} {stream} {device}")
    }

    /// The table of its work.
    fn work(&self) -> Work {
        match self.kind {
            0 => Work::Kernel,
            1 | 2 => Work::Copy,
            3 => Work::Set,
            4 => Work::Graph,
            _ => Work::Wait,
        }
    }

    /// The row of its work in an export.
    fn row(&self, process: i64) -> Vec<i64> {
        let work = self.work();
        // Three nodes one after the other.
        let length_ns = if work == Work::Graph {
            3 * self.length_ns
        } else {
            self.length_ns
        };
        let (start, context) = (self.start_ns(), self.device + 1);
        let mut row = vec![start, start + length_ns, self.device, context];
        row.extend([self.stream, self.number, process << 24]);
        match work {
            Work::Kernel => row.extend([FIRST_KERNEL + self.name, 40, 108, 1, 1, 256, 1, 1, 0, 0]),
            Work::Copy => row.extend([4096, if self.kind == 1 { 1 } else { 10 }]),
            Work::Set => row.push(8192),
            Work::Graph => row.extend([5, 0]),
            Work::Wait => row.push(3),
        }
        row
    }
}

/// Writes the launches as `nsys export --type sqlite` does.
fn export(to: &Path, launches: &[Launch], process: i64) {
    let database = Connection::open(to).unwrap();
    database
        .execute_batch(
            "BEGIN;
             CREATE TABLE StringIds (id INTEGER, value TEXT);
             INSERT INTO StringIds VALUES (1, 'cudaLaunchKernel_v7000'), (2, 'cuLaunchKernel');
             CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);
             INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_PRODUCT_NAME', 'NVIDIA Nsight Systems'),
                 ('EXPORT_PRODUCT_VERSION', '2023.4.4.54'), ('EXPORT_SCHEMA_VERSION', '3.7.2');
             CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT, totalMemory INTEGER, smCount INTEGER,
                 computeMajor INTEGER, computeMinor INTEGER);
             INSERT INTO TARGET_INFO_GPU VALUES (0, 'Simulated GPU', 85899345920, 132, 9, 0),
                 (1, 'Simulated GPU', 85899345920, 132, 9, 0);",
        )
        .unwrap();
    for kernel in 0..KERNELS {
        let name = format!("void kernel_{kernel}<float, {kernel}>(float*, int)");
        let insert = "INSERT INTO StringIds VALUES (?, ?)";
        database.execute(insert, (FIRST_KERNEL + kernel, name)).unwrap();
    }
    for (work, name, own) in TABLES {
        let of_table = launches.iter().filter(|launch| launch.work() == work);
        let rows: Vec<Vec<i64>> = of_table.map(|launch| launch.row(process)).collect();
        put(&database, name, &format!("{ACTIVITY} {own}"), &rows);
    }
    let thread = (process << 24) | process;
    let calls = launches.iter().flat_map(|launch| {
        let (start, end) = (launch.call_ns, launch.call_ns + 2_000);
        let call = |class, name| vec![start, end, class, thread, launch.number, name, 0];
        [call(0, RUNTIME_CALL), call(1, DRIVER_CALL)]
    });
    let columns = "start end eventClass globalTid correlationId nameId returnValue";
    put(&database, "RUNTIME", columns, &calls.collect::<Vec<_>>());
    database.execute_batch("COMMIT").unwrap();
    database.close().unwrap();
}

/// Makes a table of numbers.
fn put(database: &Connection, name: &str, columns: &str, rows: &[Vec<i64>]) {
    let declared: Vec<String> = columns
        .split(' ')
        .map(|column| format!("\"{column}\" INTEGER"))
        .collect();
    let table = format!("CUPTI_ACTIVITY_KIND_{name}");
    let create = format!("CREATE TABLE {table} ({})", declared.join(", "));
    database.execute(&create, ()).unwrap();
    let places = vec!["?"; declared.len()].join(", ");
    let insert = format!("INSERT INTO {table} VALUES ({places})");
    let mut insert = database.prepare(&insert).unwrap();
    for row in rows {
        insert.execute(rusqlite::params_from_iter(row)).unwrap();
    }
}

/// A device without the name of the table that tells of it.
fn device(device: &Device) -> Device {
    Device {
        figures_from: String::new(),
        ..device.clone()
    }
}

/// Holds the columns of a category against those of the export.
fn compare(category: Category, ours: &Events, theirs: &Events) {
    assert_eq!(ours.names, theirs.names, "{category:?}");
    assert_eq!(ours.name, theirs.name, "{category:?}");
    assert_eq!(ours.start_ns, theirs.start_ns, "{category:?}");
    assert_eq!(ours.duration_ns, theirs.duration_ns, "{category:?}");
    assert_eq!((&ours.row, &ours.lane), (&theirs.row, &theirs.lane), "{category:?}");
    assert_eq!(ours.correlation, theirs.correlation, "{category:?}");
    for id in category.columns() {
        assert_eq!(ours.column(*id), theirs.column(*id), "{category:?} {id:?}");
    }
    // What one of them does not know, memory kinds among others, is not compared.
    for id in category.optional_columns() {
        if let (Some(ours), Some(theirs)) = (ours.column(*id), theirs.column(*id)) {
            assert_eq!(ours, theirs, "{category:?} {id:?}");
        }
    }
}

#[test]
fn a_program_has_the_same_tables_by_the_tracer_and_as_an_export_of_nsight_systems() {
    let launches = Launch::all();
    let rig = Rig::new(1305);
    let mut program = rig.start();
    let process = i64::from(program.child.id());
    let mut agent = Agent::of(&rig);
    agent.begin(Kinds::ALL);
    let zero_ns = i64::try_from(now_ns()).unwrap();
    for launch in &launches {
        // The work and its two calls.
        assert_eq!(program.recorded(&launch.line(zero_ns)), 3);
    }
    agent.end();
    let ours = timeline(tracer::read(&rig.trace(), &ReadLimits::default()).unwrap());
    let file = rig.path("export.sqlite");
    export(&file, &launches, process);
    let theirs = timeline(nsys_sqlite::read(&file, &ReadLimits::default()).unwrap());

    assert_eq!(ours.capture.losses, theirs.capture.losses);
    assert_eq!(ours.capture.rows, theirs.capture.rows);
    let devices = |timeline: &Timeline| timeline.capture.devices.iter().map(device).collect::<Vec<_>>();
    assert_eq!(devices(&ours), devices(&theirs));
    assert_eq!(devices(&ours).len(), 2);
    assert_eq!(ours.capture.duration_ns, theirs.capture.duration_ns);
    let counts = |timeline: &Timeline| -> Vec<(Category, usize)> {
        let events = timeline.capture.events.iter();
        events.map(|(category, events)| (*category, events.len())).collect()
    };
    assert_eq!(counts(&ours), counts(&theirs));
    for (category, expected) in [
        (Category::CudaKernel, 100),
        (Category::CudaMemcpyH2d, 100),
        (Category::CudaMemcpyP2p, 100),
        (Category::CudaMemset, 100),
        (Category::CudaGraph, 100),
        (Category::CudaSync, 100),
        (Category::CudaApi, 1200),
    ] {
        assert!(counts(&ours).contains(&(category, expected)), "{category:?}");
    }
    for (category, events) in &ours.capture.events {
        compare(*category, events, &theirs.capture.events[category]);
        // Every work has found its call.
        if events.column(ColumnId::Launch).is_some() {
            let is_joined = |at| events.number(ColumnId::Launch, at) != Some(u64::from(ColumnId::NO_LAUNCH));
            assert!((0..events.len()).all(is_joined), "{category:?}");
        }
    }
    assert_eq!(ours.figures, theirs.figures);
    assert_eq!(ours.lod, theirs.lod);
    assert!(program.end().success());
}
