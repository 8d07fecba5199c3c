//! Reads the fleet's files of the days that are asked for, and adds them up as they come. What cannot be read is counted by its reason.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::Arc;

use axum::body::Bytes;
use flopwatch_artifacts::object_store::{Bucket, BucketError};
use flopwatch_fleet::{
    CaptureRow, FilePath, Limits, Query as Sums, ReadError, Row, Table, Totals, Trigger, read_captures, read_rows,
};
use futures::{StreamExt as _, TryStreamExt as _};
use jiff::civil::Date;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;

use crate::gateway::fleet::FleetProblem;
use crate::gateway::problem::Problem;

/// Captures that are under way at once, and days that are listed at once.
const AT_ONCE: usize = 32;
const DAYS_AT_ONCE: usize = 8;
/// Captures that are added up in one go.
const IN_ONE_GO: usize = 32;
/// Most files of a table that a request reads.
const MOST_FILES: usize = 50_000;
/// Most days that a time touches.
const MOST_DAYS: usize = 100;
/// Memory of files of one request that are under way, in KiB. A file that takes more has the turn
/// for such files, of which there is one for all requests.
const BUDGET_KIB: u32 = 16 << 10;
/// How much more memory a file takes while it is read than in the store.
const EXPANSION: u64 = 8;

/// Whose files count, and which.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    /// Captures of this namespace alone, whose files are read and no others; none: of all.
    pub(super) namespace: Option<String>,
    /// What is added up.
    pub(super) sums: Sums,
}

/// Files that could not be read for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unread {
    /// How many.
    pub(super) files: u64,
    /// The path of one.
    pub(super) example: String,
}

/// The sums, and what is not in them.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) totals: Totals,
    /// Captures that no schedule drew.
    pub(super) not_drawn: u64,
    /// Captures with files on two days.
    pub(super) repeated: u64,
    /// Captures that say that they have rows, and have none here.
    pub(super) captures_without_rows: u64,
    /// Files of rows without their capture.
    pub(super) rows_without_capture: u64,
    /// By reason.
    pub(super) unread: BTreeMap<String, Unread>,
}

impl Found {
    fn unread(&mut self, reason: String, path: String) {
        let unread = self.unread.entry(reason).or_insert(Unread {
            files: 0,
            example: path,
        });
        unread.files += 1;
    }
}

/// Where a capture's files lie, in every table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    date: Date,
    namespace: String,
    capture_uid: String,
}

impl Place {
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

/// Files of a table by their places, with their bytes.
type Files = BTreeMap<Place, u64>;

/// Why a file was not read. Says nothing of whose it is.
#[derive(Debug, thiserror::Error)]
enum Unreadable {
    /// The store does not give it.
    #[error("the object store {0}")]
    Store(&'static str),
    /// It is no table of the fleet, or too large.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// It is of another capture, namespace or day than its name says.
    #[error("the file holds something else than its name says")]
    Other,
    /// Reading it ended early.
    #[error("the reading of the file ended early")]
    Ended,
}

impl From<BucketError> for Unreadable {
    fn from(error: BucketError) -> Self {
        Self::Store(match error {
            BucketError::Missing(_) => "does not hold the file any more",
            BucketError::Slow { .. } => "is too slow",
            BucketError::Refused { .. } | BucketError::NoBucket(_) => "refuses the file",
            BucketError::Corrupt { .. } => "holds a file that is too large",
            _ => "fails",
        })
    }
}

/// What became of a capture's files.
struct Read {
    /// The capture, where it counts, and its rows.
    capture: Option<(CaptureRow, Vec<Row>)>,
    /// Whether rows are missing that it says it has.
    without_rows: bool,
    /// A file that was not read.
    unread: Option<(Table, Unreadable)>,
    place: Place,
    /// Its memory.
    _room: Option<OwnedSemaphorePermit>,
}

/// Where files of a request have their memory from.
#[derive(Clone, Debug)]
struct Budget {
    /// Its own, in KiB.
    own: Arc<Semaphore>,
    /// The turn for large files, which all requests share.
    large: Arc<Semaphore>,
}

/// Reads what is asked for, and adds it to the totals. `large` is the turn for large files.
pub(super) async fn read(
    bucket: &Bucket,
    asked: Asked,
    totals: Totals,
    large: &Arc<Semaphore>,
) -> Result<Found, Problem> {
    let days = FilePath::days(asked.sums.from_ns, asked.sums.until_ns, MOST_DAYS);
    let days = days.map_err(|error| Problem::BadRequest(error.to_string()))?;
    let mut found = Found {
        totals,
        not_drawn: 0,
        repeated: 0,
        captures_without_rows: 0,
        rows_without_capture: 0,
        unread: BTreeMap::new(),
    };
    let namespace = asked.namespace.as_deref();
    let captures = list(bucket, Table::Captures, &days, namespace, &mut found).await?;
    let rows = list(bucket, Table::Rows, &days, namespace, &mut found).await?;
    let lonely = rows.keys().filter(|place| !captures.contains_key(*place)).count();
    found.rows_without_capture = u64::try_from(lonely).unwrap_or(u64::MAX);
    let mut known = BTreeSet::new();
    let mut once = Vec::new();
    for (place, bytes) in captures {
        if known.insert(place.capture_uid.clone()) {
            let bytes_of_rows = rows.get(&place).copied();
            once.push((place, bytes, bytes_of_rows));
        } else {
            found.repeated += 1;
        }
    }
    let budget = Budget {
        own: Arc::new(Semaphore::new(usize::try_from(BUDGET_KIB).unwrap_or(usize::MAX))),
        large: Arc::clone(large),
    };
    let asked = Arc::new(asked);
    let reads = futures::stream::iter(once).map(|(place, bytes, bytes_of_rows)| {
        let (bucket, asked, budget) = (bucket.clone(), Arc::clone(&asked), budget.clone());
        async move { read_one(&bucket, &asked, &budget, place, bytes, bytes_of_rows).await }
    });
    let mut reads = pin!(reads.buffer_unordered(AT_ONCE).ready_chunks(IN_ONE_GO));
    while let Some(chunk) = reads.next().await {
        let asked = Arc::clone(&asked);
        let added = spawn_blocking(move || {
            for read in chunk {
                add(&mut found, &asked, read);
            }
            found
        });
        found = added
            .await
            .map_err(|error| Problem::Own(format!("the sums of the fleet ended early: {error}")))?;
    }
    Ok(found)
}

/// The files of a table on those days, of the namespace or of all. What lies there and is none is
/// counted as unread.
async fn list(
    bucket: &Bucket,
    table: Table,
    days: &[Date],
    namespace: Option<&str>,
    found: &mut Found,
) -> Result<Files, Problem> {
    let folders = days.iter().map(|day| FilePath::folder(table, *day, namespace));
    let lists: Vec<_> = folders.map(|folder| bucket.list_fleet_files(&folder)).collect();
    let mut listed = futures::stream::iter(lists).flatten_unordered(DAYS_AT_ONCE);
    let mut files = Files::new();
    while let Some(file) = listed.try_next().await.map_err(FleetProblem::Store)? {
        match FilePath::parse(&file.path).filter(|path| path.table == table) {
            Some(path) => drop(files.insert(Place::of(path), file.bytes)),
            None => found.unread(Unreadable::Other.to_string(), file.path),
        }
        if files.len() > MOST_FILES {
            return Err(Problem::BadRequest(format!(
                "there are more than {MOST_FILES} captures in that time, which one request does not read: ask for a shorter time"
            )));
        }
    }
    Ok(files)
}

async fn read_one(
    bucket: &Bucket,
    asked: &Asked,
    budget: &Budget,
    place: Place,
    bytes: u64,
    bytes_of_rows: Option<u64>,
) -> Read {
    let mut read = Read {
        capture: None,
        without_rows: false,
        unread: None,
        _room: room(budget, bytes.saturating_add(bytes_of_rows.unwrap_or(0))).await,
        place: place.clone(),
    };
    let capture = match capture(bucket, &place).await {
        Ok(capture) => capture,
        Err(error) => {
            read.unread = Some((Table::Captures, error));
            return read;
        }
    };
    if !takes(asked, &capture) {
        return read;
    }
    let holds = capture
        .categories
        .iter()
        .any(|category| asked.sums.categories.contains(category));
    let rows = match (holds, bytes_of_rows) {
        (false, _) => Ok(Vec::new()),
        (true, None) => {
            read.without_rows = true;
            return Read {
                capture: Some((without_rows(capture), Vec::new())),
                ..read
            };
        }
        (true, Some(_)) => rows(bucket, asked, &place, &capture).await,
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

/// Room for files of so many bytes while they are read.
async fn room(budget: &Budget, bytes: u64) -> Option<OwnedSemaphorePermit> {
    let kib = bytes.saturating_mul(EXPANSION) >> 10;
    let own = u32::try_from(kib).ok().filter(|kib| *kib <= BUDGET_KIB);
    let room = match own {
        Some(kib) => Arc::clone(&budget.own).acquire_many_owned(kib.max(1)).await,
        None => Arc::clone(&budget.large).acquire_owned().await,
    };
    room.ok()
}

/// A capture whose rows are not here counts as one in which nothing was captured: as one in which nothing ran it would make sums too low.
fn without_rows(mut capture: CaptureRow) -> CaptureRow {
    capture.categories.clear();
    capture
}

/// Whether a capture is of the time.
fn takes(asked: &Asked, capture: &CaptureRow) -> bool {
    (asked.sums.from_ns..asked.sums.until_ns).contains(&capture.window_start)
}

async fn content(bucket: &Bucket, table: Table, place: &Place) -> Result<Bytes, Unreadable> {
    let path = place.path(table).to_string();
    let most = u64::try_from(Limits::default().file_bytes).unwrap_or(u64::MAX);
    Ok(bucket.get_fleet_file(&path, most).await?)
}

/// The capture at a place; what it says of itself must be what the place says.
async fn capture(bucket: &Bucket, place: &Place) -> Result<CaptureRow, Unreadable> {
    let content = content(bucket, Table::Captures, place).await?;
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
    let right = path.is_ok_and(|path| Place::of(path) == *place);
    right.then_some(capture).ok_or(Unreadable::Other)
}

/// The rows of a capture that are added up.
async fn rows(bucket: &Bucket, asked: &Asked, place: &Place, capture: &CaptureRow) -> Result<Vec<Row>, Unreadable> {
    let content = content(bucket, Table::Rows, place).await?;
    let read = spawn_blocking(move || read_rows(content, &Limits::default())).await;
    let mut rows = read.map_err(|_ended| Unreadable::Ended)??;
    let same = |row: &Row| row.capture_uid == capture.capture_uid && row.namespace == capture.namespace;
    if !rows.iter().all(same) {
        return Err(Unreadable::Other);
    }
    rows.retain(|row| asked.sums.categories.contains(&row.category));
    Ok(rows)
}

fn add(found: &mut Found, asked: &Asked, read: Read) {
    if let Some((table, error)) = read.unread {
        found.unread(error.to_string(), read.place.path(table).to_string());
    }
    let Some((capture, rows)) = read.capture else { return };
    let drawn = capture.trigger == Trigger::Schedule.as_str();
    found.not_drawn += u64::from(!drawn);
    if !drawn && asked.sums.drawn_only {
        return;
    }
    found.captures_without_rows += u64::from(read.without_rows);
    found.totals.add(&[capture], &rows);
}
