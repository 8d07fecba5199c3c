//! Users for sandboxed tools: no two that live at once have the same, nor the same group.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

/// Numbers that belong to nobody else: above those that systemd gives to containers, below the half
/// of the space that programs with signed numbers trip over.
pub const DEFAULT: RangeInclusive<u32> = 1_900_000_000..=1_900_000_255;

/// Where users are taken from.
#[derive(Debug, Clone)]
pub struct Users(Arc<Pool>);

#[derive(Debug)]
struct Pool {
    /// None: everybody is the caller.
    range: Option<RangeInclusive<u32>>,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    users: BTreeSet<u32>,
    last: Option<u32>,
}

/// Why there is no user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UsersError {
    /// Each is in use.
    #[error("all {0} users for sandboxed tools are in use")]
    Exhausted(u64),
    /// What was named is no such range.
    #[error("{0:?} is no range of users: FIRST-LAST, above 0 and below 4294967295, without 65532 to 65535")]
    NoRange(String),
}

/// A user, and the group of the same number; free for others when it is dropped.
#[derive(Debug)]
pub struct User {
    id: u32,
    of: Users,
}

impl Users {
    /// Everybody is the calling user: for programs of one person, whose tools have namespaces to be
    /// apart.
    pub fn caller() -> Self {
        Self::of(None)
    }

    /// Users with IDs of this range.
    pub fn range(range: RangeInclusive<u32>) -> Self {
        Self::of(Some(range))
    }

    fn of(range: Option<RangeInclusive<u32>>) -> Self {
        Self(Arc::new(Pool {
            range,
            taken: Mutex::default(),
        }))
    }

    /// Whether tools are other users than the caller.
    pub fn are_others(&self) -> bool {
        self.0.range.is_some()
    }

    /// A user that no living tool has; the one that was given back last comes last.
    pub fn lease(&self) -> Result<User, UsersError> {
        let Some(range) = self.0.range.clone() else {
            return Ok(self.hand_out(rustix::process::geteuid().as_raw()));
        };
        let mut taken = self.0.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let after = taken.last.map_or(*range.start(), |last| last.saturating_add(1));
        let order = (after..=*range.end()).chain(*range.start()..after.min(*range.end()));
        let free = order.into_iter().find(|id| !taken.users.contains(id));
        let count = u64::from(range.end() - range.start()) + 1;
        let id = free.ok_or(UsersError::Exhausted(count))?;
        taken.users.insert(id);
        taken.last = Some(id);
        drop(taken);
        Ok(self.hand_out(id))
    }

    /// That very user, to remove what it left; none where a living tool has it, or where it never
    /// was one of these.
    pub fn lease_again(&self, id: u32) -> Option<User> {
        match &self.0.range {
            None => (id == rustix::process::geteuid().as_raw()).then(|| self.hand_out(id)),
            Some(range) if range.contains(&id) => {
                let mut taken = self.0.taken.lock().unwrap_or_else(PoisonError::into_inner);
                taken.users.insert(id).then(|| self.hand_out(id))
            }
            Some(_) => None,
        }
    }

    fn hand_out(&self, id: u32) -> User {
        User { id, of: self.clone() }
    }
}

/// The range, as [`FromStr`] reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserRange(pub RangeInclusive<u32>);

impl Default for UserRange {
    fn default() -> Self {
        Self(DEFAULT)
    }
}

impl fmt::Display for UserRange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-{}", self.0.start(), self.0.end())
    }
}

impl FromStr for UserRange {
    type Err = UsersError;

    fn from_str(text: &str) -> Result<Self, UsersError> {
        let no_range = || UsersError::NoRange(text.to_owned());
        let (first, last) = text.split_once('-').ok_or_else(no_range)?;
        let number = |word: &str| word.parse::<u32>().map_err(|_not_a_number| no_range());
        let (first, last) = (number(first)?, number(last)?);
        // `nobody` and what images call `nonroot` run everywhere.
        let shared = first <= 65_535 && last >= 65_532;
        if first == 0 || first > last || last == u32::MAX || shared {
            return Err(no_range());
        }
        Ok(Self(first..=last))
    }
}

impl User {
    /// The user's numeric id.
    pub const fn id(&self) -> u32 {
        self.id
    }
}

impl Drop for User {
    fn drop(&mut self) {
        let mut taken = self.of.0.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.users.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_that_live_at_once_share_a_user() {
        let users = Users::range(10..=12);
        let mut leases: Vec<User> = (0..3).map(|_| users.lease().unwrap()).collect();
        let ids: Vec<u32> = leases.iter().map(User::id).collect();
        assert_eq!(ids, [10, 11, 12]);
        assert_eq!(users.lease().unwrap_err(), UsersError::Exhausted(3));
        assert!(users.lease_again(11).is_none(), "it lives");
        leases.remove(1);
        assert_eq!(users.lease().unwrap().id(), 11);
        leases.clear();
        let again: Vec<u32> = (0..4).map(|_| users.lease().unwrap().id()).collect();
        assert_eq!(again, [12, 10, 11, 12], "whoever was there last comes last");
        assert_eq!(users.lease_again(11).map(|user| user.id()), Some(11));
        assert!(users.lease_again(13).is_none());
    }

    #[test]
    fn a_range_leaves_root_and_the_users_that_everybody_shares_out() {
        let read = |text: &str| text.parse::<UserRange>();
        assert_eq!(read("7-9").unwrap(), UserRange(7..=9));
        assert_eq!(read(&UserRange::default().to_string()).unwrap().0, DEFAULT);
        for text in [
            "",
            "7",
            "0-9",
            "9-7",
            "1-65532",
            "65534-70000",
            "65532-65535",
            "7-4294967295",
            "a-b",
            "-1-3",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
