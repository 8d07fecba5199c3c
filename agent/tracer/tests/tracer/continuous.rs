//! What is recorded all the time, by an order that is given again and again.

use std::fs::File;
use std::time::{Duration, Instant};

use flopwatch_model::{Category, Events};
use flopwatch_trace::ReadLimits;
use flopwatch_trace::tracer::{self, Drain};
use flopwatch_tracer_file::process::{Count, Phase, Reason};
use flopwatch_tracer_file::wanted::{Kinds, Mode, Wanted};

use super::agent::{Agent, lost, now_ns, window};
use super::rig::Rig;

/// Kernels from now on, until so long after now.
fn continuous(length: Duration) -> Wanted {
    Wanted {
        mode: Mode::Continuous,
        deadline_ns: now_ns() + u64::try_from(length.as_nanos()).unwrap(),
        ..window(Kinds::KERNELS)
    }
}

/// What the file holds since a time, while its program runs: kernels, and whether it says that
/// something is gone.
fn recent(rig: &Rig, since_ns: u64) -> (u64, bool) {
    let path = rig.path("recent.cuda-trace");
    let (from, to) = (File::open(rig.trace()).unwrap(), File::create(&path).unwrap());
    let limits = ReadLimits::default();
    let kept = Drain::recent(from, to, &limits, since_ns, false).unwrap();
    let capture = tracer::read(&path, &limits).unwrap();
    let kernels = capture.events.get(&Category::CudaKernel).map_or(0, Events::count);
    assert_eq!(kernels, kept);
    (kernels, !capture.losses.list().is_empty())
}

#[test]
fn the_last_seconds_are_read_of_a_file_that_goes_round_and_nothing_of_them_counts_as_lost() {
    let (rig, mut program, mut agent) = Agent::anew();
    agent.order(continuous(Duration::from_mins(1)));
    assert_eq!(agent.settle(0), Phase::Recording);
    let mut written = 0;
    let mut launch = |agent: &mut Agent, count: u64| {
        let since = now_ns();
        written += program.recorded(&format!("launch {count}"));
        // What is complete comes by itself.
        agent.wait(0, |process| process.count(Count::Records) >= written);
        since
    };
    let first = launch(&mut agent, 10_000);
    let second = launch(&mut agent, 500);
    assert_eq!(recent(&rig, first), (10_500, false), "it holds everything");
    assert_eq!(recent(&rig, second), (500, false));
    // Several times what the file has room for.
    for _ in 0..20 {
        launch(&mut agent, 10_000);
    }
    let last = launch(&mut agent, 700);
    assert_eq!(recent(&rig, last), (700, false));
    let (kernels, is_told) = recent(&rig, first);
    assert!(kernels > 700 && kernels < 200_000 && is_told, "{kernels}");
    assert_eq!(recent(&rig, now_ns()), (0, false));
    agent.end();
}

#[test]
fn an_order_that_goes_on_asks_nothing_of_cupti_and_loses_nothing() {
    let (rig, mut program, mut agent) = Agent::anew();
    agent.order(continuous(Duration::from_mins(1)));
    assert_eq!(agent.settle(0), Phase::Recording);
    let subscriptions = || rig.calls().iter().filter(|(name, ..)| name == "subscribe").count();
    assert_eq!(subscriptions(), 1);
    let mut recorded = 0;
    for _ in 0..50 {
        agent.order(continuous(Duration::from_mins(1)));
        recorded += program.recorded("launch 200");
        assert_eq!(agent.settle(0), Phase::Recording);
    }
    agent.end();
    assert_eq!(recorded, 50 * 200);
    assert_eq!(agent.events().len(), 50 * 200);
    let process = agent.process(0);
    assert_eq!((lost(&process), process.count(Count::Windows)), (0, 1));
    assert_eq!(subscriptions(), 1);
}

#[test]
fn what_was_refused_is_not_tried_again_by_each_order_that_goes_on() {
    let rig = Rig::new(1305).failing("subscribe=39");
    let program = rig.start();
    let mut agent = Agent::of(&rig);
    let subscriptions = || rig.calls().iter().filter(|(name, ..)| name == "subscribe").count();
    for _ in 0..10 {
        agent.order(continuous(Duration::from_mins(1)));
        assert_eq!(agent.settle(0), Phase::Refused);
        assert_eq!(agent.process(0).reason, Reason::Held);
    }
    assert_eq!(subscriptions(), 1);
    agent.end();
    agent.order(continuous(Duration::from_mins(1)));
    assert_eq!(agent.settle(0), Phase::Refused);
    assert_eq!(subscriptions(), 2, "it had ended");
    drop(program);
}

#[test]
fn what_nobody_orders_again_ends_at_its_deadline() {
    let (_rig, mut program, mut agent) = Agent::anew();
    agent.order(continuous(Duration::from_millis(300)));
    assert_eq!(agent.settle(0), Phase::Recording);
    let begin = Instant::now();
    agent.order(continuous(Duration::from_millis(600)));
    agent.wait(0, |process| process.phase == Phase::Idle);
    assert!(begin.elapsed() >= Duration::from_millis(600), "{:?}", begin.elapsed());
    assert_eq!(program.recorded("launch 10"), 0);
}

#[test]
fn a_window_ends_what_is_recorded_all_the_time_and_has_what_it_asked_for() {
    let (_rig, mut program, mut agent) = Agent::anew();
    agent.order(continuous(Duration::from_mins(1)));
    assert_eq!(agent.settle(0), Phase::Recording);
    let before = program.recorded("launch 100");
    agent.begin(Kinds::KERNELS.with(Kinds::RUNTIME));
    assert_eq!(agent.process(0).count(Count::Windows), 1, "the first one has ended");
    assert_eq!(program.recorded("launch 100"), 200, "each with its call");
    agent.order(continuous(Duration::from_mins(1)));
    assert_eq!(agent.settle(0), Phase::Recording);
    let after = program.recorded("launch 100");
    agent.end();
    assert_eq!((before, after), (100, 100));
    assert_eq!(agent.events().len(), 400);
}
