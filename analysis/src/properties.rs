//! The figures of time that analyses report of random programs, against a model that looks at each
//! nanosecond by itself: slow, and hard to get wrong. Formulas that have such a test beside them
//! are not here again.

mod comparison;
mod gpu;
mod host;
mod memory;
mod ranges;
mod steps;

use flopwatch_model::Timeline;
use proptest::prelude::*;
use serde_json::Value;

use crate::{Input, Request};

/// Programs that each property is tried on. An answer goes through the whole of a request, which
/// takes its time.
const CASES: u32 = 128;

/// Every time of a random program is before this.
const END: usize = 512;

/// Points of time: a flag for each nanosecond.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Moments(Vec<bool>);

impl Moments {
    /// All that `times`, each from a start up to and without an end, hold.
    fn of(times: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let mut moments = vec![false; END];
        for (start, end) in times {
            for at in start..end {
                moments[usize::try_from(at).unwrap()] = true;
            }
        }
        Self(moments)
    }

    fn each(&self, other: &Self, rule: impl Fn(bool, bool) -> bool) -> Self {
        Self(
            self.0
                .iter()
                .zip(&other.0)
                .map(|(own, other)| rule(*own, *other))
                .collect(),
        )
    }

    fn and(&self, other: &Self) -> Self {
        self.each(other, |own, other| own && other)
    }

    fn or(&self, other: &Self) -> Self {
        self.each(other, |own, other| own || other)
    }

    fn without(&self, other: &Self) -> Self {
        self.each(other, |own, other| own && !other)
    }

    fn count(&self) -> u64 {
        u64::try_from(self.0.iter().filter(|held| **held).count()).unwrap()
    }

    fn holds(&self, at: u64) -> bool {
        self.0[usize::try_from(at).unwrap()]
    }

    /// Lengths of its pieces.
    fn pieces(&self) -> Vec<u64> {
        let pieces = self.0.chunk_by(|one, next| one == next).filter(|piece| piece[0]);
        pieces.map(|piece| u64::try_from(piece.len()).unwrap()).collect()
    }
}

/// The result of an analysis, as clients get it.
fn answer(analysis: &str, parameters: &Value, timeline: &Timeline) -> Value {
    answer_of(analysis, parameters, &[timeline])
}

/// The result of an analysis of several captures.
fn answer_of(analysis: &str, parameters: &Value, timelines: &[&Timeline]) -> Value {
    let request = Request::parse(analysis, parameters).unwrap();
    let mut out = Vec::new();
    let inputs: Vec<Input<'_>> = timelines.iter().map(|timeline| Input::whole(timeline)).collect();
    request.run(&inputs, &mut out).unwrap();
    serde_json::from_slice(&out).unwrap()
}

/// How many, as results have it.
trait Size {
    fn size(self) -> u64;
}

impl Size for usize {
    fn size(self) -> u64 {
        u64::try_from(self).unwrap()
    }
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

/// Times that nest: each is a whole node of a binary tree over 128 ns, and no two are equal. Sorted
/// as a timeline has them.
fn nested(max: usize) -> impl Strategy<Value = Vec<(u64, u64)>> {
    let node = (0_u32..6, 0_u64..128).prop_map(|(level, at)| {
        let width = 128 >> level;
        (at / width * width, width)
    });
    proptest::collection::vec(node, 0..max).prop_map(|nodes| {
        let nodes: std::collections::BTreeSet<(u64, std::cmp::Reverse<u64>)> = nodes
            .into_iter()
            .map(|(start, width)| (start, std::cmp::Reverse(width)))
            .collect();
        nodes
            .into_iter()
            .map(|(start, width)| (start, start + width.0))
            .collect()
    })
}
