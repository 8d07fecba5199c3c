//! Which bytes of an artifact a request is after (RFC 9110, sections 13 and 14).

use std::ops::Range;

use axum::http::HeaderMap;
use axum::http::header::{IF_NONE_MATCH, IF_RANGE, RANGE};
use http_range_header::{EndPosition, StartPosition, parse_range_header};

/// What to answer with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    /// The client has it.
    NotModified,
    /// The whole object.
    Whole,
    /// These bytes; never empty.
    Part(Range<u64>),
    /// The range lies outside.
    Unsatisfiable,
}

/// Reads the conditions of a request for an artifact of `bytes` bytes. Ranges that are malformed,
/// or more than one, are ignored, as the standard allows; dates are never compared, because an
/// artifact has none.
pub(crate) fn select(headers: &HeaderMap, sha256: &str, bytes: u64) -> Selection {
    let tag = format!("\"{sha256}\"");
    let has = headers
        .get_all(IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .any(|value| {
            value
                .split(',')
                .map(str::trim)
                .any(|candidate| candidate == "*" || candidate.strip_prefix("W/").unwrap_or(candidate) == tag)
        });
    if has {
        return Selection::NotModified;
    }
    if headers
        .get(IF_RANGE)
        .is_some_and(|value| value.as_bytes() != tag.as_bytes())
    {
        return Selection::Whole;
    }
    let mut ranges = headers.get_all(RANGE).iter();
    match (ranges.next().and_then(|value| value.to_str().ok()), ranges.next()) {
        (Some(range), None) => part(range, bytes),
        _ => Selection::Whole,
    }
}

fn part(header: &str, bytes: u64) -> Selection {
    let Ok(parsed) = parse_range_header(header) else {
        // The one well-formed range that the parser refuses: the last 0 bytes.
        return if header == "bytes=-0" {
            Selection::Unsatisfiable
        } else {
            Selection::Whole
        };
    };
    let [range] = parsed.ranges.as_slice() else {
        return Selection::Whole;
    };
    let range = match (range.start, range.end) {
        (StartPosition::FromLast(last), _) => bytes.saturating_sub(last)..bytes,
        (StartPosition::Index(start), EndPosition::LastByte) => start..bytes,
        (StartPosition::Index(start), EndPosition::Index(end)) if end < start => return Selection::Whole,
        (StartPosition::Index(start), EndPosition::Index(end)) => start..end.saturating_add(1).min(bytes),
    };
    if range.is_empty() {
        Selection::Unsatisfiable
    } else {
        Selection::Part(range)
    }
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    const SHA: &str = "abc";

    fn ask(pairs: &[(HeaderName, &'static str)], bytes: u64) -> Selection {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(name.clone(), HeaderValue::from_static(value));
        }
        select(&headers, SHA, bytes)
    }

    #[test]
    fn a_single_range_selects_its_bytes() {
        for (range, expected) in [
            ("bytes=0-0", Selection::Part(0..1)),
            ("bytes=0-99", Selection::Part(0..100)),
            ("bytes=90-1000", Selection::Part(90..100)),
            ("bytes=99-", Selection::Part(99..100)),
            ("bytes=-1", Selection::Part(99..100)),
            ("bytes=-1000", Selection::Part(0..100)),
            ("bytes=5-18446744073709551615", Selection::Part(5..100)),
            ("bytes=100-", Selection::Unsatisfiable),
            ("bytes=100-200", Selection::Unsatisfiable),
            ("bytes=-0", Selection::Unsatisfiable),
            ("bytes=9-1", Selection::Whole),
            ("bytes=", Selection::Whole),
            ("bytes=a-b", Selection::Whole),
            ("bytes=--1", Selection::Whole),
            ("bytes=0-99999999999999999999", Selection::Whole),
            ("lines=0-1", Selection::Whole),
            ("bytes=0-1,5-6", Selection::Whole),
        ] {
            assert_eq!(ask(&[(RANGE, range)], 100), expected, "{range}");
        }
    }

    #[test]
    fn an_empty_artifact_has_no_range() {
        assert_eq!(ask(&[(RANGE, "bytes=0-")], 0), Selection::Unsatisfiable);
        assert_eq!(ask(&[(RANGE, "bytes=-5")], 0), Selection::Unsatisfiable);
        assert_eq!(ask(&[], 0), Selection::Whole);
    }

    #[test]
    fn a_client_that_has_it_is_told_so() {
        for tags in ["\"abc\"", "W/\"abc\"", "\"x\", \"abc\"", "*"] {
            assert_eq!(
                ask(&[(IF_NONE_MATCH, tags), (RANGE, "bytes=0-1")], 9),
                Selection::NotModified,
                "{tags}"
            );
        }
        assert_eq!(ask(&[(IF_NONE_MATCH, "\"abcd\"")], 9), Selection::Whole);
    }

    #[test]
    fn a_range_of_something_else_gets_everything() {
        assert_eq!(
            ask(&[(IF_RANGE, "\"abc\""), (RANGE, "bytes=0-1")], 9),
            Selection::Part(0..2)
        );
        for other in ["\"abd\"", "W/\"abc\"", "Wed, 21 Oct 2015 07:28:00 GMT"] {
            assert_eq!(
                ask(&[(IF_RANGE, other), (RANGE, "bytes=0-1")], 9),
                Selection::Whole,
                "{other}"
            );
        }
    }
}
