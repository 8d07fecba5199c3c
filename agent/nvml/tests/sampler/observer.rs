//! An observer that is given all rounds.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use flopwatch_nvml::{Observer, Round, Wanted};
use serde_json::{Value, json};

use crate::rig::{eventually, gpu, in_own_process, own_pid, wait};

/// What came of a round: time, GPUs, whether it was whole, with how many processes, and what was
/// missed.
type Taken = (Instant, usize, bool, usize, u64);

/// All rounds.
#[derive(Default)]
struct Seen(Mutex<Vec<Taken>>);

impl Observer for Seen {
    fn take(&self, round: &Round<'_>) -> Wanted {
        let processes: usize = round.readings.iter().map(|reading| reading.processes.len()).sum();
        let wanted = if round.whole && processes == 0 {
            // GPUs that nobody uses are looked at less often.
            Wanted::Whole
        } else {
            Wanted::Every
        };
        let round = (
            Instant::now(),
            round.readings.len(),
            round.whole,
            processes,
            round.missed,
        );
        self.0.lock().unwrap().push(round);
        wanted
    }
}

fn eight() -> Value {
    let devices: Vec<Value> = (0..8)
        .map(|at| {
            let mut gpu = gpu(&json!([{"pid": own_pid(), "memory_used_bytes": 1}]));
            gpu["uuid"] = json!(format!("GPU-{at}"));
            gpu
        })
        .collect();
    json!({"version": 1, "devices": devices})
}

#[test]
fn an_observer_is_given_all_gpus_each_round_and_their_processes_each_fifth() {
    in_own_process(
        "observer::an_observer_is_given_all_gpus_each_round_and_their_processes_each_fifth",
        |rig| {
            rig.set(&eight());
            let sampler = rig.sampler();
            let seen = Arc::new(Seen::default());
            let observation = sampler
                .observe(Duration::from_millis(100), Arc::<Seen>::clone(&seen))
                .unwrap();
            eventually("thirty rounds", || seen.0.lock().unwrap().len() >= 30);
            drop(observation);
            wait(250);
            let rounds = seen.0.lock().unwrap().clone();
            wait(250);
            assert_eq!(seen.0.lock().unwrap().len(), rounds.len(), "none after its end");
            assert!(rounds.iter().all(|(_, gpus, ..)| *gpus == 8), "{rounds:?}");
            let whole = rounds.iter().filter(|(_, _, whole, ..)| *whole).count();
            assert!(whole >= rounds.len() / 5, "{whole} of {}", rounds.len());
            assert!(
                rounds
                    .iter()
                    .all(|(_, _, whole, processes, _)| *processes == if *whole { 8 } else { 0 })
            );
            let took = rounds[rounds.len() - 1].0.duration_since(rounds[0].0);
            let missed: u64 = rounds.iter().skip(1).map(|(.., missed)| missed).sum();
            // Each tenth of a second is a round or one that was missed.
            let all = u64::try_from(rounds.len()).unwrap() - 1 + missed;
            let tenths = u64::try_from(took.as_millis() / 100).unwrap();
            assert!(all.abs_diff(tenths) <= 1, "{all} in {tenths} tenths");
        },
    );
}

#[test]
fn an_observer_that_wants_whole_rounds_is_given_them_in_their_time_and_no_others() {
    in_own_process(
        "observer::an_observer_that_wants_whole_rounds_is_given_them_in_their_time_and_no_others",
        |rig| {
            let mut unused = eight();
            for device in unused["devices"].as_array_mut().unwrap() {
                device["processes"] = json!([]);
            }
            rig.set(&unused);
            let sampler = rig.sampler();
            let seen = Arc::new(Seen::default());
            let _observation = sampler
                .observe(Duration::from_millis(100), Arc::<Seen>::clone(&seen))
                .unwrap();
            eventually("six rounds", || seen.0.lock().unwrap().len() >= 6);
            let rounds = seen.0.lock().unwrap().clone();
            assert!(rounds.iter().all(|(_, _, whole, ..)| *whole), "{rounds:?}");
            let took = rounds[5].0.duration_since(rounds[0].0);
            assert!(took >= Duration::from_millis(2_400), "{took:?}");
            rig.set(&eight());
            eventually("rounds of processes alone", || {
                seen.0.lock().unwrap().iter().any(|(_, _, whole, ..)| !whole)
            });
        },
    );
}

#[test]
fn an_observer_hears_of_the_rounds_in_which_nvml_was_lost() {
    in_own_process(
        "observer::an_observer_hears_of_the_rounds_in_which_nvml_was_lost",
        |rig| {
            rig.set(&eight());
            let sampler = rig.sampler();
            let seen = Arc::new(Seen::default());
            let _observation = sampler
                .observe(Duration::from_millis(100), Arc::<Seen>::clone(&seen))
                .unwrap();
            eventually("a round", || !seen.0.lock().unwrap().is_empty());
            let mut ill = eight();
            ill["errors"] = json!({"nvmlDeviceGetPowerUsage": "UNINITIALIZED"});
            rig.set(&ill);
            eventually("a round that failed", || {
                seen.0
                    .lock()
                    .unwrap()
                    .iter()
                    .any(|(_, gpus, .., missed)| *gpus == 0 && *missed > 0)
            });
            wait(500);
            rig.set(&eight());
            eventually("the next round", || {
                let rounds = seen.0.lock().unwrap();
                rounds.last().is_some_and(|(_, gpus, ..)| *gpus == 8)
                    && rounds.iter().any(|(_, gpus, .., missed)| *gpus == 8 && *missed > 3)
            });
        },
    );
}
