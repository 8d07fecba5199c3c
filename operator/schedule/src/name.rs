//! Names of sessions.

use flopwatch_api::schedule::Trigger;

use crate::identity::Identity;
use crate::random::Draws;
use crate::slot::Slot;

/// Longest name of a session: captures are named after it.
pub const MAX_SESSION_NAME: usize = 52;

/// Characters of the hash and the hyphen before it.
const NAME_SUFFIX_CHARS: usize = 17;

/// Name of the session of a pod in a slot: the schedule's name, cut where it is too long, and a
/// hash of schedule, slot and pod. It is a label of DNS, and two sessions of one slot and pod have
/// the same one, so that the API server refuses the second.
pub fn session_name(identity: &Identity, slot: Slot, pod_uid: &str) -> String {
    named(identity, &Draws::of(&identity.uid), slot, pod_uid)
}

pub(crate) fn named(identity: &Identity, draws: &Draws, slot: Slot, pod_uid: &str) -> String {
    with_hash(identity, draws.name(slot, pod_uid))
}

/// Name of the session that a trigger makes after `number` others: whoever makes it has decided
/// from all that were made before, and of several who decide at once the API server lets one
/// through.
pub(crate) fn triggered_session_name(identity: &Identity, draws: &Draws, trigger: &Trigger, number: u64) -> String {
    let number = number.to_string();
    let labels = trigger.alert.match_labels.iter();
    let labels = labels.flat_map(|(name, value)| [name.as_str(), value.as_str()]);
    let parts: Vec<&str> = [number.as_str(), trigger.alert.name.as_str()]
        .into_iter()
        .chain(labels)
        .collect();
    with_hash(identity, draws.trigger(&parts))
}

fn with_hash(identity: &Identity, hash: u64) -> String {
    let allowed = |letter: char| match letter {
        'a'..='z' | '0'..='9' => letter,
        'A'..='Z' => letter.to_ascii_lowercase(),
        _ => '-',
    };
    let start: String = identity
        .name
        .chars()
        .map(allowed)
        .take(MAX_SESSION_NAME - NAME_SUFFIX_CHARS)
        .collect();
    let start = start.trim_matches('-');
    let start = if start.is_empty() { "schedule" } else { start };
    format!("{start}-{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;

    fn name(schedule: &str, uid: &str, seconds: i64, pod: &str) -> String {
        let identity = Identity {
            name: schedule.to_owned(),
            uid: uid.to_owned(),
            created: Timestamp::UNIX_EPOCH,
        };
        session_name(&identity, Slot::starting(Timestamp::from_second(seconds).unwrap()), pod)
    }

    #[test]
    fn a_name_is_a_label_of_dns_whatever_the_schedule_is_called() {
        for schedule in [
            "nightly",
            "a.b.c",
            &"x".repeat(63),
            &format!("{}.y", "x".repeat(34)),
            "-",
            "0",
        ] {
            let name = name(schedule, "uid", 900, "pod");
            assert!(name.len() <= MAX_SESSION_NAME, "{name}");
            assert!(
                name.chars()
                    .all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-')
            );
            assert!(
                !name.starts_with('-') && !name.ends_with('-') && !name.contains("--"),
                "{name}"
            );
        }
    }

    #[test]
    fn schedule_slot_and_pod_each_make_another_name() {
        let first = name("nightly", "uid", 900, "pod");
        assert_eq!(first, name("nightly", "uid", 900, "pod"));
        for other in [
            name("nightly", "diu", 900, "pod"),
            name("nightly", "uid", 1800, "pod"),
            name("nightly", "uid", 900, "dop"),
        ] {
            assert_ne!(first, other);
        }
    }
}
