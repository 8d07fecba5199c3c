//! When a session began, since the Unix epoch.

use std::collections::BTreeMap;

use super::ReportError;
use super::container::{Container, message};
use super::layout::STARTS;
use super::rows::Rows;
use super::session::Session;
use crate::wire::Message;

/// The section that says how clocks differ, since 2025.6.
const SECTION: &str = "Time Conversion Data";

/// Numbers of clocks in [`SECTION`].
const MONOTONIC: u64 = 7;
const UTC: u64 = 11;

/// The table of the session's start; `None` where the report does not say it.
pub(super) fn session_start(container: &Container, session: &Session) -> Result<Option<Rows>, ReportError> {
    let start = match of_offsets(&session.offsets) {
        None => of_section(container, session)?,
        found => found,
    };
    Ok(start.and_then(|start| u64::try_from(start).ok()).map(|start| {
        let mut rows = Rows::new(&STARTS);
        rows.push(&[start], &[]);
        rows
    }))
}

/// By what the session's state says, until 2026.1.1: from the session's clock to 3, from there to
/// that of the epoch.
fn of_offsets(offsets: &BTreeMap<(u64, u64), i64>) -> Option<i64> {
    let to_target = offsets.get(&(1, 3))?;
    let to_epoch = offsets.get(&(3, 9))?;
    let of_start = offsets.get(&(7, 1)).copied().unwrap_or(0);
    0_i64
        .checked_sub(*to_target)?
        .checked_sub(*to_epoch)?
        .checked_sub(of_start)
}

/// By the pair of times of the epoch and of the profiler's clock that belong together.
fn of_section(container: &Container, session: &Session) -> Result<Option<i64>, ReportError> {
    let Some((section, start)) = container.section(SECTION).zip(session.start) else {
        return Ok(None);
    };
    let bytes = container.read(section, SECTION)?;
    let pair = pair(message(&bytes, section.begin))?;
    Ok(pair.and_then(|(epoch, clock)| epoch.checked_add(start)?.checked_sub(clock)))
}

/// Clocks 1, by their ids, and what is known of two of them 2.
fn pair(section: Message<'_>) -> Result<Option<(i64, i64)>, ReportError> {
    let mut clocks: BTreeMap<&[u8], u64> = BTreeMap::new();
    let mut pairs = Vec::new();
    for (list, entry) in entries(section)? {
        let (mut ids, mut clock, mut times) = ([&[][..]; 2], 0, None);
        for field in entry.fields() {
            let (number, value) = field.map_err(ReportError::of(SECTION))?;
            match (list, number) {
                (_, 1) => ids[0] = value.bytes().unwrap_or_default(),
                (1, 2) => clock = value.number().unwrap_or(0),
                (2, 2) => ids[1] = value.bytes().unwrap_or_default(),
                (2, 3) => times = value.message(),
                _ => {}
            }
        }
        if list == 1 {
            clocks.insert(ids[0], clock);
        } else {
            pairs.extend(times.map(|times| (ids, times)));
        }
    }
    for (ids, times) in pairs {
        if ids.map(|id| clocks.get(id).copied()) == [Some(UTC), Some(MONOTONIC)] {
            return times_of(times);
        }
    }
    Ok(None)
}

/// The entries of both lists, each with the number of its list.
fn entries(section: Message<'_>) -> Result<Vec<(u64, Message<'_>)>, ReportError> {
    let damaged = ReportError::of(SECTION);
    let mut found = Vec::new();
    for field in section.fields() {
        let (list @ (1 | 2), value) = field.map_err(&damaged)? else {
            continue;
        };
        for field in value.message().into_iter().flat_map(Message::fields) {
            let (_, value) = field.map_err(&damaged)?;
            found.extend(value.message().map(|entry| (list, entry)));
        }
    }
    Ok(found)
}

/// The pair 1 in a conversion.
fn times_of(conversion: Message<'_>) -> Result<Option<(i64, i64)>, ReportError> {
    let damaged = ReportError::of(SECTION);
    for field in conversion.fields() {
        let (1, value) = field.map_err(&damaged)? else { continue };
        let Some(pair) = value.message() else { continue };
        let mut times = (0, 0);
        for field in pair.fields() {
            let (number, value) = field.map_err(&damaged)?;
            let time = value.number().map_or(0, u64::cast_signed);
            match number {
                1 => times.0 = time,
                2 => times.1 = time,
                _ => {}
            }
        }
        return Ok(Some(times));
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_between_clocks_add_up_to_the_start_since_the_epoch() {
        let mut offsets = BTreeMap::from([((1, 3), -7), ((3, 9), -1_700_000_000_000_000_000), ((7, 1), 5)]);
        assert_eq!(of_offsets(&offsets), Some(1_700_000_000_000_000_002));
        offsets.insert((3, 9), i64::MIN);
        assert_eq!(of_offsets(&offsets), None);
        assert_eq!(of_offsets(&BTreeMap::new()), None);
    }
}
