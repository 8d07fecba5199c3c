//! Reads the fleet's files of the requested days, and adds them up as they come. Files that cannot
//! be read are counted by reason.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::Arc;

use axum::body::Bytes;
use flopwatch_artifacts::object_store::{Bucket, ObjectStoreError};
use flopwatch_fleet::{
    CaptureRow, FilePath, Limits, Query as FleetQuery, ReadError, Row, Table, Totals, Trigger, read_captures, read_rows,
};
use futures::{StreamExt as _, TryStreamExt as _};
use jiff::civil::Date;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;

use crate::gateway::fleet::FleetProblem;
use crate::gateway::problem::Problem;

/// Most captures of a request that are read at once.
const MAX_CONCURRENT_CAPTURES: usize = 32;
/// Most days of a request that are listed at once.
const MAX_CONCURRENT_DAYS: usize = 8;
/// Most captures that one blocking task adds up.
const CAPTURES_PER_BATCH: usize = 32;
/// Most files of a table that a request reads.
const MAX_FILES: usize = 50_000;
/// Most days that the requested time touches.
const MAX_DAYS: usize = 100;
/// Most memory for files of one request that are read at once, in KiB. A file that takes more is
/// read under the permit for large files, of which there is one for all requests.
const MAX_MEMORY_KIB: u32 = 16 << 10;
/// Bytes of memory that a file takes while it is read, for each of its bytes in the store.
const MEMORY_BYTES_PER_STORED_BYTE: u64 = 8;

/// The files that a request reads.
#[derive(Clone, Debug)]
pub(super) struct FleetSelection {
    /// The namespace whose captures are read; None: every namespace.
    pub(super) namespace: Option<String>,
    /// The groups, categories and time that are added up.
    pub(super) query: FleetQuery,
}

/// Files that could not be read for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unread {
    /// Number of files.
    pub(super) files: u64,
    /// Path of the first of them.
    pub(super) example: String,
}

/// The sums of a request, with the counts of what they lack.
#[derive(Debug)]
pub(super) struct FleetSums {
    pub(super) totals: Totals,
    /// Number of captures that no schedule drew.
    pub(super) not_drawn: u64,
    /// Number of captures with files on a second day, which are left out.
    pub(super) repeated: u64,
    /// Number of captures that record that they have rows, and whose file of rows is missing.
    pub(super) captures_without_rows: u64,
    /// Number of files of rows whose capture has no file.
    pub(super) rows_without_capture: u64,
    /// Files that were not read, by reason.
    pub(super) unread: BTreeMap<String, Unread>,
}

impl FleetSums {
    fn unread(&mut self, reason: String, path: String) {
        let unread = self.unread.entry(reason).or_insert(Unread {
            files: 0,
            example: path,
        });
        unread.files += 1;
    }
}

/// The part of a file's path that is the same for a capture in every table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct CaptureKey {
    date: Date,
    namespace: String,
    capture_uid: String,
}

impl CaptureKey {
    fn of(path: FilePath) -> Self {
        Self {
            date: path.date,
            namespace: path.namespace,
            capture_uid: path.capture_uid,
        }
    }

    fn path(&self, table: Table) -> FilePath {
        FilePath {
            table,
            date: self.date,
            namespace: self.namespace.clone(),
            capture_uid: self.capture_uid.clone(),
        }
    }
}

/// The files of a table, with their sizes in bytes.
type Files = BTreeMap<CaptureKey, u64>;

/// Why a file was not read. The message names neither a namespace nor a capture.
#[derive(Debug, thiserror::Error)]
enum Unreadable {
    /// The object store does not give the file.
    #[error("the object store {0}")]
    Store(&'static str),
    /// The file is no table of the fleet, or too large.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The file holds another capture, namespace or day than its path names.
    #[error("the file holds something else than its name says")]
    Other,
    /// The task that reads the file ended early.
    #[error("the reading of the file ended early")]
    Ended,
}

impl From<ObjectStoreError> for Unreadable {
    fn from(error: ObjectStoreError) -> Self {
        Self::Store(match error {
            ObjectStoreError::Missing(_) => "does not hold the file any more",
            ObjectStoreError::Slow { .. } => "is too slow",
            ObjectStoreError::Refused { .. } | ObjectStoreError::NoBucket(_) => "refuses the file",
            ObjectStoreError::Corrupt { .. } => "holds a file that is too large",
            _ => "fails",
        })
    }
}

/// The files of one capture, as they were read.
struct CaptureRead {
    /// The capture with its rows, where it is of the requested time.
    capture: Option<(CaptureRow, Vec<Row>)>,
    /// Whether the capture records that it has rows and their file is missing.
    without_rows: bool,
    /// A file that was not read.
    unread: Option<(Table, Unreadable)>,
    key: CaptureKey,
    /// Permit for the memory of both files.
    _memory_permit: Option<OwnedSemaphorePermit>,
}

/// The permits for the memory of a request's files.
#[derive(Clone, Debug)]
struct MemoryBudget {
    /// The request's own permits, one for each KiB.
    own: Arc<Semaphore>,
    /// The permit for large files, which all requests share.
    large: Arc<Semaphore>,
}

/// Reads the files of `selection` and adds them to `totals`. `large` is the permit for large files.
pub(super) async fn read(
    bucket: &Bucket,
    selection: FleetSelection,
    totals: Totals,
    large: &Arc<Semaphore>,
) -> Result<FleetSums, Problem> {
    let days = FilePath::days(selection.query.from_ns, selection.query.until_ns, MAX_DAYS);
    let days = days.map_err(|error| Problem::BadRequest(error.to_string()))?;
    let mut sums = FleetSums {
        totals,
        not_drawn: 0,
        repeated: 0,
        captures_without_rows: 0,
        rows_without_capture: 0,
        unread: BTreeMap::new(),
    };
    let namespace = selection.namespace.as_deref();
    let captures = list(bucket, Table::Captures, &days, namespace, &mut sums).await?;
    let rows = list(bucket, Table::Rows, &days, namespace, &mut sums).await?;
    let orphans = rows.keys().filter(|key| !captures.contains_key(*key)).count();
    sums.rows_without_capture = u64::try_from(orphans).unwrap_or(u64::MAX);
    let mut known = BTreeSet::new();
    let mut once = Vec::new();
    for (key, bytes) in captures {
        if known.insert(key.capture_uid.clone()) {
            let bytes_of_rows = rows.get(&key).copied();
            once.push((key, bytes, bytes_of_rows));
        } else {
            sums.repeated += 1;
        }
    }
    let budget = MemoryBudget {
        own: Arc::new(Semaphore::new(usize::try_from(MAX_MEMORY_KIB).unwrap_or(usize::MAX))),
        large: Arc::clone(large),
    };
    let selection = Arc::new(selection);
    let reads = futures::stream::iter(once).map(|(key, bytes, bytes_of_rows)| {
        let (bucket, selection, budget) = (bucket.clone(), Arc::clone(&selection), budget.clone());
        async move { read_one(&bucket, &selection, &budget, key, bytes, bytes_of_rows).await }
    });
    let mut reads = pin!(
        reads
            .buffer_unordered(MAX_CONCURRENT_CAPTURES)
            .ready_chunks(CAPTURES_PER_BATCH)
    );
    while let Some(chunk) = reads.next().await {
        let selection = Arc::clone(&selection);
        let added = spawn_blocking(move || {
            for read in chunk {
                add(&mut sums, &selection, read);
            }
            sums
        });
        sums = added
            .await
            .map_err(|error| Problem::Own(format!("the sums of the fleet ended early: {error}")))?;
    }
    Ok(sums)
}

/// Lists the files of a table on those days, of the namespace or of all. Objects that are no files
/// of the table are counted as unread. The problem is `BadRequest` above [`MAX_FILES`] files.
async fn list(
    bucket: &Bucket,
    table: Table,
    days: &[Date],
    namespace: Option<&str>,
    sums: &mut FleetSums,
) -> Result<Files, Problem> {
    let folders = days.iter().map(|day| FilePath::folder(table, *day, namespace));
    let lists: Vec<_> = folders.map(|folder| bucket.list_fleet_files(&folder)).collect();
    let mut listed = futures::stream::iter(lists).flatten_unordered(MAX_CONCURRENT_DAYS);
    let mut files = Files::new();
    while let Some(file) = listed.try_next().await.map_err(FleetProblem::Store)? {
        match FilePath::parse(&file.path).filter(|path| path.table == table) {
            Some(path) => drop(files.insert(CaptureKey::of(path), file.bytes)),
            None => sums.unread(Unreadable::Other.to_string(), file.path),
        }
        if files.len() > MAX_FILES {
            return Err(Problem::BadRequest(format!(
                "there are more than {MAX_FILES} captures in that time, which one request does not read: ask for a shorter time"
            )));
        }
    }
    Ok(files)
}

async fn read_one(
    bucket: &Bucket,
    selection: &FleetSelection,
    budget: &MemoryBudget,
    key: CaptureKey,
    bytes: u64,
    bytes_of_rows: Option<u64>,
) -> CaptureRead {
    let mut read = CaptureRead {
        capture: None,
        without_rows: false,
        unread: None,
        _memory_permit: memory_permit(budget, bytes.saturating_add(bytes_of_rows.unwrap_or(0))).await,
        key: key.clone(),
    };
    let capture = match capture(bucket, &key).await {
        Ok(capture) => capture,
        Err(error) => {
            read.unread = Some((Table::Captures, error));
            return read;
        }
    };
    if !is_in_period(selection, &capture) {
        return read;
    }
    let holds = capture
        .categories
        .iter()
        .any(|category| selection.query.categories.contains(category));
    let rows = match (holds, bytes_of_rows) {
        (false, _) => Ok(Vec::new()),
        (true, None) => {
            read.without_rows = true;
            return CaptureRead {
                capture: Some((without_rows(capture), Vec::new())),
                ..read
            };
        }
        (true, Some(_)) => rows(bucket, selection, &key, &capture).await,
    };
    match rows {
        Ok(rows) => read.capture = Some((capture, rows)),
        Err(error) => {
            read.unread = Some((Table::Rows, error));
            read.capture = Some((without_rows(capture), Vec::new()));
        }
    }
    read
}

/// Waits for memory for files of so many bytes in the store.
async fn memory_permit(budget: &MemoryBudget, bytes: u64) -> Option<OwnedSemaphorePermit> {
    let kib = bytes.saturating_mul(MEMORY_BYTES_PER_STORED_BYTE) >> 10;
    let own = u32::try_from(kib).ok().filter(|kib| *kib <= MAX_MEMORY_KIB);
    let memory_permit = match own {
        Some(kib) => Arc::clone(&budget.own).acquire_many_owned(kib.max(1)).await,
        None => Arc::clone(&budget.large).acquire_owned().await,
    };
    memory_permit.ok()
}

/// A capture whose rows are not here counts as one in which nothing was captured: as one in which
/// nothing ran it would make sums too low.
fn without_rows(mut capture: CaptureRow) -> CaptureRow {
    capture.categories.clear();
    capture
}

/// Whether a capture's window began in the requested time.
fn is_in_period(selection: &FleetSelection, capture: &CaptureRow) -> bool {
    (selection.query.from_ns..selection.query.until_ns).contains(&capture.window_start)
}

async fn content(bucket: &Bucket, table: Table, key: &CaptureKey) -> Result<Bytes, Unreadable> {
    let path = key.path(table).to_string();
    let max_bytes = u64::try_from(Limits::default().file_bytes).unwrap_or(u64::MAX);
    Ok(bucket.get_fleet_file(&path, max_bytes).await?)
}

/// Reads the file of a capture; its day, namespace and UID must be those of its path.
async fn capture(bucket: &Bucket, key: &CaptureKey) -> Result<CaptureRow, Unreadable> {
    let content = content(bucket, Table::Captures, key).await?;
    let read = spawn_blocking(move || read_captures(content, &Limits::default())).await;
    let [capture] =
        <[CaptureRow; 1]>::try_from(read.map_err(|_ended| Unreadable::Ended)??).map_err(|_many| Unreadable::Other)?;
    let CaptureRow {
        window_start,
        namespace,
        capture_uid,
        ..
    } = &capture;
    let path = FilePath::new(Table::Captures, *window_start, namespace, capture_uid);
    let right = path.is_ok_and(|path| CaptureKey::of(path) == *key);
    right.then_some(capture).ok_or(Unreadable::Other)
}

/// Reads the rows of a capture, of the requested categories alone.
async fn rows(
    bucket: &Bucket,
    selection: &FleetSelection,
    key: &CaptureKey,
    capture: &CaptureRow,
) -> Result<Vec<Row>, Unreadable> {
    let content = content(bucket, Table::Rows, key).await?;
    let read = spawn_blocking(move || read_rows(content, &Limits::default())).await;
    let mut rows = read.map_err(|_ended| Unreadable::Ended)??;
    let same = |row: &Row| row.capture_uid == capture.capture_uid && row.namespace == capture.namespace;
    if !rows.iter().all(same) {
        return Err(Unreadable::Other);
    }
    rows.retain(|row| selection.query.categories.contains(&row.category));
    Ok(rows)
}

fn add(sums: &mut FleetSums, selection: &FleetSelection, read: CaptureRead) {
    if let Some((table, error)) = read.unread {
        sums.unread(error.to_string(), read.key.path(table).to_string());
    }
    let Some((capture, rows)) = read.capture else { return };
    let drawn = capture.trigger == Trigger::Schedule.as_str();
    sums.not_drawn += u64::from(!drawn);
    if !drawn && selection.query.drawn_only {
        return;
    }
    sums.captures_without_rows += u64::from(read.without_rows);
    sums.totals.add(&[capture], &rows);
}
