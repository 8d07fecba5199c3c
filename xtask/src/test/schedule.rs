//! Which test program runs next beside those that run. Pure.
//!
//! The machine has twice as many seats as processors. A program that computes takes as many as
//! there are processors, one that waits takes one: two programs that compute keep the processors
//! busy while either reaches its end, and one that waits costs little beside them. The longest
//! program goes first, so that no long one is left over at the end, and what must be alone goes
//! last.

use super::need::{Load, Need};
use std::cmp::Reverse;
use std::time::Duration;

/// The machine's room for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Machine {
    processors: usize,
}

impl Machine {
    /// A machine of so many processors; one at least.
    pub(crate) fn new(processors: usize) -> Self {
        Self {
            processors: processors.max(1),
        }
    }

    const fn seats(self) -> usize {
        self.processors * 2
    }

    const fn takes(self, need: &Need) -> usize {
        match need.load {
            Load::Busy => self.processors,
            Load::Waits => 1,
        }
    }

    /// How many of a program's tests run at once.
    pub(crate) const fn threads(self, need: &Need) -> usize {
        match (need.threads, need.load) {
            (Some(threads), _) => threads,
            (None, Load::Busy) => self.processors,
            (None, Load::Waits) => self.processors * 2,
        }
    }

    fn fits(self, need: &Need, running: &[&Need]) -> bool {
        if running.is_empty() {
            return true;
        }
        let taken: usize = running.iter().map(|other| self.takes(other)).sum();
        !need.alone
            && running
                .iter()
                .all(|other| !other.alone && other.resources.is_disjoint(&need.resources))
            && taken + self.takes(need) <= self.seats()
    }

    /// The place of the first of `waiting` that may begin beside `running`.
    pub(crate) fn next<'a>(self, waiting: impl IntoIterator<Item = &'a Need>, running: &[&Need]) -> Option<usize> {
        waiting.into_iter().position(|need| self.fits(need, running))
    }
}

/// By what programs are put in their order: the first goes first.
pub(crate) fn order(need: &Need, expected: Duration) -> (bool, Reverse<Duration>) {
    (need.alone, Reverse(expected))
}

#[cfg(test)]
mod tests {
    use super::super::need::Resource;
    use super::*;

    fn busy() -> Need {
        Need::default()
    }

    fn waits(resources: &[Resource]) -> Need {
        Need {
            load: Load::Waits,
            resources: resources.iter().copied().collect(),
            ..Need::default()
        }
    }

    fn alone() -> Need {
        Need {
            alone: true,
            ..Need::default()
        }
    }

    #[test]
    fn two_programs_compute_at_once_and_a_third_waits_for_an_end() {
        let machine = Machine::new(2);
        let (a, b) = (busy(), busy());
        assert_eq!(machine.next([&busy()], &[&a]), Some(0));
        assert_eq!(machine.next([&busy()], &[&a, &b]), None);
        assert_eq!(machine.next([&waits(&[])], &[&a, &b]), None);
    }

    #[test]
    fn one_that_waits_goes_beside_one_that_computes() {
        let machine = Machine::new(2);
        let (a, b) = (busy(), waits(&[]));
        assert_eq!(machine.next([&busy(), &waits(&[])], &[&a, &b]), Some(1));
    }

    #[test]
    fn a_resource_is_one_programs_at_a_time() {
        let machine = Machine::new(2);
        let running = waits(&[Resource::Profilers, Resource::Browser]);
        let waiting = [waits(&[Resource::Profilers]), waits(&[Resource::Cluster])];
        assert_eq!(machine.next(&waiting, &[&running]), Some(1));
    }

    #[test]
    fn what_must_be_alone_begins_when_all_else_has_ended_and_nothing_joins_it() {
        let machine = Machine::new(8);
        assert_eq!(machine.next([&alone()], &[&waits(&[])]), None);
        assert_eq!(machine.next([&waits(&[])], &[&alone()]), None);
        assert_eq!(machine.next([&alone()], &[]), Some(0));
    }

    #[test]
    fn a_machine_of_any_size_runs_every_program() {
        for processors in [0, 1, 2, 64] {
            for need in [busy(), waits(&[Resource::Cluster]), alone()] {
                assert_eq!(Machine::new(processors).next([&need], &[]), Some(0), "{processors}");
            }
        }
    }

    #[test]
    fn tests_that_wait_are_twice_as_many_at_once_unless_their_program_says_how_many() {
        let machine = Machine::new(2);
        assert_eq!([busy(), waits(&[])].map(|need| machine.threads(&need)), [2, 4]);
        let said = Need {
            threads: Some(8),
            ..waits(&[])
        };
        assert_eq!(machine.threads(&said), 8);
    }

    #[test]
    fn the_longest_goes_first_and_what_must_be_alone_last() {
        let second = Duration::from_secs;
        let mut all = [(alone(), second(90)), (busy(), second(5)), (waits(&[]), second(60))];
        all.sort_by_key(|(need, expected)| order(need, *expected));
        assert_eq!(all.map(|(_, expected)| expected), [second(60), second(5), second(90)]);
    }
}
