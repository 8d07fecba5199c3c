//! What two captures have under the same name: counts and times of each side, and how much of their
//! difference comes from the number of calls and how much from their length.

use std::collections::BTreeMap;

use flopwatch_report::page::TimelineLocation;
use schemars::JsonSchema;
use serde::Serialize;

/// How many there were of something, and their time together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Of how many things.
    pub count: u64,
    /// Sum of their lengths in ns.
    pub total_ns: u128,
}

impl Tally {
    /// Adds one of this length.
    pub fn add(&mut self, length_ns: u64) {
        self.merge(Self {
            count: 1,
            total_ns: length_ns.into(),
        });
    }

    /// Adds all of another.
    pub fn merge(&mut self, other: Self) {
        self.count = self.count.saturating_add(other.count);
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
    }
}

/// The tally of a name in one capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameTally<'a> {
    /// The whole name.
    pub name: &'a str,
    /// A shorter one, by which names without a counterpart are matched; the same where there is
    /// none.
    pub short: &'a str,
    /// What it has; at least one.
    pub tally: Tally,
    /// Location of the longest call of that name; `None` where it is not known.
    pub longest: Option<TimelineLocation>,
}

/// Which captures something is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Presence {
    /// Both.
    Both,
    /// The first alone: it is gone.
    Before,
    /// The second alone: it is new.
    After,
}

/// By what the two sides were matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MatchedBy {
    /// The whole name.
    Name,
    /// The short name: template arguments or parameters differ.
    ShortName,
    /// Nothing: one capture alone has it.
    Nothing,
}

/// Something of either capture or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counterpart<'a> {
    /// Its name; the short one where that is what matched and a side has several.
    pub name: &'a str,
    /// By what it was matched.
    pub matched_by: MatchedBy,
    /// What it has before; zeros where it is new.
    pub before: Tally,
    /// What it has after; zeros where it is gone.
    pub after: Tally,
    /// Location of the longest call before; `None` where it is not known.
    pub longest_before: Option<TimelineLocation>,
    /// Location of the longest call after; `None` where it is not known.
    pub longest_after: Option<TimelineLocation>,
}

impl Counterpart<'_> {
    /// Which captures it is in.
    pub const fn presence(&self) -> Presence {
        match (self.before.count, self.after.count) {
            (_, 0) => Presence::Before,
            (0, _) => Presence::After,
            _ => Presence::Both,
        }
    }
}

/// Matches the names of two captures, each of which is there once per side: by the whole name, then
/// what is left of either side by the short name, all of one short name together. In the order of
/// names.
pub fn counterparts<'a>(before: &[NameTally<'a>], after: &[NameTally<'a>]) -> Vec<Counterpart<'a>> {
    let mut whole: BTreeMap<&'a str, [Option<NameTally<'a>>; 2]> = BTreeMap::new();
    for named in before {
        whole.entry(named.name).or_default()[0] = Some(*named);
    }
    for named in after {
        whole.entry(named.name).or_default()[1] = Some(*named);
    }
    let mut found = Vec::with_capacity(whole.len());
    let mut left: BTreeMap<&'a str, [Vec<NameTally<'a>>; 2]> = BTreeMap::new();
    for (name, sides) in whole {
        match sides {
            [Some(before), Some(after)] => found.push(Counterpart {
                name,
                matched_by: MatchedBy::Name,
                before: before.tally,
                after: after.tally,
                longest_before: before.longest,
                longest_after: after.longest,
            }),
            [before, after] => {
                if let Some(named) = before {
                    left.entry(named.short).or_default()[0].push(named);
                }
                if let Some(named) = after {
                    left.entry(named.short).or_default()[1].push(named);
                }
            }
        }
    }
    for (short, sides) in left {
        let [before, after] = &sides;
        if before.is_empty() || after.is_empty() {
            found.extend(before.iter().map(|named| Counterpart {
                before: named.tally,
                longest_before: named.longest,
                ..unmatched(named.name)
            }));
            found.extend(after.iter().map(|named| Counterpart {
                after: named.tally,
                longest_after: named.longest,
                ..unmatched(named.name)
            }));
            continue;
        }
        let name = match (before.as_slice(), after.as_slice()) {
            ([_], [named]) => named.name,
            _ => short,
        };
        let ((before, longest_before), (after, longest_after)) = (sum_tallies(before), sum_tallies(after));
        found.push(Counterpart {
            name,
            matched_by: MatchedBy::ShortName,
            before,
            after,
            longest_before,
            longest_after,
        });
    }
    found.sort_by(|a, b| a.name.cmp(b.name).then(a.matched_by.cmp(&b.matched_by)));
    found
}

/// A name without a counterpart.
fn unmatched(name: &str) -> Counterpart<'_> {
    Counterpart {
        name,
        matched_by: MatchedBy::Nothing,
        before: Tally::default(),
        after: Tally::default(),
        longest_before: None,
        longest_after: None,
    }
}

/// The tally of several names, and the longest call of them.
fn sum_tallies(side: &[NameTally<'_>]) -> (Tally, Option<TimelineLocation>) {
    let mut sum = Tally::default();
    for named in side {
        sum.merge(named.tally);
    }
    let longest = side.iter().filter_map(|named| named.longest);
    (sum, longest.max_by_key(|location| location.end_ns - location.start_ns))
}

/// How often what is compared happens on each side: iterations, or 1 for a whole capture. Times are
/// compared per unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Units {
    /// Before; at least 1.
    pub before: u64,
    /// After; at least 1.
    pub after: u64,
}

impl Units {
    /// Captures as a whole.
    pub const WHOLE: Self = Self { before: 1, after: 1 };
}

/// A difference of times per unit, and where it comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Parts {
    /// Time per unit before, in whole ns.
    pub before_ns: u64,
    /// Time per unit after, in whole ns.
    pub after_ns: u64,
    /// `after_ns` less `before_ns`.
    pub difference_ns: i64,
    /// The part that comes from more or fewer calls: Δcount · (mean length before), to the nearest
    /// ns. All of the difference where a side has no call.
    pub count_ns: i64,
    /// The rest, which comes from longer or shorter calls: (count after) · Δ(mean length). With
    /// `count_ns` it adds up to the difference.
    pub duration_ns: i64,
}

impl Parts {
    /// Of a counterpart's sides.
    ///
    /// With counts n and totals T over s units, Δ(T/s) = Δ(n/s) · T₀/n₀ + n₁/s₁ · Δ(T/n) holds
    /// exactly; the first part is (n₁s₀ − n₀s₁) · T₀ / (s₀s₁n₀), rounded once.
    pub fn of(before: Tally, after: Tally, units: Units) -> Self {
        let (s0, s1) = (i128::from(units.before.max(1)), i128::from(units.after.max(1)));
        let wide = |value: u128| i128::try_from(value).unwrap_or(i128::MAX);
        let (before_ns, after_ns) = (nearest(wide(before.total_ns), s0), nearest(wide(after.total_ns), s1));
        let difference = after_ns - before_ns;
        let (n0, n1) = (i128::from(before.count), i128::from(after.count));
        let count = if n0 == 0 || n1 == 0 {
            difference
        } else {
            let calls = n1.saturating_mul(s0) - n0.saturating_mul(s1);
            nearest(
                calls.saturating_mul(wide(before.total_ns)),
                s0.saturating_mul(s1).saturating_mul(n0),
            )
        };
        let whole = |value: i128| u64::try_from(value).unwrap_or(u64::MAX);
        Self {
            before_ns: whole(before_ns),
            after_ns: whole(after_ns),
            difference_ns: signed(difference),
            count_ns: signed(count),
            duration_ns: signed(difference - count),
        }
    }
}

/// The quotient to the nearest whole number, halves away from zero. `by` is above zero.
fn nearest(value: i128, by: i128) -> i128 {
    let half = by / 2;
    value.saturating_add(if value < 0 { -half } else { half }) / by
}

/// The nearest that fits.
pub fn signed(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tally(count: u64, total_ns: u128) -> Tally {
        Tally { count, total_ns }
    }

    fn named<'a>(name: &'a str, short: &'a str, count: u64, total_ns: u128) -> NameTally<'a> {
        NameTally {
            name,
            short,
            tally: tally(count, total_ns),
            longest: None,
        }
    }

    #[test]
    fn names_are_matched_whole_and_what_is_left_by_short_names() {
        let before = [
            named("gemm<64>", "gemm", 2, 20),
            named("gemm<32>", "gemm", 1, 5),
            named("gone()", "gone", 1, 7),
            named("same()", "same", 3, 30),
        ];
        let after = [
            named("gemm<128>", "gemm", 4, 16),
            named("new()", "new", 1, 1),
            named("same()", "same", 3, 33),
        ];
        let found = counterparts(&before, &after);
        let actual: Vec<_> = found
            .iter()
            .map(|one| (one.name, one.matched_by, one.presence()))
            .collect();
        assert_eq!(
            actual,
            [
                ("gemm", MatchedBy::ShortName, Presence::Both),
                ("gone()", MatchedBy::Nothing, Presence::Before),
                ("new()", MatchedBy::Nothing, Presence::After),
                ("same()", MatchedBy::Name, Presence::Both),
            ]
        );
        assert_eq!((found[0].before, found[0].after), (tally(3, 25), tally(4, 16)));
        // One on each side: the name after.
        let one = counterparts(&before[..1], &after[..1]);
        assert_eq!((one.len(), one[0].name), (1, "gemm<128>"));
    }

    #[test]
    fn a_difference_is_told_apart_by_calls_and_their_length() {
        // Before 4 calls of 10 ns, after 6 calls of 15 ns: two more of 10 ns, and six that are 5 ns
        // longer.
        let parts = Parts::of(tally(4, 40), tally(6, 90), Units::WHOLE);
        assert_eq!((parts.difference_ns, parts.count_ns, parts.duration_ns), (50, 20, 30));
        // The same in 2 and 3 iterations: 2 calls each of 10 ns, then of 15 ns.
        let parts = Parts::of(tally(4, 40), tally(6, 90), Units { before: 2, after: 3 });
        assert_eq!((parts.before_ns, parts.after_ns), (20, 30));
        assert_eq!((parts.count_ns, parts.duration_ns), (0, 10));
        let new = Parts::of(tally(0, 0), tally(3, 9), Units::WHOLE);
        assert_eq!((new.difference_ns, new.count_ns, new.duration_ns), (9, 9, 0));
        let gone = Parts::of(tally(3, 9), tally(0, 0), Units::WHOLE);
        assert_eq!((gone.difference_ns, gone.count_ns, gone.duration_ns), (-9, -9, 0));
    }

    proptest! {
        #[test]
        fn parts_add_up_and_are_the_nearest(
            n0 in 1_u64..10_000, t0 in 0_u64..1 << 40, n1 in 1_u64..10_000, t1 in 0_u64..1 << 40, s0 in 1_u64..50, s1 in 1_u64..50
        ) {
            let parts = Parts::of(tally(n0, t0.into()), tally(n1, t1.into()), Units { before: s0, after: s1 });
            prop_assert_eq!(parts.count_ns + parts.duration_ns, parts.difference_ns);
            let (n0, n1, s0, s1) = (i128::from(n0), i128::from(n1), i128::from(s0), i128::from(s1));
            // |count − exact| ≤ 1/2, in integers.
            let exact_by = s0 * s1 * n0;
            let exact = (n1 * s0 - n0 * s1) * i128::from(t0);
            prop_assert!(2 * (i128::from(parts.count_ns) * exact_by - exact).abs() <= exact_by);
        }

        #[test]
        fn nothing_is_lost_by_matching(before in proptest::collection::btree_map("[ab]<[a-d]>", 1_u64..9, 0..8),
                                       after in proptest::collection::btree_map("[ab]<[a-d]>", 1_u64..9, 0..8)) {
            let list = |side: &'_ BTreeMap<String, u64>| -> Vec<(String, u64)> { side.clone().into_iter().collect() };
            let (before, after) = (list(&before), list(&after));
            let all = |side: &'_ [(String, u64)]| -> Vec<(usize, u64)> { side.iter().map(|(_, n)| *n).enumerate().collect() };
            let names = |side| -> Vec<NameTally<'_>> {
                let side: &[(String, u64)] = side;
                side.iter().map(|(name, n)| named(name, &name[..1], *n, u128::from(*n) * 3)).collect()
            };
            let found = counterparts(&names(&before), &names(&after));
            let sum = |side: &[(String, u64)]| all(side).iter().map(|(_, n)| n).sum::<u64>();
            prop_assert_eq!(found.iter().map(|one| one.before.count).sum::<u64>(), sum(&before));
            prop_assert_eq!(found.iter().map(|one| one.after.total_ns).sum::<u128>(), u128::from(sum(&after)) * 3);
        }
    }
}
