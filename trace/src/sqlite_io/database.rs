//! A foreign database, opened so that nothing of it is executed or written.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags};

use super::table::Table;
use crate::hdf5_io::{TableError, TableLimits};

/// First bytes of every SQLite file.
const MAGIC: &[u8] = b"SQLite format 3\0";

/// Longest string or row in bytes. A shader's source or a stack of NVTX payloads fits.
const MAX_VALUE_BYTES: i32 = 64 << 20;
/// Longest statement in bytes, which is also the longest definition of a table in the file.
const MAX_SQL_BYTES: i32 = 1 << 20;
/// Most columns of a table; the widest of nsys has less than 60.
const MAX_COLUMNS: i32 = 1000;
/// Instructions of SQLite's machine between two looks at the clock: some tens of microseconds.
const STEPS_PER_LOOK: i32 = 10_000;

/// Settings of the file that could run code of its making, or write.
const OFF: [DbConfig; 5] = [
    DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA,
    DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER,
    DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW,
    DbConfig::SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER,
    DbConfig::SQLITE_DBCONFIG_WRITABLE_SCHEMA,
];

const LIMITS: [(Limit, i32); 6] = [
    (Limit::SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES),
    (Limit::SQLITE_LIMIT_SQL_LENGTH, MAX_SQL_BYTES),
    (Limit::SQLITE_LIMIT_COLUMN, MAX_COLUMNS),
    (Limit::SQLITE_LIMIT_EXPR_DEPTH, 50),
    (Limit::SQLITE_LIMIT_ATTACHED, 0),
    (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 1),
];

/// Why a database cannot be opened.
#[derive(Debug)]
pub(crate) enum OpenError {
    /// Not there, or not a database.
    NotADatabase(String),
    /// Changes lie beside it in a write-ahead log, which is not read.
    Unfinished(OsString),
}

/// An open database.
#[derive(Debug)]
pub(crate) struct Database {
    connection: Rc<Connection>,
    file: Arc<DatabaseFile>,
}

/// Where a database is, for connections beside the first one: a connection stays on its thread.
#[derive(Debug)]
pub(super) struct DatabaseFile {
    uri: String,
    /// When the queries of all its connections must have ended.
    deadline: Option<Instant>,
}

impl DatabaseFile {
    /// Another connection, with the same limits and deadline.
    pub(super) fn connect(&self) -> rusqlite::Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
        let mut connection = Connection::open_with_flags(&self.uri, flags)?;
        harden(&mut connection, self.deadline)?;
        Ok(connection)
    }
}

impl Database {
    /// Opens the file for reading alone. Queries that run longer than `time` in all fail.
    pub(crate) fn open(path: &Path, time: Duration) -> Result<Self, OpenError> {
        let not = |error: &dyn std::fmt::Display| OpenError::NotADatabase(error.to_string());
        let mut head = [0; MAGIC.len()];
        // A folder or a short file would get a less telling answer from the library.
        std::fs::File::open(path)
            .and_then(|mut file| file.read_exact(&mut head))
            .map_err(|error| not(&error))?;
        if head != MAGIC {
            return Err(not(&"its first bytes are not those of SQLite"));
        }
        let mut log = path.as_os_str().to_owned();
        log.push("-wal");
        if std::fs::metadata(&log).is_ok_and(|log| log.len() > 0) {
            return Err(OpenError::Unfinished(log));
        }
        let file = DatabaseFile {
            uri: uri(path),
            deadline: Instant::now().checked_add(time),
        };
        let connection = file.connect().map_err(|error| not(&error))?;
        Ok(Self {
            connection: Rc::new(connection),
            file: Arc::new(file),
        })
    }

    /// Opens a table; `None` when there is none.
    pub(crate) fn table(&self, name: &str, limits: TableLimits) -> Result<Option<Table>, TableError> {
        Table::open(&self.connection, &self.file, name, limits)
    }

    /// Names of the tables, at most `max`.
    pub(crate) fn names(&self, max: usize) -> Result<Vec<String>, TableError> {
        let damaged = |error: rusqlite::Error| TableError::Damaged {
            table: "sqlite_schema".to_owned(),
            reason: error.to_string(),
        };
        let mut statement = self
            .connection
            .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
            .map_err(damaged)?;
        let names = statement.query_map((), |row| row.get(0)).map_err(damaged)?;
        names.take(max).collect::<Result<Vec<String>, _>>().map_err(damaged)
    }
}

/// `immutable`: no lock is taken, no journal beside the file is looked at, and a folder without
/// write permission is no problem.
fn uri(path: &Path) -> String {
    use std::fmt::Write as _;
    let mut uri = "file:".to_owned();
    // A relative path must not begin with what would be an authority or a scheme.
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    for byte in OsStr::as_bytes(path.as_os_str()) {
        if byte.is_ascii_alphanumeric() || b"/._-".contains(byte) {
            uri.push(char::from(*byte));
        } else {
            // Writing to a string cannot fail.
            write!(uri, "%{byte:02X}").ok();
        }
    }
    uri + "?mode=ro&immutable=1"
}

fn harden(connection: &mut Connection, deadline: Option<Instant>) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    for setting in OFF {
        connection.set_db_config(setting, false)?;
    }
    for (limit, value) in LIMITS {
        connection.set_limit(limit, value)?;
    }
    let late = move || deadline.is_some_and(|deadline| Instant::now() > deadline);
    connection.progress_handler(STEPS_PER_LOOK, Some(late))?;
    // Damaged pages are found where they are read; nothing is mapped, so that a file that shrinks
    // is an error and no signal.
    connection.execute_batch(
        "PRAGMA query_only = 1; PRAGMA cell_size_check = 1; PRAGMA mmap_size = 0; PRAGMA temp_store = 2;",
    )
}
