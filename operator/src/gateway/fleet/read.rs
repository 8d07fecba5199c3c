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
/// Memory of files of one request that are under way, in KiB.
const BUDGET_KIB: u32 = 48 << 10;
/// How much more memory a file takes while it is read than in the store.
const EXPANSION: u64 = 8;

/// Whose files count, and which.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    /// Captures of this namespace alone; none: of all.
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

/// Files of a table by day and capture, with their bytes.
type Files = BTreeMap<(Date, String), u64>;

/// Why a file was not read. Says nothing of whose it is.
#[derive(Debug, thiserror::Error)]
enum Unreadable {
    /// The store does not give it.
    #[error("the object store {0}")]
    Store(&'static str),
    /// It is no table of the fleet, or too large.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// It is of another capture or day than its name says.
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
    /// The capture's place.
    place: (Date, String),
    /// Its memory.
    _room: Option<OwnedSemaphorePermit>,
}

/// Reads what is asked for, and adds it to the totals.
pub(super) async fn read(bucket: &Bucket, asked: Asked, totals: Totals) -> Result<Found, Problem> {
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
    let captures = list(bucket, Table::Captures, &days, &mut found).await?;
    let rows = list(bucket, Table::Rows, &days, &mut found).await?;
    let lonely = rows.keys().filter(|place| !captures.contains_key(*place)).count();
    found.rows_without_capture = u64::try_from(lonely).unwrap_or(u64::MAX);
    let mut known = BTreeSet::new();
    let mut once = Vec::new();
    for (place, bytes) in captures {
        if known.insert(place.1.clone()) {
            let bytes_of_rows = rows.get(&place).copied();
            once.push((place, bytes, bytes_of_rows));
        } else {
            found.repeated += 1;
        }
    }
    let budget = Arc::new(Semaphore::new(usize::try_from(BUDGET_KIB).unwrap_or(usize::MAX)));
    let asked = Arc::new(asked);
    let reads = futures::stream::iter(once).map(|(place, bytes, bytes_of_rows)| {
        let (bucket, asked, budget) = (bucket.clone(), Arc::clone(&asked), Arc::clone(&budget));
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

/// The files of a table on those days. What lies there and is none is counted as unread.
async fn list(bucket: &Bucket, table: Table, days: &[Date], found: &mut Found) -> Result<Files, Problem> {
    let folders = days.iter().map(|day| FilePath::folder(table, *day));
    let lists: Vec<_> = folders.map(|folder| bucket.list_fleet_files(&folder)).collect();
    let mut listed = futures::stream::iter(lists).flatten_unordered(DAYS_AT_ONCE);
    let mut files = Files::new();
    while let Some(file) = listed.try_next().await.map_err(FleetProblem::Store)? {
        match FilePath::parse(&file.path).filter(|path| path.table == table) {
            Some(path) => drop(files.insert((path.date, path.capture_uid), file.bytes)),
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
    budget: &Arc<Semaphore>,
    place: (Date, String),
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

/// Room for files of so many bytes while they are read. One that is larger than all of it waits until there is nothing else.
async fn room(budget: &Arc<Semaphore>, bytes: u64) -> Option<OwnedSemaphorePermit> {
    let kib = bytes.saturating_mul(EXPANSION) >> 10;
    let kib = u32::try_from(kib).unwrap_or(BUDGET_KIB).clamp(1, BUDGET_KIB);
    Arc::clone(budget).acquire_many_owned(kib).await.ok()
}

/// A capture whose rows are not here counts as one in which nothing was captured: as one in which nothing ran it would make sums too low.
fn without_rows(mut capture: CaptureRow) -> CaptureRow {
    capture.categories.clear();
    capture
}

/// Whether a capture is of the namespace and the time.
fn takes(asked: &Asked, capture: &CaptureRow) -> bool {
    let here = asked
        .namespace
        .as_ref()
        .is_none_or(|namespace| *namespace == capture.namespace);
    here && (asked.sums.from_ns..asked.sums.until_ns).contains(&capture.window_start)
}

async fn content(bucket: &Bucket, table: Table, (date, uid): &(Date, String)) -> Result<Bytes, Unreadable> {
    let path = FilePath {
        table,
        date: *date,
        capture_uid: uid.clone(),
    };
    let most = u64::try_from(Limits::default().file_bytes).unwrap_or(u64::MAX);
    Ok(bucket.get_fleet_file(&path.to_string(), most).await?)
}

async fn capture(bucket: &Bucket, place: &(Date, String)) -> Result<CaptureRow, Unreadable> {
    let content = content(bucket, Table::Captures, place).await?;
    let read = spawn_blocking(move || read_captures(content, &Limits::default())).await;
    let [capture] =
        <[CaptureRow; 1]>::try_from(read.map_err(|_ended| Unreadable::Ended)??).map_err(|_many| Unreadable::Other)?;
    let path = FilePath::new(Table::Captures, capture.window_start, &capture.capture_uid);
    let right = path.is_ok_and(|path| (path.date, path.capture_uid) == *place);
    right.then_some(capture).ok_or(Unreadable::Other)
}

/// The rows of a capture that are added up.
async fn rows(
    bucket: &Bucket,
    asked: &Asked,
    place: &(Date, String),
    capture: &CaptureRow,
) -> Result<Vec<Row>, Unreadable> {
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
        let (date, capture_uid) = read.place;
        let path = FilePath {
            table,
            date,
            capture_uid,
        };
        found.unread(error.to_string(), path.to_string());
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
