//! Exports of our own making, in the layout of `nsys export --type hdf`: a compound dataset per
//! table, chunks of 4,096 rows, shuffle and deflate, strings of variable length. Beside it lies the
//! same in the layout of `nsys export --type sqlite`, with NULL where HDF5 has none.

use std::path::{Path, PathBuf};

use flopwatch_model::{Capture, Timeline};
use flopwatch_trace::nsys_hdf::ReadError;
use flopwatch_trace::{ReadLimits, nsys_hdf, nsys_sqlite};
use hdf5::types::{H5Type, TypeDescriptor, VarLenAscii};
use hdf5::{File, FileBuilder, H5Type as DeriveH5Type};
use rusqlite::Connection;
use rusqlite::types::Value;

use crate::capture::published;

/// A row of a table as both containers hold it.
pub(crate) trait TableRow: H5Type {
    /// Columns with the type that SQLite exports declare.
    fn columns() -> Vec<(&'static str, &'static str)>;
    /// Values of the row's cells.
    fn cells(&self) -> Vec<Value>;
}

/// A value as SQLite exports hold it.
pub(crate) trait SqlCell {
    const TYPE: &'static str = "INTEGER";
    fn cell(&self) -> Value;
}

macro_rules! integers {
    ($($type:ty => $wide:expr),*) => {
        $(impl SqlCell for $type { fn cell(&self) -> Value { Value::Integer($wide(*self)) } })*
    };
}

integers!(i64 => i64::from, i32 => i64::from, u32 => i64::from, u64 => u64::cast_signed);

impl SqlCell for VarLenAscii {
    const TYPE: &'static str = "TEXT";

    fn cell(&self) -> Value {
        if self.is_empty() {
            Value::Null
        } else {
            Value::Text(self.as_str().to_owned())
        }
    }
}

/// As the tables name their columns. Rows of `work` begin with those of everything on a GPU.
macro_rules! table_row {
    ($name:ident: work { $($field:ident: $type:ty),* $(,)? }) => {
        table_row!($name {
            start: i64,
            end: i64,
            deviceId: u32,
            contextId: u64,
            streamId: u64,
            correlationId: u32,
            globalPid: u64,
            $($field: $type),*
        });
    };
    ($name:ident { $($field:ident: $type:ty),* $(,)? }) => {
        #[derive(DeriveH5Type, Debug, Clone, Default)]
        #[repr(C)]
        #[allow(non_snake_case)]
        pub(crate) struct $name { $(pub(crate) $field: $type),* }

        impl TableRow for $name {
            fn columns() -> Vec<(&'static str, &'static str)> {
                vec![$((stringify!($field), <$type as SqlCell>::TYPE)),*]
            }

            fn cells(&self) -> Vec<Value> {
                vec![$(self.$field.cell()),*]
            }
        }
    };
}

pub(crate) use table_row;

table_row!(Kernel: work {
    greenContextId: u64,
    demangledName: u64,
    shortName: u64,
    mangledName: u64,
    registersPerThread: u32,
    gridX: i32,
    gridY: i32,
    gridZ: i32,
    blockX: i32,
    blockY: i32,
    blockZ: i32,
    staticSharedMemory: i32,
    dynamicSharedMemory: i32,
    graphNodeId: u64,
});
table_row!(Memcpy: work {
    greenContextId: u64,
    bytes: u64,
    copyKind: u64,
});
table_row!(Memset: work {
    greenContextId: u64,
    value: u32,
    bytes: u64,
});
table_row!(Synchronization: work { syncType: u32 });
table_row!(Runtime {
    start: i64,
    end: i64,
    eventClass: u32,
    globalTid: u64,
    correlationId: u32,
    nameId: u64,
    returnValue: u32,
});
table_row!(Osrt {
    start: i64,
    end: i64,
    eventClass: u32,
    globalTid: u64,
    nameId: u64,
    nestingLevel: u32
});
table_row!(LibraryCall {
    start: i64,
    end: i64,
    eventClass: u32,
    globalTid: u64,
    nameId: u64,
});
table_row!(Switch {
    start: i64,
    cpu: u32,
    isSchedIn: u32,
    globalTid: u64,
});
table_row!(Nvtx {
    start: i64,
    end: i64,
    eventType: u32,
    color: u32,
    text: VarLenAscii,
    globalTid: u64,
    endGlobalTid: u64,
    textId: u32,
    domainId: u64,
});
table_row!(StringId {
    id: i32,
    value: VarLenAscii
});
table_row!(NameValue {
    name: VarLenAscii,
    value: VarLenAscii
});
table_row!(Process {
    globalPid: u64,
    pid: u64,
    name: VarLenAscii
});
table_row!(ThreadName {
    nameId: u64,
    priority: u64,
    globalTid: u64
});
table_row!(Gpu {
    id: u32,
    name: VarLenAscii,
    uuid: VarLenAscii,
    totalMemory: u64,
    memoryBandwidth: u64,
    smCount: u32,
    computeMajor: u32,
    computeMinor: u32,
});
table_row!(SessionStart { utcEpochNs: u64 });
table_row!(Analysis {
    duration: u64,
    startTime: u64,
    stopTime: u64
});
table_row!(GraphTrace: work {
    graphId: u32,
    graphExecId: u32,
});
table_row!(Composite {
    id: u64,
    start: i64,
    cpu: u32,
    threadState: u64,
    globalTid: u64,
    cpuCycles: u64,
});
table_row!(Callchain {
    id: u64,
    symbol: u32,
    module: u32,
    unresolved: u32,
    stackDepth: i32,
});

pub(crate) fn text(value: &str) -> VarLenAscii {
    VarLenAscii::from_ascii(value).unwrap()
}

/// `globalTid` of a thread on machine 1.
pub(crate) fn global(process: u64, thread: u64) -> u64 {
    (1 << 48) | (process << 24) | thread
}

/// Which nsys the export pretends to be of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Schema {
    V2022,
    V2023,
}

/// How the tests open files. A child that another test is starting inherits HDF5's lock until its
/// `exec`, so that opening the file once more in that moment would fail.
pub(crate) fn unlocked() -> FileBuilder {
    let mut options = File::with_options();
    options.with_fapl(|access| access.file_locking(false));
    options
}

/// An export under construction.
pub(crate) struct Export {
    folder: tempfile::TempDir,
    file: File,
    database: Connection,
    schema: Schema,
}

impl Export {
    /// With what every export has: versions and the session's start. `strings` are `StringIds`.
    pub(crate) fn new(schema: Schema, strings: &[(i32, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = unlocked().create(folder.path().join("export.h5")).unwrap();
        let database = Connection::open(folder.path().join("export.sqlite")).unwrap();
        let export = Self {
            folder,
            file,
            database,
            schema,
        };
        let (table, product, version) = match schema {
            Schema::V2022 => ("EXPORT_META_DATA", "2022.4.2.1", "3.0.0"),
            Schema::V2023 => ("META_DATA_EXPORT", "2023.4.4.54", "3.7.2"),
        };
        let meta = [
            ("EXPORT_PRODUCT_NAME", "NVIDIA Nsight Systems"),
            ("EXPORT_PRODUCT_VERSION", product),
            ("EXPORT_SCHEMA_VERSION", version),
            ("EXPORT_HOST", "a-host-that-is-nobody's-business"),
        ];
        let strings = strings.iter().map(|(id, value)| StringId {
            id: *id,
            value: text(value),
        });
        let utc = 1_700_000_000_000_000_000;
        export
            .pairs(table, &meta)
            .table("StringIds", &strings.collect::<Vec<StringId>>())
            .table("TARGET_INFO_SESSION_START_TIME", &[SessionStart { utcEpochNs: utc }])
    }

    /// Adds a table, less the columns that this schema does not have yet.
    pub(crate) fn table<T: TableRow>(self, name: &str, rows: &[T]) -> Self {
        let newer: &[&str] = if self.schema == Schema::V2022 {
            &["greenContextId"]
        } else {
            &[]
        };
        self.table_without(name, rows, newer)
    }

    /// Adds a table less some columns.
    pub(crate) fn table_without<T: TableRow>(self, name: &str, rows: &[T], columns: &[&str]) -> Self {
        let TypeDescriptor::Compound(mut compound) = T::type_descriptor() else {
            panic!("rows are compounds")
        };
        compound.fields.retain(|field| !columns.contains(&field.name.as_str()));
        let stored = TypeDescriptor::Compound(compound.to_packed_repr());
        let builder = self.file.new_dataset_builder().chunk(4096).shuffle().deflate(1);
        // The exporter's tables can grow.
        let dataset = builder.empty_as(stored).shape((rows.len()..,)).create(name).unwrap();
        dataset.write_raw(rows).unwrap();
        self.sqlite_table(name, rows, columns);
        self
    }

    fn sqlite_table<T: TableRow>(&self, name: &str, rows: &[T], without: &[&str]) {
        let columns: Vec<(usize, (&str, &str))> = T::columns()
            .into_iter()
            .enumerate()
            .filter(|(_, (column, _))| !without.contains(column))
            .collect();
        let declared: Vec<String> = columns
            .iter()
            .map(|(_, (column, kind))| format!("\"{column}\" {kind}"))
            .collect();
        let create = format!("CREATE TABLE {name} ({})", declared.join(", "));
        self.database.execute(&create, ()).unwrap();
        let places = vec!["?"; columns.len()].join(", ");
        let insert = format!("INSERT INTO {name} VALUES ({places})");
        let mut insert = self.database.prepare(&insert).unwrap();
        self.database.execute("BEGIN", ()).unwrap();
        for row in rows {
            let cells = row.cells();
            let cells = columns.iter().map(|(at, (column, _))| {
                let absent = cells[*at] == Value::Integer(0)
                    && (*column == "textId" || (name == "NVTX_EVENTS" && *column == "end"));
                if absent { Value::Null } else { cells[*at].clone() }
            });
            insert.execute(rusqlite::params_from_iter(cells)).unwrap();
        }
        self.database.execute("COMMIT", ()).unwrap();
    }

    /// Access to the database beside the file, for what no export holds.
    pub(crate) fn forge_sqlite(self, sql: &str) -> Self {
        self.database.execute_batch(sql).unwrap();
        self
    }

    /// What the capture was asked for, as 2023 records it beside command line and environment.
    pub(crate) fn capture_options(self, options: &[(&str, &str)]) -> Self {
        self.pairs("META_DATA_CAPTURE", options)
    }

    /// Adds a table of names and values.
    pub(crate) fn pairs(self, table: &str, pairs: &[(&str, &str)]) -> Self {
        let rows = pairs.iter().map(|(name, value)| NameValue {
            name: text(name),
            value: text(value),
        });
        self.table(table, &rows.collect::<Vec<NameValue>>())
    }

    /// Access to the file itself, for what no export holds.
    pub(crate) fn forge(self, change: impl FnOnce(&File)) -> Self {
        change(&self.file);
        self
    }

    pub(crate) fn finish(self) -> Finished {
        self.file.close().unwrap();
        self.database.close().unwrap();
        Finished {
            path: self.folder.path().join("export.h5"),
            sqlite: self.folder.path().join("export.sqlite"),
            folder: self.folder,
        }
    }
}

/// A written export and the folder that goes with it.
pub(crate) struct Finished {
    folder: tempfile::TempDir,
    path: PathBuf,
    sqlite: PathBuf,
}

impl Finished {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn read(&self) -> Result<Capture, ReadError> {
        self.read_within(&ReadLimits::default())
    }

    pub(crate) fn read_within(&self, limits: &ReadLimits) -> Result<Capture, ReadError> {
        nsys_hdf::read(&self.path, limits)
    }

    pub(crate) fn sqlite(&self) -> &Path {
        &self.sqlite
    }

    pub(crate) fn read_sqlite(&self) -> Result<Capture, ReadError> {
        nsys_sqlite::read(&self.sqlite, &ReadLimits::default())
    }

    pub(crate) fn timeline(&self) -> Timeline {
        published(self.read().unwrap())
    }
}
