//! A collection takes no more than its pod, its disk and its agent allow.

use std::time::Instant;

use flopwatch_attach::rootfs::Volume;
use flopwatch_launcher::guard::Verdict;
use flopwatch_pipeline::disk::Floor;

use super::rig::Rig;

const MEBIBYTE: u64 = 1 << 20;

#[tokio::test]
async fn a_collection_is_bounded_by_what_the_pods_limit_leaves_and_ends_as_soon_as_the_supervisor_ended_it() {
    let rig = Rig::prepared(Some("37748736"));
    let life = rig.collecting("c", 300).await;
    // 36 MiB, a third of it: the stop writes the capture once more.
    assert_eq!(rig.containers.inside().started[0].max_bytes, 12 * MEBIBYTE);
    let begin = Instant::now();
    {
        let mut inside = rig.containers.inside();
        inside.verdict = Some(Verdict::TooLarge);
        let name = inside.collecting.take().unwrap();
        inside.raw.insert(name, b"what the supervisor stopped");
    }
    let message = rig.ends("c", "CaptureTooLarge").await;
    assert!(message.contains("ephemeral-storage limit"), "{message}");
    assert!(begin.elapsed().as_secs() < 60, "the window is not waited out");
    assert!(rig.containers.inside().raw.is_empty(), "its room is given back");
    life.end().await;
}

#[tokio::test]
async fn a_session_that_hangs_after_a_stop_without_room_is_ended_with_its_capture() {
    let rig = Rig::prepared(None);
    let life = rig.collecting("c", 300).await;
    {
        let mut inside = rig.containers.inside();
        inside.verdict = Some(Verdict::NoSpace);
        inside.hangs = true;
    }
    assert_eq!(rig.end_of("c").await.0, "DiskSpace");
    super::rig::eventually("the supervisor to be told", || {
        (!rig.containers.inside().hangs).then_some(())
    })
    .await;
    life.end().await;
}

#[tokio::test]
async fn a_pod_without_room_is_refused_before_anything_is_collected() {
    // The second is nothing that admission writes.
    for room in ["1048576", "much"] {
        let rig = Rig::prepared(Some(room));
        let life = rig.live().await;
        rig.ask("c", 300);
        assert_eq!(rig.end_of("c").await.0, "CaptureTooLarge");
        assert!(rig.containers.inside().started.is_empty());
        life.end().await;
    }
}

#[tokio::test]
async fn a_collection_leaves_the_part_of_the_pods_disk_that_must_stay_free() {
    let mut rig = Rig::prepared(None);
    // The spool is on a disk of this machine, where so little is free.
    rig.limits.floor = Floor {
        bytes: 16 * MEBIBYTE,
        percent: 0,
    };
    rig.containers.inside().volume = Volume {
        bytes: 1600 * MEBIBYTE,
        free: 64 * MEBIBYTE,
    };
    let life = rig.live().await;
    rig.ask("c", 2);
    rig.end_of("c").await;
    {
        let inside = rig.containers.inside();
        assert_eq!(inside.started[0].min_free_bytes, 16 * MEBIBYTE);
        assert_eq!(
            inside.started[0].max_bytes,
            16 * MEBIBYTE,
            "a third of the 48 MiB above that"
        );
    }
    life.end().await;
}

#[tokio::test]
async fn a_collection_is_not_begun_on_a_disk_without_room() {
    let mut rig = Rig::prepared(None);
    rig.limits.floor = Floor { bytes: 1, percent: 0 };
    rig.containers.inside().volume = Volume { bytes: 100, free: 0 };
    let life = rig.live().await;
    rig.ask("c", 300);
    rig.ends("c", "DiskSpace").await;
    assert!(rig.containers.inside().started.is_empty());
    life.end().await;
}
