//! Properties of analyses of iterations on random timelines: their parts, bubbles, critical paths,
//! utilisation and steady state.

use flopwatch_analysis_testing::Trace;
use flopwatch_model::{Timeline, Track};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Moments, answer, list, number};

/// A launch: start of the call in ns, device (0 or 1), delay of the work after the call in ns,
/// length of the work in ns, and whether the work is communication.
type Launch = (u64, u32, u64, u64, bool);

/// Number of steps in a timeline; each is 40 ns long, and one begins every 50 ns.
const STEPS: u64 = 4;

fn launches() -> impl Strategy<Value = Vec<Launch>> {
    vec((0_u64..210, 0_u32..2, 1_u64..60, 1_u64..40, any::<bool>()), 1..25)
}

fn step_of(launch: &Launch) -> Option<u64> {
    let step = launch.0 / 50;
    (launch.0 % 50 < 40 && step < STEPS).then_some(step)
}

fn span(launch: &Launch) -> (u64, u64) {
    let start = launch.0 + launch.2;
    (start, start + launch.3)
}

fn timeline(launches: &[Launch]) -> Timeline {
    let mut trace = Trace::new();
    let steps = trace.thread(1, 1, Track::Annotation);
    let api = trace.thread(1, 1, Track::CudaApi);
    let streams = [0, 1].map(|device| trace.stream(1, device, 7));
    for step in 0..STEPS {
        trace.step(steps, step, step * 50, step * 50 + 40);
    }
    for launch in launches {
        let (start, end) = span(launch);
        let name = if launch.4 {
            "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
        } else {
            "gemm"
        };
        let stream = streams[usize::try_from(launch.1).unwrap()];
        trace.launch_kernel((api, launch.0, launch.0 + 1), (stream, name, start, end));
    }
    trace.build()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(super::CASES))]

    #[test]
    fn an_iteration_has_the_time_of_what_it_launched(launches in launches()) {
        let found = answer("iterations", &Value::Null, &timeline(&launches));
        let rows = list(&found["rows"]);
        prop_assert_eq!(rows.len(), usize::try_from(STEPS).unwrap());
        let mut until = None;
        for row in rows {
            let step = number(&row["number"]);
            let own = || launches.iter().filter(|launch| step_of(launch) == Some(step));
            prop_assert_eq!(row["gpu_start_ns"].as_u64(), own().map(|launch| span(launch).0).min());
            prop_assert_eq!(row["gpu_end_ns"].as_u64(), own().map(|launch| span(launch).1).max());
            let (mut window, mut parts) = (0, [0; 3]);
            for device in [0, 1] {
                let here = || own().filter(|launch| launch.1 == device);
                let of = |communicates| Moments::of(here().filter(|launch| launch.4 == communicates).map(span));
                let (compute, communication) = (of(false), of(true));
                let length = here().map(|launch| span(launch).1).max().unwrap_or(0) - here().map(|launch| span(launch).0).min().unwrap_or(0);
                window += length;
                let exposed = communication.without(&compute).count();
                let found = [compute.count(), exposed, length - compute.or(&communication).count()];
                for (sum, part) in parts.iter_mut().zip(found) {
                    *sum += part;
                }
            }
            let reported = ["compute_ns", "exposed_communication_ns", "idle_ns"].map(|part| number(&row["parts"][part]));
            prop_assert_eq!((number(&row["parts"]["window_ns"]), reported), (window, parts));
            let start = own().map(|launch| span(launch).0).min();
            let gap = until.zip(start).map(|(until, start): (u64, u64)| start.saturating_sub(until));
            prop_assert_eq!(row["gpu_gap_before_ns"].as_u64(), gap);
            until = until.max(own().map(|launch| span(launch).1).max());
        }
    }

    #[test]
    fn a_bubble_is_each_nanosecond_in_which_another_device_works(launches in launches()) {
        let found = answer("iterations", &Value::Null, &timeline(&launches));
        let counted = list(&found["rows"]).iter().filter(|row| row["warm_up"] == false);
        let windows = Moments::of(counted.filter_map(|row| Some((row["gpu_start_ns"].as_u64()?, row["gpu_end_ns"].as_u64()?))));
        let of = |device: u32| Moments::of(launches.iter().filter(|launch| launch.1 == device).map(span));
        let any = of(0).or(&of(1)).and(&windows);
        for bubbles in list(&found["bubbles"]) {
            let own = of(u32::try_from(number(&bubbles["device"])).unwrap()).and(&windows);
            for (field, expected) in [
                ("window_ns", windows.count()),
                ("busy_ns", own.count()),
                ("bubble_ns", any.without(&own).count()),
                ("all_idle_ns", windows.without(&any).count()),
            ] {
                prop_assert_eq!(number(&bubbles[field]), expected, "{}", field);
            }
        }
    }

    /// The path is one way through the time of its window: it has no nanosecond twice, and all of
    /// its parts together are the path. No stream is busy for longer.
    #[test]
    fn a_critical_path_is_no_longer_than_its_window_and_no_shorter_than_a_chain(launches in launches()) {
        let path = answer("critical-path", &json!({"whole": true, "limit": 10_000}), &timeline(&launches));
        let parts: u64 = list(&path["parts"]).iter().map(|part| number(&part["time_ns"])).sum::<u64>();
        let length = number(&path["path_ns"]);
        prop_assert_eq!(parts, length);
        let window = number(&path["end_ns"]) - number(&path["start_ns"]);
        prop_assert!(length + number(&path["unexplained_ns"]) <= window, "{}", path);
        let longest = launches.iter().map(|launch| launch.3).max().unwrap_or(0);
        let chain = number(&path["gpu_chain_ns"]);
        prop_assert!((longest..=window).contains(&chain), "{}", path);
        for device in [0, 1] {
            let busy = Moments::of(launches.iter().filter(|launch| launch.1 == device).map(span)).count();
            prop_assert!(busy <= length && busy <= chain, "{} of {}", busy, path);
        }
        let mut segments: Vec<(u64, u64)> = list(&path["rows"]).iter().map(|row| (number(&row["start_ns"]), number(&row["end_ns"]))).collect();
        segments.sort_unstable();
        prop_assert!(segments.windows(2).all(|two| two[0].1 <= two[1].0), "{}", path);
        prop_assert!(segments.iter().map(|segment| segment.1 - segment.0).sum::<u64>() <= length);
    }

    /// The number of operations is given as a parameter, and the peak is one operation per ns and
    /// device.
    #[test]
    fn utilisation_is_of_the_time_of_the_devices_that_worked(launches in launches()) {
        let parameters = json!({"whole": true, "flops_per_iteration": 7.0, "peak_tflops": 0.001});
        let found = answer("mfu", &parameters, &timeline(&launches));
        let end = launches.iter().map(|launch| span(launch).1).max().unwrap();
        let start = launches.iter().map(|launch| span(launch).0).min().unwrap();
        let devices = [0, 1].into_iter().filter(|device| launches.iter().any(|launch| launch.1 == *device)).count();
        let device_time = (end - start) * u64::try_from(devices).unwrap();
        prop_assert_eq!(number(&found["device_time_ns"]), device_time);
        let expected = 7.0 / f64::from(u32::try_from(device_time).unwrap());
        prop_assert!((found["mfu_ratio"].as_f64().unwrap() - expected).abs() < 1e-12, "{}", found);
        prop_assert_eq!(number(&found["kernel_time_ns"]), launches.iter().map(|launch| launch.3).sum::<u64>());
    }

    #[test]
    fn a_period_of_kernels_that_was_planted_is_found(
        layers in 1_u64..5, lengths in vec(1_u64..10, 12), pause in 40_u64..80, periods in 3_u64..9,
    ) {
        let (timeline, starts, kernels) = periodic(layers, &lengths, pause, periods);
        let found = answer("iterations", &Value::Null, &timeline);
        prop_assert_eq!(&found["source"], "kernel_period");
        let rows = list(&found["rows"]);
        let found_starts: Vec<u64> = rows.iter().map(|row| number(&row["start_ns"])).collect();
        prop_assert_eq!(found_starts, starts);
        prop_assert!(rows.iter().all(|row| number(&row["kernels"]) == kernels));
    }

    #[test]
    fn kernels_in_no_order_have_no_iterations(names in vec(0_u8..200, 0..40).prop_shuffle()) {
        let distinct: std::collections::BTreeSet<u8> = names.iter().copied().collect();
        let mut trace = Trace::new();
        let stream = trace.stream(1, 0, 7);
        for (at, name) in (0_u64..).zip(&distinct) {
            trace.kernel(stream, &format!("kernel_{}", char::from(b'a' + name % 26).to_string().repeat(1 + usize::from(name / 26))), at * 10, at * 10 + 5);
        }
        let found = answer("iterations", &Value::Null, &trace.build());
        prop_assert!(found["source"].is_null() && list(&found["rows"]).is_empty());
        prop_assert!(!list(&found["not_captured"]).is_empty());
    }

    #[test]
    fn the_steady_state_has_what_begins_with_the_second_iteration_or_later(calls in vec((0_u64..250, 0_u64..20), 0..20)) {
        let mut trace = Trace::new();
        let (steps, api) = (trace.thread(1, 1, Track::Annotation), trace.thread(1, 1, Track::CudaApi));
        for step in 0..STEPS {
            trace.step(steps, step, step * 50, step * 50 + 40);
        }
        for (start, length) in &calls {
            trace.call(api, "cudaMalloc", *start, start + length);
        }
        let found = answer("allocations", &Value::Null, &trace.build());
        prop_assert_eq!(number(&found["steady_from_ns"]), 50);
        let cost = |calls: &mut dyn Iterator<Item = &(u64, u64)>| calls.fold((0, 0), |(count, sum), (_, length)| (count + 1, sum + length));
        let reported = |cost: &Value| (number(&cost["calls"]), number(&cost["total_ns"]));
        prop_assert_eq!(reported(&found["calls"]["cost"]), cost(&mut calls.iter()));
        prop_assert_eq!(reported(&found["calls"]["steady"]), cost(&mut calls.iter().filter(|(start, _)| *start >= 50)));
    }
}

/// A timeline of periods, each of a pause, an embedding, `layers` layers of two kernels, and a
/// loss. Returns the timeline, the starts of the periods in ns, and the number of kernels per
/// period.
fn periodic(layers: u64, lengths: &[u64], pause: u64, periods: u64) -> (Timeline, Vec<u64>, u64) {
    let mut trace = Trace::new();
    let stream = trace.stream(1, 0, 7);
    let names = ["embedding"]
        .into_iter()
        .chain((0..layers).flat_map(|_| ["attention", "mlp"]))
        .chain(["loss"]);
    let names: Vec<&str> = names.collect();
    let (mut now, mut starts) = (0, Vec::new());
    for _ in 0..periods {
        starts.push(now);
        for (name, length) in names.iter().zip(lengths) {
            trace.kernel(stream, name, now, now + length);
            now += length + 1;
        }
        now += pause;
    }
    (trace.build(), starts, 2 * layers + 2)
}
