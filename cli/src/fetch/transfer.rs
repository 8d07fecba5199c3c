//! Transfers one artifact into a file beside its destination, from where the last attempt ended.

use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_RANGE, IF_RANGE, RANGE};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use sha2::{Digest as _, Sha256};
use tokio::fs::File;
use tokio::io::AsyncWriteExt as _;
use tokio::time::{sleep, timeout};

use crate::fetch::{FetchError, MAX_FAILED_ATTEMPTS, STALL_TIMEOUT, Wanted};
use crate::gateway::{Gateway, GatewayError};

/// Digits of the SHA-256 in the name of an unfinished file.
const NAME_DIGEST_DIGITS: usize = 16;

/// The result of fetching an artifact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The artifact was transferred.
    Fetched,
    /// The destination had the artifact's content before.
    AlreadyThere,
}

/// Called with the number of bytes of an artifact that were received so far.
pub type ProgressCallback<'a> = &'a (dyn Fn(u64) + Send + Sync);

/// Fetches an artifact to its destination, and checks its SHA-256 before the file gets its name.
/// `force` replaces another file at the destination.
pub async fn fetch(
    gateway: &Gateway,
    wanted: &Wanted,
    force: bool,
    on_progress: ProgressCallback<'_>,
) -> Result<Outcome, FetchError> {
    let folder = match wanted.to.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    tokio::fs::create_dir_all(folder).await.map_err(io(folder))?;
    let is_there = tokio::fs::try_exists(&wanted.to).await;
    if is_there.map_err(io(&wanted.to))? {
        if checksum(&wanted.to).await? == wanted.sha256 {
            return Ok(Outcome::AlreadyThere);
        }
        if !force {
            return Err(FetchError::Exists(wanted.to.clone()));
        }
    }
    let digits = wanted.sha256.get(..NAME_DIGEST_DIGITS).unwrap_or(&wanted.sha256);
    let part = folder.join(format!(".{}.{digits}.part", wanted.name));
    receive(gateway, wanted, &part, on_progress).await?;
    let found = checksum(&part).await?;
    if found != wanted.sha256 {
        tokio::fs::remove_file(&part).await.map_err(io(&part))?;
        return Err(FetchError::Corrupt {
            name: wanted.name.clone(),
            expected: wanted.sha256.clone(),
            found,
        });
    }
    let renamed = tokio::fs::rename(&part, &wanted.to).await;
    renamed.map_err(io(&wanted.to))?;
    Ok(Outcome::Fetched)
}

/// Continues the unfinished file until it has the artifact's size. The error is `BrokenOff` after
/// too many attempts in a row that received nothing.
async fn receive(
    gateway: &Gateway,
    wanted: &Wanted,
    part: &Path,
    on_progress: ProgressCallback<'_>,
) -> Result<(), FetchError> {
    let mut file = open(part, wanted.sensitive).await?;
    let mut received = file.metadata().await.map_err(io(part))?.len();
    if received > wanted.bytes {
        received = restart(&mut file, part).await?;
    }
    let mut fruitless = 0;
    while received < wanted.bytes {
        on_progress(received);
        let before = received;
        let reason = match attempt(gateway, wanted, (&mut file, part), &mut received, on_progress).await {
            Ok(()) => "the connection ended".to_owned(),
            Err(AttemptError::Permanent(error)) => return Err(error),
            Err(AttemptError::Transient(reason)) => reason,
        };
        file.flush().await.map_err(io(part))?;
        if received >= wanted.bytes {
            break;
        }
        fruitless = if received > before { 1 } else { fruitless + 1 };
        if fruitless > MAX_FAILED_ATTEMPTS {
            return Err(FetchError::BrokenOff {
                name: wanted.name.clone(),
                received,
                size: wanted.bytes,
                reason,
            });
        }
        sleep(Duration::from_millis(100) * 2_u32.pow(fruitless)).await;
    }
    file.sync_all().await.map_err(io(part))
}

/// Why an attempt ended.
enum AttemptError {
    /// Trying again does not help.
    Permanent(FetchError),
    /// Trying again may help; the text is the reason.
    Transient(String),
}

impl From<FetchError> for AttemptError {
    fn from(error: FetchError) -> Self {
        Self::Permanent(error)
    }
}

async fn attempt(
    gateway: &Gateway,
    wanted: &Wanted,
    (file, part): (&mut File, &Path),
    received: &mut u64,
    on_progress: ProgressCallback<'_>,
) -> Result<(), AttemptError> {
    let path = format!(
        "/api/profiling/session/{}/artifacts/{}?capture={}",
        wanted.session, wanted.name, wanted.capture
    );
    let mut headers = HeaderMap::new();
    if *received > 0 {
        // A part of another content is not continued: the gateway then sends all of it.
        let range = HeaderValue::try_from(format!("bytes={received}-"));
        let tag = HeaderValue::try_from(format!("\"{}\"", wanted.sha256));
        if let (Ok(range), Ok(tag)) = (range, tag) {
            headers.insert(RANGE, range);
            headers.insert(IF_RANGE, tag);
        }
    }
    let answer = match gateway.get(&path, headers).await {
        Ok(answer) => answer,
        Err(GatewayError::Refused { status, .. }) if status == StatusCode::RANGE_NOT_SATISFIABLE => {
            *received = restart(file, part).await?;
            return Err(AttemptError::Transient("what was here did not fit to it".to_owned()));
        }
        Err(error) if error.is_transient() => return Err(AttemptError::Transient(error.to_string())),
        Err(error) => return Err(AttemptError::Permanent(error.into())),
    };
    if *received > 0 && !continues(&answer, *received) {
        *received = restart(file, part).await?;
        on_progress(0);
        if answer.status() != StatusCode::OK {
            return Err(AttemptError::Transient(
                "the gateway sent another part than was asked for".to_owned(),
            ));
        }
    }
    let mut body = answer.into_body();
    loop {
        let frame = match timeout(STALL_TIMEOUT, body.frame()).await {
            Err(_elapsed) => {
                return Err(AttemptError::Transient(format!(
                    "nothing came for {} s",
                    STALL_TIMEOUT.as_secs()
                )));
            }
            Ok(None) => return Ok(()),
            Ok(Some(Err(error))) => return Err(AttemptError::Transient(crate::cluster::with_causes(&error))),
            Ok(Some(Ok(frame))) => frame,
        };
        let Ok(piece) = frame.into_data() else {
            continue;
        };
        let piece: Bytes = piece;
        let length = u64::try_from(piece.len()).unwrap_or(u64::MAX);
        if received.saturating_add(length) > wanted.bytes {
            *received = restart(file, part).await?;
            return Err(AttemptError::Transient("more came than was published".to_owned()));
        }
        file.write_all(&piece).await.map_err(io(part))?;
        *received += length;
        on_progress(*received);
    }
}

/// Whether the answer continues where the file ends.
fn continues(answer: &Response<Incoming>, received: u64) -> bool {
    let range = answer
        .headers()
        .get(CONTENT_RANGE)
        .and_then(|value| value.to_str().ok());
    answer.status() == StatusCode::PARTIAL_CONTENT && range.is_some_and(|range| begins_at(range, received))
}

fn begins_at(range: &str, received: u64) -> bool {
    let first = range
        .strip_prefix("bytes ")
        .and_then(|range| range.split_once('-'))
        .map(|(first, _)| first);
    first.and_then(|first| first.parse().ok()) == Some(received)
}

/// Opens the unfinished file, locked for this program alone.
async fn open(part: &Path, sensitive: bool) -> Result<File, FetchError> {
    let mut options = std::fs::OpenOptions::new();
    options.create(true).append(true);
    if sensitive {
        options.mode(0o600);
    }
    let path = part.to_owned();
    let opened = tokio::task::spawn_blocking(move || {
        let file = options.open(&path)?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(std::fs::TryLockError::WouldBlock) => Err(std::io::Error::other("another program is fetching it")),
            Err(std::fs::TryLockError::Error(error)) => Err(error),
        }
    });
    let opened = opened.await.unwrap_or_else(|error| Err(std::io::Error::other(error)));
    opened.map(File::from_std).map_err(io(part))
}

async fn restart(file: &mut File, part: &Path) -> Result<u64, FetchError> {
    file.set_len(0).await.map_err(io(part))?;
    Ok(0)
}

/// SHA-256 of a file, in lower-case hexadecimal digits.
async fn checksum(path: &Path) -> Result<String, FetchError> {
    let path = path.to_owned();
    let (path, sum) = tokio::task::spawn_blocking(move || {
        let sum = sum(&path);
        (path, sum)
    })
    .await
    .unwrap_or_else(|error| (PathBuf::new(), Err(std::io::Error::other(error))));
    sum.map_err(io(&path))
}

fn sum(path: &Path) -> std::io::Result<String> {
    let mut file = std::fs::File::open(path)?;
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        let read = file.read(&mut buffer)?;
        let Some(piece) = buffer.get(..read).filter(|piece| !piece.is_empty()) else {
            break;
        };
        digest.update(piece);
    }
    Ok(hex::encode(digest.finalize()))
}

fn io(path: &Path) -> impl FnOnce(std::io::Error) -> FetchError + '_ {
    |source| FetchError::Io {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_goes_on_where_the_file_ends_or_not_at_all() {
        let rows = [
            ("bytes 5-9/10", true),
            ("bytes 0-9/10", false),
            ("bytes 50-59/60", false),
            ("bytes */10", false),
            ("5-9", false),
        ];
        for (range, expected) in rows {
            assert_eq!(begins_at(range, 5), expected, "{range}");
        }
    }
}
