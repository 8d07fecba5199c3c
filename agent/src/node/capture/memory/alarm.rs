//! Whether a window is to be ended for memory: a function of what was seen when it opened and
//! since.
//!
//! **What counts** is growth since the window opened. A container that was at its limit before is
//! left alone while it holds no more than it did, and a node that others fill up is no matter of
//! the window.
//!
//! **Near its end** a memory is when less is left than a floor, or would be once the window is
//! ended, if it went on to shrink as in the last second. What is taken and given back within a
//! second does not count. The floor is half of what was left when the window opened, at most.
//!
//! **The end of a window** may take memory itself: a service that puts its profile together does so
//! in the program's memory. That is left free too, as a multiple of the growth.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use flopwatch_attach::usage::memory::Room;

/// Time between the two readings that growth is told from.
const GROWTH_INTERVAL: Duration = Duration::from_secs(1);
/// Spans that pass until a window that is ended grows no more.
const SPANS_TO_END: u64 = 2;
/// Looks, one after the other, that must find too little left.
const MIN_SHORT_READINGS: u32 = 2;
/// Growth below which nothing is ended, in bytes: what any program takes and gives back.
const LEAST_GROWTH_BYTES: u64 = 64 << 20;
/// The part of what is lost that the window must have taken, as a divisor.
const PART_OF_LOSS: u64 = 4;
/// The part of the floor by which there must be more before looks count from the first again, as a
/// divisor.
const PART_OF_FLOOR: u64 = 4;

/// What must be left.
#[derive(Clone, Copy, Debug)]
struct Floor {
    /// As a divisor of the whole.
    part: u64,
    least_bytes: u64,
    most_bytes: u64,
}

/// What a container must have left of its limit: a twentieth, 64 MiB to 1 GiB.
const CONTAINER: Floor = Floor {
    part: 20,
    least_bytes: 64 << 20,
    most_bytes: 1 << 30,
};
/// What a node must have left: a twentieth, 512 MiB to 4 GiB. By default kubelets evict pods when
/// less than 100 MiB are left.
const NODE: Floor = Floor {
    part: 20,
    least_bytes: 512 << 20,
    most_bytes: 4 << 30,
};

impl Floor {
    fn of(self, whole_bytes: u64) -> u64 {
        (whole_bytes / self.part).clamp(self.least_bytes, self.most_bytes)
    }
}

/// One reading of the memory of a container and of its node.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemoryReading {
    /// Bytes that the container holds.
    pub(super) container_bytes: u64,
    /// Bytes that the container and the profiler's own processes hold together.
    pub(super) held_bytes: u64,
    /// Memory that the container has left of its limit; none where nothing limits it.
    pub(super) container: Option<Room>,
    /// Memory that the node has left; none where the kernel does not say.
    pub(super) node: Option<Room>,
}

impl MemoryReading {
    /// Why a window is not begun that may take so many bytes before it has ended; none where there
    /// are as many.
    pub(super) fn lack(&self, needed_bytes: u64) -> Option<String> {
        let rooms = [(Whose::Container, self.container), (Whose::Node, self.node)];
        let (of, room) = rooms.into_iter().find_map(|(of, room)| {
            let short = room.filter(|room| room.left_bytes < needed_bytes)?;
            Some((of, short))
        })?;
        let (needed, left, whole) = (needed_bytes >> 20, room.left_bytes >> 20, room.whole_bytes >> 20);
        let (bound, remedy) = match of {
            Whose::Container => ("its limit of", "raise the container's memory limit"),
            Whose::Node => ("the node's", "free some memory on the node"),
        };
        Some(format!(
            "the window was not begun: it might take {needed} MiB of the container's memory before it could be ended, and \
             {left} MiB are left of {bound} {whole} MiB: {remedy}, or ask for less"
        ))
    }
}

/// Why a window is to be ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shortage {
    /// Owner of the memory that runs out.
    pub(super) of: Whose,
    /// Bytes more than when the window opened.
    pub(super) grown_bytes: u64,
    /// Memory that is left.
    pub(super) room: Room,
    /// Bytes of it that the window's end may take.
    pub(super) kept_bytes: u64,
    /// Time since the window opened.
    pub(super) after: Duration,
}

/// Owner of memory that runs out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    /// The container's, which the kernel would end.
    Container,
    /// The node's, whose pods the kubelet would evict.
    Node,
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mebibytes = |bytes: u64| bytes >> 20;
        let (grown, left) = (mebibytes(self.grown_bytes), mebibytes(self.room.left_bytes));
        let whole = mebibytes(self.room.whole_bytes);
        let seconds = self.after.as_secs_f64();
        write!(f, "the container's memory grew by {grown} MiB in the {seconds:.1} s ")?;
        let bound = match self.of {
            Whose::Container => "its limit of",
            Whose::Node => "the node's",
        };
        write!(
            f,
            "that the window was open, and {left} MiB were left of {bound} {whole} MiB"
        )?;
        if self.kept_bytes > 0 {
            let kept = mebibytes(self.kept_bytes);
            write!(f, ", of which taking the profile together may need {kept} MiB")?;
        }
        f.write_str(match self.of {
            Whose::Container => {
                ": the window was ended before the kernel would end the program; ask for a shorter window or for less, \
                 or raise the limit"
            }
            Whose::Node => {
                ": the window was ended before pods of the node would be evicted; ask for a shorter window or for less, \
                 or give the container a memory limit"
            }
        })
    }
}

/// Looks at one memory since the window opened.
#[derive(Debug)]
struct Course {
    floor: Floor,
    /// Bytes that were left when the window opened.
    opened_bytes: u64,
    /// What was left at the last looks, by the time since the window opened; the oldest first.
    left: VecDeque<(Duration, u64)>,
    /// Looks, one after the other, that found too little.
    short: u32,
}

impl Course {
    fn new(floor: Floor, opened: Room) -> Self {
        Self {
            floor,
            opened_bytes: opened.left_bytes,
            left: VecDeque::from([(Duration::ZERO, opened.left_bytes)]),
            short: 0,
        }
    }

    /// Bytes of what is left that are to stay free where a window has taken `grown` bytes, whose
    /// end takes so many for each of them and of those to come; none where it is not to be ended.
    fn inspect(&mut self, at: Duration, room: Room, grown: u64, to_end: u64) -> Option<u64> {
        self.left.push_back((at, room.left_bytes));
        let kept_from = at.saturating_sub(GROWTH_INTERVAL * 2);
        while self.left.front().is_some_and(|(then, _)| *then < kept_from) {
            self.left.pop_front();
        }
        let floor = self.floor.of(room.whole_bytes).min(self.opened_bytes / 2);
        let lost = self.opened_bytes.saturating_sub(room.left_bytes);
        let least = LEAST_GROWTH_BYTES.min(self.opened_bytes / 4);
        let by_window = grown >= least && grown >= lost / PART_OF_LOSS;
        let to_come = self.loss_until_ended(at);
        let kept = grown.saturating_add(to_come).saturating_mul(to_end);
        let ahead = room.left_bytes.saturating_sub(to_come).saturating_sub(kept);
        if by_window && ahead < floor {
            self.short = self.short.saturating_add(1);
        } else if !by_window || ahead >= floor.saturating_add(floor / PART_OF_FLOOR) {
            self.short = 0;
        }
        (self.short >= MIN_SHORT_READINGS).then_some(kept)
    }

    /// Bytes that will be lost in the time that ending the window takes, as in the last span: by
    /// the most that was left in it and in the one before.
    fn loss_until_ended(&self, at: Duration) -> u64 {
        let since = at.saturating_sub(GROWTH_INTERVAL);
        let most = |before: bool| {
            let looks = self.left.iter().filter(|(then, _)| (*then < since) == before);
            looks.map(|(_, left)| *left).max()
        };
        let lost = most(true).zip(most(false));
        let lost = lost.map_or(0, |(before, now)| before.saturating_sub(now));
        lost.saturating_mul(SPANS_TO_END)
    }
}

/// Decides at each reading whether the window is to be ended.
#[derive(Debug)]
pub(super) struct Alarm {
    opened: MemoryReading,
    to_end: u64,
    container: Option<Course>,
    node: Option<Course>,
}

impl Alarm {
    /// Of a window whose profiler had not attached when this was seen, and whose end takes so many
    /// bytes for each byte that it took.
    pub(super) fn new(opened: MemoryReading, to_end: u64) -> Self {
        Self {
            opened,
            to_end,
            container: opened.container.map(|room| Course::new(CONTAINER, room)),
            node: opened.node.map(|room| Course::new(NODE, room)),
        }
    }

    /// Why the window is to be ended, by what is seen at that time since it opened.
    pub(super) fn inspect(&mut self, at: Duration, seen: MemoryReading) -> Option<Shortage> {
        let of_container = seen.container_bytes.saturating_sub(self.opened.container_bytes);
        let of_all = seen.held_bytes.saturating_sub(self.opened.held_bytes);
        let courses = [
            (Whose::Container, &mut self.container, seen.container, of_container),
            (Whose::Node, &mut self.node, seen.node, of_all),
        ];
        let mut found = None;
        // Each goes on with its course, whatever the other one finds.
        for (of, course, room, grown_bytes) in courses {
            let (Some(course), Some(room)) = (course, room) else {
                continue;
            };
            let kept = course.inspect(at, room, grown_bytes, self.to_end);
            found = found.or(kept.map(|kept_bytes| Shortage {
                of,
                grown_bytes,
                room,
                kept_bytes,
                after: at,
            }));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const GIB: u64 = 1 << 30;
    const POLL_INTERVAL_MS: u64 = 250;

    /// A container with a limit on a node, which holds so much, while so much is left on the node.
    fn seen(held: u64, limit: Option<u64>, node: Room) -> MemoryReading {
        let container = limit.map(|whole_bytes| Room {
            whole_bytes,
            left_bytes: whole_bytes.saturating_sub(held),
        });
        MemoryReading {
            container_bytes: held,
            held_bytes: held,
            container,
            node: Some(node),
        }
    }

    fn node(left_bytes: u64) -> Room {
        Room {
            whole_bytes: 64 * GIB,
            left_bytes,
        }
    }

    /// Looks at a window of a minute; what ended it.
    fn window(at_ms: impl Fn(u64) -> MemoryReading) -> Option<Shortage> {
        window_to_end(0, at_ms)
    }

    /// The same of one whose end takes so many bytes for each byte that it took.
    fn window_to_end(to_end: u64, at_ms: impl Fn(u64) -> MemoryReading) -> Option<Shortage> {
        let mut alarm = Alarm::new(at_ms(0), to_end);
        (1..=60_000 / POLL_INTERVAL_MS).find_map(|inspect| {
            let ms = inspect * POLL_INTERVAL_MS;
            alarm.inspect(Duration::from_millis(ms), at_ms(ms))
        })
    }

    #[test]
    fn a_target_that_grows_is_left_before_its_limit_with_time_to_end_the_window() {
        // As the program of issue 37: 370 MB a second, in 6 GiB.
        let held = |ms: u64| GIB + 370_000 * ms;
        let found = window(|ms| seen(held(ms), Some(6 * GIB), node(40 * GIB))).unwrap();
        assert_eq!(found.of, Whose::Container);
        let left_for = found.room.left_bytes / 370_000_000;
        assert!((2..=4).contains(&left_for), "{found:?}");
        let text = found.to_string();
        assert!(
            text.contains("limit of 6144 MiB") && text.contains("shorter window"),
            "{text}"
        );
    }

    #[test]
    fn what_the_end_of_a_window_takes_is_still_there_when_it_is_ended() {
        let growing = |per_ms: u64| move |ms: u64| seen(GIB + per_ms * ms, Some(6 * GIB), node(40 * GIB));
        for per_ms in [20_000, 100_000, 370_000] {
            let found = window_to_end(4, growing(per_ms)).unwrap();
            assert_eq!(found.of, Whose::Container);
            // It goes on to grow for half a second until it is ended.
            let until_ended = per_ms * 500;
            let needed = (found.grown_bytes + until_ended) * 4 + until_ended;
            assert!(found.room.left_bytes > needed, "{found:?}");
            assert!(found.grown_bytes > 500 * MIB, "no sooner than it must: {found:?}");
            let later = window(growing(per_ms));
            assert!(
                later.is_none_or(|later| later.grown_bytes > 4 * found.grown_bytes),
                "{later:?}"
            );
            let text = found.to_string();
            assert!(text.contains("taking the profile together may need"), "{text}");
        }
        // What does not grow has nothing to take together.
        assert_eq!(window_to_end(4, growing(0)), None);
    }

    #[test]
    fn a_window_that_could_not_be_ended_in_time_is_not_begun() {
        let held = |left: u64| seen(GIB - left, Some(GIB), node(40 * GIB));
        assert_eq!(held(200 * MIB).lack(140 * MIB), None);
        assert_eq!(held(0).lack(0), None, "it takes none");
        let why = held(100 * MIB).lack(140 * MIB).unwrap();
        assert!(
            why.contains("140 MiB") && why.contains("100 MiB are left of its limit of 1024 MiB"),
            "{why}"
        );
        let why = seen(GIB, None, node(100 * MIB)).lack(140 * MIB).unwrap();
        assert!(why.contains("of the node's 65536 MiB"), "{why}");
    }

    #[test]
    fn a_node_is_left_before_its_end_where_the_target_has_no_limit() {
        let left = |ms: u64| node((20 * GIB).saturating_sub(370_000 * ms));
        let found = window(|ms| seen(370_000 * ms, None, left(ms))).unwrap();
        assert_eq!(found.of, Whose::Node);
        assert!(found.room.left_bytes > 512 * MIB, "{found:?}");
        assert!(found.to_string().contains("left of the node's 65536 MiB"), "{found}");
    }

    #[test]
    fn a_target_that_was_at_its_limit_before_the_window_is_left_alone() {
        for steady in [5_900 * MIB, 6 * GIB] {
            let unsteady = |ms: u64| steady - 20 * MIB * (ms / POLL_INTERVAL_MS % 2);
            let found = window(|ms| seen(unsteady(ms), Some(6 * GIB), node(40 * GIB)));
            assert_eq!(found, None, "{steady}");
        }
    }

    #[test]
    fn a_target_with_little_left_may_take_half_of_that() {
        let held = |ms: u64| 5_900 * MIB + ms * MIB / 100;
        let found = window(|ms| seen(held(ms), Some(6_144 * MIB), node(40 * GIB))).unwrap();
        let left = found.room.left_bytes / MIB;
        assert!((120..=142).contains(&left), "{left} of 244");
    }

    #[test]
    fn a_node_that_others_fill_up_is_no_matter_of_the_window() {
        let left = |ms: u64| (20 * GIB).saturating_sub(600 * MIB * ms / 1000);
        let found = window(|ms| seen(GIB + ms * 5_000, None, node(left(ms))));
        assert_eq!(found, None);
    }

    #[test]
    fn what_is_taken_and_given_back_within_a_second_is_no_growth() {
        let held = |ms: u64| if ms % 1000 < 500 { GIB } else { 4 * GIB };
        let found = window(|ms| seen(held(ms), Some(6 * GIB), node(40 * GIB)));
        assert_eq!(found, None);
    }

    #[test]
    fn a_moment_with_little_left_ends_no_window_and_a_second_one_at_once_does() {
        let limit = Some(6 * GIB);
        let at = |held: u64| seen(held, limit, node(40 * GIB));
        let mut alarm = Alarm::new(at(GIB), 0);
        let mut inspect = |ms: u64, held: u64| alarm.inspect(Duration::from_millis(ms), at(held));
        assert_eq!(inspect(250, 6_000 * MIB), None);
        assert_eq!(inspect(500, GIB), None, "it is over");
        assert_eq!(inspect(750, 6_000 * MIB), None);
        // A little more than the floor is not the end of it.
        assert_eq!(inspect(1000, 5_800 * MIB), None);
        assert!(inspect(1250, 6_000 * MIB).is_some());
    }
}
