//! Reads byte ranges of a file at the gateway. All of them are of the same content, by its entity
//! tag.

use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use flopwatch_api::capture::Capture;
use flopwatch_api::session::ProfilingSession;
use http::header::{CONTENT_RANGE, ETAG, IF_RANGE, RANGE};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use kube::ResourceExt as _;
use tokio::time::{sleep, timeout};

use super::plan::{checked_name, id, one, published, why_nothing};
use super::{FetchError, MAX_FAILED_ATTEMPTS, STALL_TIMEOUT};
use crate::analysis;
use crate::cluster::with_causes;
use crate::gateway::Gateway;
use crate::print::line;

/// The address of a file at the gateway, with the session and capture that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileAddress {
    /// Name of the file's session.
    session: String,
    /// The file's capture, by its names in the gateway's URLs.
    capture: analysis::CaptureAddress,
    /// URL path and query of the file.
    path: String,
    /// Name of the file.
    name: String,
    /// SHA-256 of a file that was published; None for one that is made on demand.
    sha256: Option<String>,
}

impl FileAddress {
    /// The address of the file `name` of a capture: an artifact, or a file that is made of the
    /// timeline on demand. `capture` may be None where the session has one capture alone.
    pub fn of(
        session: &ProfilingSession,
        captures: &[Capture],
        capture: Option<&str>,
        name: &str,
    ) -> Result<Self, FetchError> {
        let chosen = one(session, captures, capture)?;
        let of = checked_name(chosen, name)?;
        let id = id(session, chosen)?;
        let session_name = session.name_any();
        if published(chosen).is_empty() {
            return Err(FetchError::NothingPublished {
                why: why_nothing(session, captures),
                session: session_name,
            });
        }
        let artifact = published(chosen).iter().find(|artifact| artifact.name == name);
        let capture = chosen.name_any();
        Ok(Self {
            path: format!("/api/profiling/session/{id}/artifacts/{of}?capture={capture}"),
            session: session_name,
            capture: analysis::CaptureAddress {
                session: id.to_owned(),
                capture: Some(capture),
            },
            name: of.to_owned(),
            sha256: artifact.map(|artifact| artifact.sha256.clone()),
        })
    }

    /// Name of the file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file's capture, by its names in the gateway's URLs.
    pub fn capture(&self) -> analysis::CaptureAddress {
        self.capture.clone()
    }

    /// Name of the file's session.
    pub fn session(&self) -> &str {
        &self.session
    }
}

/// A file at the gateway whose size and entity tag are known.
#[derive(Clone, Debug)]
pub struct Remote {
    address: FileAddress,
    tag: HeaderValue,
    size: u64,
}

impl Remote {
    /// Requests the first bytes of a file, at most `first`, and gives them with the file. A file
    /// that has to be made first is waited for.
    pub async fn find(gateway: &Gateway, address: FileAddress, first: u64) -> Result<(Self, Bytes), FetchError> {
        let no_ranges = |address: &FileAddress| FetchError::NoParts(line(&address.name));
        let mut headers = HeaderMap::new();
        let range = HeaderValue::try_from(format!("bytes=0-{}", first.saturating_sub(1)));
        headers.insert(RANGE, range.map_err(|_odd| no_ranges(&address))?);
        let answer = gateway.get_when_ready(&address.path, &headers).await?;
        let tag = answer.headers().get(ETAG).filter(|tag| is_strong(tag)).cloned();
        let tag = tag.ok_or_else(|| no_ranges(&address))?;
        if let Some(expected) = &address.sha256
            && tag.as_bytes() != format!("\"{expected}\"").as_bytes()
        {
            return Err(FetchError::Corrupt {
                name: address.name.clone(),
                expected: expected.clone(),
                found: line(&String::from_utf8_lossy(tag.as_bytes())),
            });
        }
        let (got, size) = part(&answer)
            .filter(|(got, _)| got.start == 0)
            .ok_or_else(|| no_ranges(&address))?;
        let remote = Self { address, tag, size };
        let bytes = match body(answer, &got).await {
            Ok(bytes) => bytes,
            Err(_broke) => remote.read(gateway, got).await?,
        };
        Ok((remote, bytes))
    }

    /// Size of the file in bytes.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// The address of the file.
    pub const fn address(&self) -> &FileAddress {
        &self.address
    }

    /// Requests the bytes of a range, which is within the file and not empty. The error is `Changed`
    /// where the file has another content than when it was found.
    pub async fn read(&self, gateway: &Gateway, range: Range<u64>) -> Result<Bytes, FetchError> {
        let mut headers = HeaderMap::new();
        let asked = HeaderValue::try_from(format!("bytes={}-{}", range.start, range.end.saturating_sub(1)));
        headers.insert(
            RANGE,
            asked.map_err(|_odd| FetchError::NoParts(line(&self.address.name)))?,
        );
        headers.insert(IF_RANGE, self.tag.clone());
        let mut failed = 0;
        loop {
            let reason = match gateway.get(&self.address.path, headers.clone()).await {
                Ok(answer) => {
                    self.check_same_content(&answer, &range)?;
                    match body(answer, &range).await {
                        Ok(bytes) => return Ok(bytes),
                        Err(reason) => reason,
                    }
                }
                Err(error) if error.is_transient() => error.to_string(),
                Err(error) => return Err(error.into()),
            };
            failed += 1;
            if failed > MAX_FAILED_ATTEMPTS {
                return Err(FetchError::BrokenOff {
                    name: self.address.name.clone(),
                    received: 0,
                    size: range.end.saturating_sub(range.start),
                    reason,
                });
            }
            sleep(Duration::from_millis(100) * 2_u32.pow(failed)).await;
        }
    }

    /// Checks that the answer holds that range of the content which was found.
    fn check_same_content(&self, answer: &Response<Incoming>, range: &Range<u64>) -> Result<(), FetchError> {
        let same = answer.headers().get(ETAG) == Some(&self.tag);
        if same && part(answer) == Some((range.clone(), self.size)) {
            return Ok(());
        }
        Err(if same {
            FetchError::NoParts(line(&self.address.name))
        } else {
            FetchError::Changed(line(&self.address.name))
        })
    }
}

/// Whether an entity tag is strong: a weak one does not say that the bytes are the same.
fn is_strong(tag: &HeaderValue) -> bool {
    let tag = tag.as_bytes();
    tag.len() > 2 && tag.starts_with(b"\"") && tag.ends_with(b"\"")
}

/// The range of a file that the answer holds, and the size of the file.
fn part(answer: &Response<Incoming>) -> Option<(Range<u64>, u64)> {
    if answer.status() != StatusCode::PARTIAL_CONTENT {
        return None;
    }
    content_range(answer.headers().get(CONTENT_RANGE)?.to_str().ok()?)
}

fn content_range(text: &str) -> Option<(Range<u64>, u64)> {
    let (range, size) = text.strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let (first, last, size): (u64, u64, u64) = (first.parse().ok()?, last.parse().ok()?, size.parse().ok()?);
    (first <= last && last < size).then_some((first..last + 1, size))
}

/// Reads the body, which has as many bytes as the range; the error says what broke.
async fn body(answer: Response<Incoming>, range: &Range<u64>) -> Result<Bytes, String> {
    let length = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX);
    let body = timeout(STALL_TIMEOUT, Limited::new(answer.into_body(), length).collect()).await;
    let body = body.map_err(|_elapsed| format!("it was not there within {} s", STALL_TIMEOUT.as_secs()))?;
    let bytes = body.map_err(|error| with_causes(error.as_ref()))?.to_bytes();
    if bytes.len() == length {
        Ok(bytes)
    } else {
        Err(format!("{} bytes came where {length} were asked for", bytes.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_says_which_part_it_is() {
        let rows = [
            ("bytes 0-9/100", Some((0..10, 100))),
            ("bytes 5-9/10", Some((5..10, 10))),
            ("bytes 5-4/10", None),
            ("bytes 5-10/10", None),
            ("bytes 0-9/*", None),
            ("bytes */10", None),
            ("0-9/10", None),
        ];
        for (text, expected) in rows {
            assert_eq!(content_range(text), expected, "{text}");
        }
    }

    #[test]
    fn only_a_strong_tag_tells_contents_apart() {
        for (tag, strong) in [("\"a\"", true), ("W/\"a\"", false), ("\"\"", false), ("a", false)] {
            assert_eq!(is_strong(&HeaderValue::from_static(tag)), strong, "{tag}");
        }
    }
}
