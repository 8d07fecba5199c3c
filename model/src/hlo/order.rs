//! The order of computations.

use std::collections::HashMap;

use super::Computation;

/// `computations` with those that are called before their callers: as they are met from the
/// instructions of number `entry` on, then those that it does not reach, by their names. Of those
/// that call each other in a circle any is first.
pub(super) fn callees_first(computations: Vec<Computation>, entry: u64) -> Vec<Computation> {
    let mut positions: HashMap<u64, usize> = HashMap::new();
    for (position, computation) in computations.iter().enumerate() {
        positions.entry(computation.id).or_insert(position);
    }
    let called = |of: &Computation| -> Vec<usize> {
        let ids = of.instructions.iter().flat_map(|instruction| &instruction.called);
        ids.filter_map(|id| positions.get(id).copied()).collect()
    };
    let callees: Vec<Vec<usize>> = computations.iter().map(called).collect();
    let name = |position: &usize| computations.get(*position).map(|computation| computation.name.as_str());
    let mut starts: Vec<usize> = (0..computations.len()).collect();
    starts.sort_by_key(|position| (positions.get(&entry) != Some(position), name(position)));
    let mut order = Vec::with_capacity(computations.len());
    let mut is_seen = vec![false; computations.len()];
    let mut is_new = |position: usize| {
        is_seen
            .get_mut(position)
            .is_some_and(|seen| !std::mem::replace(seen, true))
    };
    // The computations that are on the way, and how many of each one's callees were looked at.
    let mut way: Vec<(usize, usize)> = Vec::new();
    for first in starts {
        if is_new(first) {
            way.push((first, 0));
        }
        while let Some((position, looked)) = way.pop() {
            let Some(next) = callees.get(position).and_then(|callees| callees.get(looked)) else {
                order.push(position);
                continue;
            };
            way.push((position, looked + 1));
            if is_new(*next) {
                way.push((*next, 0));
            }
        }
    }
    let mut computations: Vec<Option<Computation>> = computations.into_iter().map(Some).collect();
    let ordered = order
        .into_iter()
        .filter_map(|position| computations.get_mut(position)?.take());
    ordered.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hlo::Instruction;

    fn order(calls: &[&[u64]], entry: u64) -> Vec<u64> {
        let computations = calls.iter().zip(1_u64..).map(|(called, id)| Computation {
            name: format!("c{id}"),
            id,
            instructions: vec![Instruction {
                called: called.to_vec(),
                ..Instruction::default()
            }],
            ..Computation::default()
        });
        let ordered = callees_first(computations.collect(), entry);
        ordered.iter().map(|computation| computation.id).collect()
    }

    #[test]
    fn computations_stand_behind_those_that_they_call() {
        assert_eq!(order(&[&[], &[1], &[2, 1]], 3), [1, 2, 3]);
        assert_eq!(order(&[&[2, 3], &[3], &[], &[1]], 4), [3, 2, 1, 4]);
        assert_eq!(order(&[&[3], &[], &[]], 2), [2, 3, 1]);
        // A circle, and a call of what is not there.
        assert_eq!(order(&[&[2], &[1], &[9]], 1), [2, 1, 3]);
    }
}
