//! Memory: levels, peaks, the lives of buffers, and what allocators ask for.

use std::collections::{BTreeMap, BTreeSet};

use flopwatch_analysis_testing::Trace;
use flopwatch_model::{Allocation, Timeline, Track};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Size, answer, list, number};

/// A change: how long after the one before, device, address, bytes that are given out or taken
/// back, and what the allocator has then.
type Step = (u64, u32, u64, i64, u64);

const STEPS: u64 = 3;

fn changes() -> impl Strategy<Value = Vec<Step>> {
    vec((0_u64..5, 0_u32..2, 1_u64..6, 1_i64..100, 0_u64..4), 1..50)
}

/// Addresses in use are taken back; of others some were given out before the capture.
fn timeline(steps: &[Step], says_totals: bool) -> Timeline {
    let mut trace = Trace::new();
    let thread = trace.thread(1, 1, Track::Annotation);
    for number in 0..STEPS {
        trace.step(thread, number, number * 40, number * 40 + 40);
    }
    let mut timeline = trace.build();
    let (mut held, mut levels, mut t_ns) = (BTreeMap::<(u32, u64), i64>::new(), [1000_i64; 2], 0);
    for (after, device, address, bytes, reserved) in steps {
        t_ns += after;
        let bytes = match held.remove(&(*device, *address)) {
            Some(given) => -given,
            None if bytes % 4 == 0 => -bytes,
            None => {
                held.insert((*device, *address), *bytes);
                *bytes
            }
        };
        let level = &mut levels[usize::try_from(*device).unwrap()];
        *level += bytes;
        timeline.capture.allocations.push(Allocation {
            t_ns,
            process: 1,
            device: Some(*device),
            address: *address,
            bytes,
            allocated: says_totals.then_some(level.unsigned_abs()),
            reserved: says_totals.then_some(level.unsigned_abs() + reserved * 100),
            ..Allocation::default()
        });
    }
    timeline.capture.duration_ns = timeline.capture.duration_ns.max(t_ns + 1);
    timeline
}

/// The changes of a device.
fn of_device<'a>(timeline: &'a Timeline, device: &Value) -> impl Iterator<Item = &'a Allocation> + Clone {
    let device = number(device);
    let all = timeline.capture.allocations.iter();
    all.filter(move |one| one.device.map(u64::from) == Some(device))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(super::CASES))]

    #[test]
    fn no_level_is_above_the_peak_and_no_life_is_outside_of_the_capture(steps in changes(), says_totals in any::<bool>()) {
        let timeline = timeline(&steps, says_totals);
        let end = timeline.capture.duration_ns;
        let found = answer("memory", &json!({"limit": 10_000}), &timeline);
        for pool in list(&found["pools"]) {
            let changes = || of_device(&timeline, &pool["device"]);
            let peak = number(&pool["peak_bytes"]);
            let mut level = i64::try_from(number(&pool["before_bytes"])).unwrap();
            let mut highest = level;
            for change in changes() {
                level += change.bytes;
                highest = highest.max(level);
                prop_assert!(change.allocated.is_none_or(|allocated| allocated == level.unsigned_abs()), "totals follow");
            }
            prop_assert_eq!(i64::try_from(peak).unwrap(), highest);
            prop_assert_eq!(i64::try_from(number(&pool["end_bytes"])).unwrap(), level);
            let points = list(&pool["over_time"]);
            prop_assert!(points.iter().all(|point| number(&point["allocated_bytes"]) <= peak));
            prop_assert!(points.iter().any(|point| number(&point["allocated_bytes"]) == peak));
            prop_assert!(number(&pool["peak_ns"]) <= end);
            if says_totals {
                prop_assert_eq!(pool["peak_reserved_bytes"].as_u64(), changes().filter_map(|change| change.reserved).max());
                prop_assert!(number(&pool["peak_reserved_bytes"]) >= peak || pool["peak_ns"] == 0);
            }
            let alive = list(&pool["alive"]);
            let bytes = alive.iter().map(|buffer| number(&buffer["bytes"])).sum::<u64>();
            prop_assert_eq!((bytes, peak - bytes), (number(&pool["alive_bytes"]), number(&pool["from_before_bytes"])));
            for buffer in alive {
                let (given, lifetime) = (number(&buffer["given_ns"]), number(&buffer["lifetime_ns"]));
                prop_assert!(given <= number(&pool["peak_ns"]) && given + lifetime >= number(&pool["peak_ns"]));
                prop_assert!(given + lifetime <= end);
            }
        }
        let devices: BTreeSet<u32> = steps.iter().map(|step| step.1).collect();
        prop_assert_eq!(list(&found["pools"]).len(), devices.len());
    }

    #[test]
    fn an_allocator_grew_as_often_as_it_had_more_than_before(steps in changes()) {
        let timeline = timeline(&steps, true);
        let buffers = answer("buffers", &Value::Null, &timeline);
        let allocations = answer("allocations", &Value::Null, &timeline);
        prop_assert_eq!(list(&buffers["pools"]).len(), list(&allocations["allocators"]).len());
        for allocator in list(&allocations["allocators"]) {
            let changes = || of_device(&timeline, &allocator["device"]);
            let reserved: Vec<u64> = changes().filter_map(|change| change.reserved).collect();
            let (mut grew, mut shrank) = (0, 0);
            for pair in reserved.windows(2) {
                grew += u64::from(pair[0] < pair[1]);
                shrank += u64::from(pair[0] > pair[1]);
            }
            prop_assert_eq!([&allocator["growths"], &allocator["shrinks"]].map(number), [grew, shrank]);
            let pool = list(&buffers["pools"]).iter().find(|pool| pool["device"] == allocator["device"]).unwrap();
            prop_assert_eq!(number(&pool["growths"]), grew);
            let given = || changes().filter(|change| change.bytes > 0);
            for of in [allocator, pool] {
                prop_assert_eq!(number(&of["allocations"]), given().count().size());
                prop_assert_eq!(number(&of["allocated_bytes"]), given().map(|change| change.bytes.unsigned_abs()).sum::<u64>());
            }
            // The steady state begins with the second of the steps.
            let steady = given().filter(|change| change.t_ns >= 40).count().size();
            prop_assert_eq!(allocator["steady_allocations"].as_u64().unwrap_or(0), steady);
        }
        prop_assert_eq!(number(&allocations["steady_from_ns"]), 40);
    }
}
