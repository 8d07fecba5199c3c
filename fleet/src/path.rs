//! Where the file of a capture lies: folders as Hive names them, so that readers skip dates and
//! tenants without opening files.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use crate::table::{SCHEMA_VERSION, Table};

/// Most bytes of a capture's UID.
const LONGEST_UID: usize = 64;
/// Most bytes of a namespace's name.
const LONGEST_NAMESPACE: usize = 63;

/// Why there is no such path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// The UID cannot be a file's name.
    #[error("the UID {0:?} of a capture must be 1 to 64 letters, digits and hyphens")]
    Uid(String),
    /// The namespace cannot be a folder's name.
    #[error("the namespace {0:?} of a capture must be 1 to 63 small letters, digits and hyphens")]
    Namespace(String),
    /// The time has no date.
    #[error("{0} ns since 1970 is no time that has a date")]
    Time(i64),
}

/// A file of a fleet.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FilePath {
    /// Table of the file.
    pub table: Table,
    /// The day on which the window began, in UTC.
    pub date: Date,
    /// Namespace of the capture. What is summed up for one tenant reads the files of no other.
    pub namespace: String,
    /// UID of the capture.
    pub capture_uid: String,
}

impl FilePath {
    /// Where a table's part of a capture lies, whose window began so many nanoseconds after 1970.
    pub fn new(table: Table, window_start: i64, namespace: &str, capture_uid: &str) -> Result<Self, PathError> {
        if !is_uid(capture_uid) {
            return Err(PathError::Uid(capture_uid.to_owned()));
        }
        if !is_namespace(namespace) {
            return Err(PathError::Namespace(namespace.to_owned()));
        }
        Ok(Self {
            table,
            date: date(window_start)?,
            namespace: namespace.to_owned(),
            capture_uid: capture_uid.to_owned(),
        })
    }

    /// The folder of a table's day, or of that of one namespace, with a slash behind it: what a
    /// gateway lists.
    pub fn folder(table: Table, date: Date, namespace: Option<&str>) -> String {
        let day = format!("fleet/v{SCHEMA_VERSION}/table={}/date={date}/", table.as_str());
        match namespace {
            None => day,
            Some(namespace) => format!("{day}tenant={namespace}/"),
        }
    }

    /// The days that windows which began in `from..until` lie in, the earliest first; at most
    /// `max`, the latest ones.
    pub fn days(from: i64, until: i64, max: usize) -> Result<Vec<Date>, PathError> {
        let mut days = Vec::new();
        if from >= until {
            return Ok(days);
        }
        let first = date(from)?;
        let mut day = date(until.saturating_sub(1))?;
        while day >= first && days.len() < max {
            days.push(day);
            match day.yesterday() {
                Ok(before) => day = before,
                Err(_) => break,
            }
        }
        days.reverse();
        Ok(days)
    }

    /// Reads a path below the fleet's prefix; `None` of one that is not of this version's files.
    pub fn parse(path: &str) -> Option<Self> {
        let mut parts = path.split('/');
        let version = parts
            .next()
            .filter(|part| *part == "fleet")
            .and_then(|_| parts.next())?;
        let version = version.strip_prefix('v')?;
        let table = parts.next()?.strip_prefix("table=")?;
        let table = Table::ALL.into_iter().find(|known| known.as_str() == table)?;
        let date = parts.next()?.strip_prefix("date=")?;
        let namespace = parts.next()?.strip_prefix("tenant=")?;
        let capture_uid = parts.next()?.strip_suffix(".parquet")?;
        let found = Self {
            table,
            date: date.parse().ok()?,
            namespace: namespace.to_owned(),
            capture_uid: capture_uid.to_owned(),
        };
        let named = is_namespace(namespace) && is_uid(capture_uid);
        let ours = version == SCHEMA_VERSION.to_string() && parts.next().is_none() && named;
        // One way to write each path, so that no file is there twice.
        (ours && found.to_string() == path).then_some(found)
    }
}

impl std::fmt::Display for FilePath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let folder = Self::folder(self.table, self.date, Some(&self.namespace));
        write!(f, "{folder}{}.parquet", self.capture_uid)
    }
}

fn is_uid(uid: &str) -> bool {
    let fits = (1..=LONGEST_UID).contains(&uid.len());
    fits && uid.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// A DNS label, as the API server names namespaces.
fn is_namespace(name: &str) -> bool {
    let is_label = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let ends_well = !name.starts_with('-') && !name.ends_with('-');
    (1..=LONGEST_NAMESPACE).contains(&name.len()) && ends_well && name.bytes().all(is_label)
}

fn date(ns: i64) -> Result<Date, PathError> {
    let time = Timestamp::from_nanosecond(i128::from(ns)).map_err(|_no_such_time| PathError::Time(ns))?;
    Ok(TimeZone::UTC.to_datetime(time).date())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-25T23:59:59.999999999Z.
    const LATE: i64 = 1_795_651_199_999_999_999;

    #[test]
    fn a_path_is_written_as_it_is_read() {
        let path = FilePath::new(Table::Rows, LATE, "ml-team", "5a3e9c1e-0b7d-4c2a-9d8e-1f2a3b4c5d6e").unwrap();
        let text = path.to_string();
        assert_eq!(
            text,
            "fleet/v1/table=rows/date=2026-11-25/tenant=ml-team/5a3e9c1e-0b7d-4c2a-9d8e-1f2a3b4c5d6e.parquet"
        );
        assert_eq!(FilePath::parse(&text), Some(path));
        let next = FilePath::new(Table::Captures, LATE + 1, "b", "a").unwrap();
        let text = next.to_string();
        assert_eq!(text, "fleet/v1/table=captures/date=2026-11-26/tenant=b/a.parquet");
        let [day, tenant] = [None, Some("b")].map(|namespace| FilePath::folder(next.table, next.date, namespace));
        assert_eq!(day, "fleet/v1/table=captures/date=2026-11-26/");
        assert!(text.starts_with(&tenant) && tenant.starts_with(&day) && tenant.ends_with('/'));
    }

    #[test]
    fn what_is_not_ours_is_no_path() {
        for text in [
            "",
            "fleet",
            "fleet/v2/table=rows/date=2026-11-25/tenant=b/a.parquet",
            "fleet/v1/table=kernels/date=2026-11-25/tenant=b/a.parquet",
            "fleet/v1/table=rows/date=2026-11-31/tenant=b/a.parquet",
            "fleet/v1/table=rows/date=20261125/tenant=b/a.parquet",
            "fleet/v1/table=rows/date=2026-11-25/a.parquet",
            "fleet/v1/table=rows/date=2026-11-25/b/a.parquet",
            "fleet/v1/table=rows/date=2026-11-25/tenant=/a.parquet",
            "fleet/v1/table=rows/date=2026-11-25/tenant=B/a.parquet",
            "fleet/v1/table=rows/date=2026-11-25/tenant=b/a.parquet/b",
            "fleet/v1/table=rows/date=2026-11-25/tenant=b/.parquet",
            "fleet/v1/table=rows/date=2026-11-25/tenant=b/a.csv",
            "/fleet/v1/table=rows/date=2026-11-25/tenant=b/a.parquet",
        ] {
            assert_eq!(FilePath::parse(text), None, "{text}");
        }
        for uid in ["", "../a", "a/b", "a.b", "é", &"a".repeat(65)] {
            assert!(FilePath::new(Table::Rows, LATE, "b", uid).is_err(), "{uid}");
        }
        for namespace in ["", "..", "a/b", "a.b", "A", "-a", "a-", &"a".repeat(64)] {
            let refused = FilePath::new(Table::Rows, LATE, namespace, "a");
            assert_eq!(refused, Err(PathError::Namespace(namespace.to_owned())));
        }
    }

    #[test]
    fn days_are_those_that_hold_a_part_of_the_time() {
        let texts = |from, until, max| -> Vec<String> {
            let days = FilePath::days(from, until, max).unwrap();
            days.iter().map(Date::to_string).collect()
        };
        let day = 86_400_000_000_000;
        assert_eq!(texts(LATE, LATE + 1, 9), ["2026-11-25"]);
        assert_eq!(texts(LATE, LATE + 2, 9), ["2026-11-25", "2026-11-26"]);
        assert_eq!(texts(LATE - 9 * day, LATE, 2), ["2026-11-24", "2026-11-25"]);
        assert!(texts(LATE, LATE, 9).is_empty());
    }
}
