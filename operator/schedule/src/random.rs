//! Draws that look random to who does not know the schedule's UID, and are the same each time:
//! HMAC-SHA256 with the UID as its key.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::slot::Slot;

/// What a draw is for: each has hashes of its own.
#[derive(Clone, Copy, Debug)]
enum Purpose {
    Phase,
    Ticket,
    Thinning,
    Name,
    Trigger,
}

impl Purpose {
    const fn byte(self) -> u8 {
        match self {
            Self::Phase => 1,
            Self::Ticket => 2,
            Self::Thinning => 3,
            Self::Name => 4,
            Self::Trigger => 5,
        }
    }
}

/// The draws of one schedule.
#[derive(Clone, Debug)]
pub(crate) struct Draws {
    keyed: Option<Hmac<Sha256>>,
}

/// What a pod drew in a slot: those of the lowest ranks are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket {
    /// Rank of the pod among those of its stratum.
    pub(crate) rank: u128,
    /// Random delay of the pod's window, before it is reduced to the jitter.
    pub(crate) jitter: u64,
}

impl Draws {
    /// The draws of the schedule with that UID.
    pub(crate) fn of(schedule_uid: &str) -> Self {
        // A key of any length is taken; the None is for a type that cannot say so.
        let keyed = Hmac::new_from_slice(schedule_uid.as_bytes()).ok();
        Self { keyed }
    }

    /// A number that is a pod's own for as long as it lives: where in each slot its time is.
    pub(crate) fn phase(&self, pod_uid: &str) -> u64 {
        high_u64(self.hash(Purpose::Phase, None, &[pod_uid]))
    }

    /// What a pod drew in a slot.
    pub(crate) fn ticket(&self, slot: Slot, pod_uid: &str) -> Ticket {
        let hash = self.hash(Purpose::Ticket, Some(slot), &[pod_uid]);
        let (rank, rest) = halves(hash);
        Ticket {
            rank,
            jitter: high_u64_of(rest),
        }
    }

    /// Whether a class whose rate is halved has its windows in that slot: true for one slot of two.
    pub(crate) fn keeps(&self, slot: Slot, class: &[&str]) -> bool {
        high_u64(self.hash(Purpose::Thinning, Some(slot), class)).is_multiple_of(2)
    }

    /// The number that a session has in its name.
    pub(crate) fn name(&self, slot: Slot, pod_uid: &str) -> u64 {
        high_u64(self.hash(Purpose::Name, Some(slot), &[pod_uid]))
    }

    /// The number that the session of an alert has in its name.
    pub(crate) fn trigger(&self, parts: &[&str]) -> u64 {
        high_u64(self.hash(Purpose::Trigger, None, parts))
    }

    /// Each part is preceded by its length, so that no two lists of parts are hashed as the same
    /// bytes.
    fn hash(&self, purpose: Purpose, slot: Option<Slot>, parts: &[&str]) -> [u8; 32] {
        let Some(keyed) = &self.keyed else {
            return [0; 32];
        };
        let mut mac = keyed.clone();
        mac.update(&[purpose.byte()]);
        if let Some(slot) = slot {
            mac.update(&slot.seconds().to_be_bytes());
        }
        for part in parts {
            mac.update(&part.len().to_be_bytes());
            mac.update(part.as_bytes());
        }
        mac.finalize().into_bytes().into()
    }
}

fn halves(hash: [u8; 32]) -> (u128, u128) {
    let half = |bytes: &[u8]| {
        bytes
            .iter()
            .fold(0, |value: u128, byte| (value << 8) | u128::from(*byte))
    };
    let (first, second) = hash.split_at(16);
    (half(first), half(second))
}

fn high_u64(hash: [u8; 32]) -> u64 {
    high_u64_of(halves(hash).0)
}

fn high_u64_of(half: u128) -> u64 {
    u64::try_from(half >> 64).unwrap_or_default()
}

/// A number below `bound` out of 64 random bits; 0 where nothing is below it.
pub(crate) fn below(bound: i64, bits: u64) -> i64 {
    let bound = u128::try_from(bound).unwrap_or_default();
    i64::try_from((u128::from(bits) * bound) >> 64).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;

    fn slot(seconds: i64) -> Slot {
        Slot::starting(Timestamp::from_second(seconds).unwrap())
    }

    #[test]
    fn the_same_schedule_draws_the_same_and_another_one_differently() {
        let ticket = |uid: &str| Draws::of(uid).ticket(slot(900), "pod");
        assert_eq!(ticket("a"), ticket("a"));
        assert_ne!(ticket("a"), ticket("b"));
        assert_ne!(
            Draws::of("a").ticket(slot(900), "pod"),
            Draws::of("a").ticket(slot(1800), "pod")
        );
    }

    #[test]
    fn parts_that_are_cut_elsewhere_are_not_the_same() {
        let draws = Draws::of("a");
        assert_ne!(
            draws.hash(Purpose::Thinning, None, &["ab", "c"]),
            draws.hash(Purpose::Thinning, None, &["a", "bc"])
        );
    }

    #[test]
    fn numbers_are_below_their_bound_and_reach_all_of_it() {
        assert_eq!(below(10, 0), 0);
        assert_eq!(below(10, u64::MAX), 9);
        assert_eq!(below(0, u64::MAX), 0);
        assert_eq!(below(-3, u64::MAX), 0);
    }
}
