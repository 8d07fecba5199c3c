use flopwatch_model::{Category, Track};
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::advice::scene::Scene;

/// Totals in µs by owner.
fn totals(scene: Scene) -> BTreeMap<IdleOwner, u64> {
    let timeline = scene.build();
    let facts = Facts::of(&timeline, 5);
    let mut totals = BTreeMap::new();
    for part in &facts.idle_parts.parts {
        *totals.entry(part.owner).or_default() += part.time.len() / 1000;
    }
    totals
}

#[test]
fn a_gap_that_begins_in_a_wait_is_of_the_wait_up_to_its_length_and_then_of_the_host() {
    let mut scene = Scene::new();
    scene.launch((0, 5), "gemm", (10, 70));
    scene.call("cudaStreamSynchronize", (60, 21));
    // The gap is from 80 to 200, the wait returns at 81.
    scene.launch((180, 5), "gemm", (200, 70));
    let found = totals(scene);
    assert_eq!(
        found,
        BTreeMap::from([(IdleOwner::Synchronize, 21), (IdleOwner::Launch, 99)])
    );
}

#[test]
fn an_allocation_behind_a_wait_keeps_its_own_time() {
    let mut scene = Scene::new();
    scene.launch((0, 5), "gemm", (10, 70));
    scene.call("cudaStreamSynchronize", (10, 71));
    scene.call("cudaMalloc", (90, 50));
    scene.launch((180, 5), "gemm", (200, 70));
    let found = totals(scene);
    assert_eq!(
        found,
        BTreeMap::from([(IdleOwner::Synchronize, 70), (IdleOwner::Allocate, 50)])
    );
}

#[test]
fn data_that_is_loaded_while_the_launching_thread_waits_is_the_cause_of_the_wait() {
    let mut scene = Scene::new();
    scene.launch((0, 5), "gemm", (10, 70));
    scene.on_thread(1, Track::OsRuntime, Category::OsRuntime, "futex", (80, 100));
    scene.on_thread(2, Track::Nvtx, Category::NvtxRange, "next_batch", (80, 60));
    scene.launch((180, 10), "gemm", (200, 70));
    let expected = [
        (IdleOwner::LoadData, 60),
        (IdleOwner::OsWait, 40),
        (IdleOwner::Launch, 20),
    ];
    assert_eq!(totals(scene), BTreeMap::from(expected));
}

#[test]
fn a_gap_before_work_that_was_launched_in_time_has_no_cause_on_the_host() {
    let mut scene = Scene::new();
    scene.launch((0, 5), "gemm", (10, 70));
    scene.launch((20, 5), "gemm", (200, 70));
    scene.call("cudaStreamSynchronize", (30, 250));
    assert_eq!(totals(scene), BTreeMap::new());
}

const CALLS: [(Category, Track, &str); 6] = [
    (Category::CudaApi, Track::CudaApi, "cudaDeviceSynchronize"),
    (Category::CudaApi, Track::CudaApi, "cudaMalloc"),
    (Category::CudaApi, Track::CudaApi, "cudaMemcpy"),
    (Category::OsRuntime, Track::OsRuntime, "poll"),
    (Category::NvtxRange, Track::Nvtx, "load_batch"),
    (Category::NvtxRange, Track::Nvtx, "gc"),
];

proptest! {
    #[test]
    fn parts_never_overlap_and_make_up_the_gaps_that_wait_for_the_host(
        calls in vec((0_u64..300, 1_u64..60, 0_usize..6, 1_u64..3), 0..20),
        work in vec((0_u64..300, 1_u64..20, prop::option::of(0_u64..300)), 1..20),
    ) {
        let mut scene = Scene::new();
        for (start, length, call, thread) in calls {
            let (category, track, name) = CALLS[call];
            scene.on_thread(thread, track, category, name, (start, length));
        }
        for (start, length, call) in work {
            match call {
                Some(call) => scene.launch((call, 3), "gemm", (start, length)),
                None => scene.kernel("gemm", (start, length)),
            };
        }
        let timeline = scene.build();
        let facts = Facts::of(&timeline, 5);
        let parts = &facts.idle_parts.parts;
        prop_assert!(parts.windows(2).all(|two| two[0].time.end <= two[1].time.start));
        for (at, gap) in (0_u32..).zip(facts.gaps()) {
            let inside: u64 = parts.iter().filter(|part| part.gap == at).map(|part| part.time.len()).sum();
            let waits = matches!(gap.class, IdleClass::HostWait | IdleClass::LaunchNotRecorded);
            prop_assert_eq!(inside, if waits { gap.time.len() } else { 0 });
        }
    }
}
