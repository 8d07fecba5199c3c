//! Windows of one program.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt as _;
use std::time::{Duration, Instant};

use flopwatch_tracer_file::header::WANTED_AT;
use flopwatch_tracer_file::process::{Count, Phase};
use flopwatch_tracer_file::record::{RUNTIME, Record};
use flopwatch_tracer_file::wanted::{GraphLevel, Kinds, MODE_AT, Wanted};

use super::agent::{Agent, lost, now_ns, window};
use super::rig::Rig;

#[test]
fn the_kernels_of_a_window_are_drained_with_their_names() {
    let (_rig, mut program, mut agent) = Agent::anew();
    assert_eq!(program.recorded("launch 100"), 0);
    agent.begin(Kinds::KERNELS);
    assert_eq!(program.recorded("launch 1000"), 1000);
    agent.end();
    let found = agent.drain();
    let mut names: BTreeMap<u32, u32> = BTreeMap::new();
    for (origin, record) in &found {
        let Record::Kernel(kernel) = record else {
            panic!("{record:?}");
        };
        assert_eq!((origin.slot, origin.pid), (0, program.child.id()));
        let began = origin.moment.realtime_of(kernel.run.start_ns).unwrap();
        assert!(now_ns().abs_diff(began) < 60_000_000_000);
        assert_eq!(kernel.run.end_ns - kernel.run.start_ns, 5000);
        assert_eq!(
            (kernel.shape.grid_x, kernel.shape.block_x, kernel.shape.registers),
            (108, 256, 40)
        );
        *names.entry(kernel.run.name).or_default() += 1;
    }
    assert_eq!((found.len(), names.len()), (1000, 50));
    let texts: Vec<String> = names.keys().map(|number| agent.name(*number)).collect();
    assert!(
        texts.contains(&"void kernel_49<float, 49>(float*, int)".to_owned()),
        "{texts:?}"
    );
    let process = agent.process(0);
    assert_eq!((lost(&process), process.count(Count::Windows)), (0, 1));
    assert_eq!((process.cupti_version, process.driver_version), (130_500, 13_050));
    assert_eq!(program.ask("launch 5"), "recorded 0");
    assert!(program.end().success());
}

#[test]
fn until_somebody_asks_no_libcupti_is_mapped_and_nothing_is_called() {
    let (rig, mut program, mut agent) = Agent::anew();
    assert_eq!(program.recorded("launch 100000"), 0);
    assert!(program.has_mapped("libflopwatch_cuda") && !program.has_mapped("libcupti"));
    assert_eq!(rig.calls(), []);
    assert_eq!(
        agent
            .wait(0, |process| process.phase == Phase::Idle)
            .count(Count::Windows),
        0
    );
    agent.begin(Kinds::KERNELS);
    assert!(program.has_mapped("own/libcupti.so.13"));
}

#[test]
fn two_hundred_windows_have_exactly_what_the_program_launched_in_them() {
    let rig = Rig::new(1300);
    let (mut program, mut agent) = Agent::started(&rig);
    let (mut expected, mut found) = (0, 0);
    let (mut times, mut mapped) = ((Vec::new(), Vec::new()), 0);
    for round in 0..200_u64 {
        let begin = Instant::now();
        agent.begin(Kinds::KERNELS);
        times.0.push(begin.elapsed());
        let launches = 1 + round * 37 % 600;
        assert_eq!(program.recorded(&format!("launch {launches}")), launches);
        expected += launches;
        let end = Instant::now();
        agent.end();
        times.1.push(end.elapsed());
        assert_eq!(program.recorded("launch 50"), 0);
        found += u64::try_from(agent.events().len()).unwrap();
        assert_eq!(found, expected, "in round {round}");
        if round == 20 {
            mapped = program.memory_kib("VmSize:");
        }
    }
    assert_eq!(
        program.memory_kib("VmSize:"),
        mapped,
        "the program grows with each window"
    );
    let process = agent.process(0);
    assert_eq!((lost(&process), process.count(Count::Windows)), (0, 200));
    assert_eq!(agent.losses(0).overwritten, 0);
    for list in [&mut times.0, &mut times.1] {
        list.sort_unstable();
    }
    println!(
        "begin p50 {:?} p95 {:?}, end p50 {:?} p95 {:?}",
        times.0[100], times.0[190], times.1[100], times.1[190]
    );
    assert!(program.end().success());
}

#[test]
fn every_kind_of_record_comes_with_what_it_refers_to() {
    let rig = Rig::new(1208);
    let (mut program, mut agent) = Agent::started(&rig);
    agent.begin(Kinds::ALL);
    // Kernel, copy, copy between devices, memset, graph, wait; each with two calls.
    let recorded: u64 = (0..6).map(|kind| program.recorded(&format!("launch 10 {kind}"))).sum();
    assert_eq!(recorded, 6 * 30);
    agent.end();
    let found: Vec<Record> = agent.drain().into_iter().map(|(_, record)| record).collect();
    let count = |is_so: fn(&Record) -> bool| found.iter().filter(|record| is_so(record)).count();
    assert_eq!(count(|record| matches!(record, Record::Kernel(_))), 10);
    assert_eq!(
        count(|record| matches!(record, Record::Copy(copy) if copy.bytes == 4096)),
        10
    );
    assert_eq!(
        count(|record| matches!(record, Record::Peer(peer) if peer.destination_device == 1)),
        10
    );
    assert_eq!(
        count(|record| matches!(record, Record::Set(set) if set.bytes == 8192)),
        10
    );
    assert_eq!(
        count(|record| matches!(record, Record::Graph(graph) if graph.graph == 5)),
        10
    );
    assert_eq!(
        count(|record| matches!(record, Record::Sync(wait) if wait.kind == 3)),
        10
    );
    assert_eq!(count(|record| matches!(record, Record::Call(_))), 120);
    assert_eq!(
        count(|record| matches!(record, Record::Context(_) | Record::Stream(_))),
        2
    );
    let names = found.iter().filter_map(|record| match record {
        Record::CallName(name) if name.domain == RUNTIME => Some((name.function, name.name)),
        _ => None,
    });
    let names: Vec<(u32, u32)> = names.collect();
    assert_eq!(names.len(), 1);
    assert_eq!(
        (names[0].0, agent.name(names[0].1)),
        (211, "cudaLaunchKernel_v7000".to_owned())
    );
    let device = found.iter().find_map(|record| match record {
        Record::Device(device) => Some(*device),
        _ => None,
    });
    assert_eq!(agent.name(device.unwrap().name), "Simulated GPU");
}

#[test]
fn nodes_of_graphs_come_where_they_are_wanted_and_cupti_is_new_enough() {
    let rig = Rig::new(1208);
    let (mut program, mut agent) = Agent::started(&rig);
    let nodes = Wanted {
        graphs: GraphLevel::Nodes,
        ..window(Kinds::KERNELS)
    };
    agent.order(nodes);
    assert_eq!(agent.settle(0), Phase::Recording);
    assert_eq!(program.recorded("launch 10 4"), 30);
    agent.end();
    let nodes_found = agent.events().into_iter().filter(
        |record| matches!(record, Record::Kernel(kernel) if kernel.run.graph_node > 0 && kernel.run.graph == 5),
    );
    assert_eq!(nodes_found.count(), 30);
    let old = Rig::new(1200);
    let _program = old.start();
    let mut agent = Agent::of(&old);
    agent.order(nodes);
    assert_eq!(agent.settle(0), Phase::Refused);
    assert!(old.calls().iter().all(|(name, ..)| name != "enable"));
}

#[test]
fn a_window_is_drained_while_it_is_written_by_many_threads() {
    let rig = Rig::new(1304);
    let (mut program, mut agent) = Agent::started(&rig);
    agent.begin(Kinds::KERNELS.with(Kinds::RUNTIME));
    // Several times as much as the file holds.
    program.tell("threads 8 30000");
    let (mut found, begin) = (0, Instant::now());
    while found < 8 * 30_000 && begin.elapsed() < Duration::from_secs(10) {
        found += agent.drain().len();
    }
    assert_eq!(program.line(), "recorded 480000");
    agent.end();
    found += agent.drain().len();
    let losses = agent.losses(0);
    // The name of the one function of the runtime comes on top.
    assert_eq!(
        u64::try_from(found).unwrap() + losses.overwritten,
        480_001,
        "{losses:?}"
    );
    assert!(found > 100_000, "{found}");
    assert_eq!(lost(&losses.process), 0);
}

#[test]
fn a_window_begins_at_its_time_and_ends_at_its_deadline_without_an_agent() {
    let (_rig, mut program, mut agent) = Agent::anew();
    let now = now_ns();
    agent.order(Wanted {
        start_at_ns: now + 200_000_000,
        deadline_ns: now + 600_000_000,
        ..window(Kinds::KERNELS)
    });
    agent.wait(0, |process| process.phase == Phase::Waiting);
    assert_eq!(program.recorded("launch 10"), 0);
    agent.wait(0, |process| process.phase == Phase::Recording);
    assert!(now_ns() >= now + 200_000_000);
    assert_eq!(program.recorded("launch 10"), 10);
    agent.wait(0, |process| {
        process.phase == Phase::Idle && process.count(Count::Windows) == 1
    });
    assert!(now_ns() >= now + 600_000_000);
    assert_eq!(program.recorded("launch 10"), 0);
    assert_eq!(agent.events().len(), 10);
}

#[test]
fn a_program_that_begins_within_a_window_takes_part_in_it() {
    let rig = Rig::new(1305);
    let first = rig.start();
    let mut agent = Agent::of(&rig);
    agent.begin(Kinds::KERNELS);
    let mut second = rig.start();
    assert_eq!(agent.settle(1), Phase::Recording);
    assert_eq!(second.recorded("launch 10"), 10);
    agent.end();
    assert_eq!(agent.settle(1), Phase::Idle);
    let found = agent.drain();
    assert!(found.iter().all(|(origin, _)| origin.pid == second.child.id()));
    assert_eq!(found.len(), 10);
    assert!(first.end().success());
}

#[test]
fn without_a_wake_an_order_is_found_within_a_second() {
    let rig = Rig::new(1305);
    let _program = rig.start();
    let mut agent = Agent::of(&rig);
    let begin = Instant::now();
    agent.begin(Kinds::KERNELS);
    assert!(begin.elapsed() < Duration::from_secs(1));
    // As an agent that only writes: the generation changes, and nobody is woken.
    let generation = agent.process(0).generation + 1;
    let bytes = Wanted {
        generation,
        ..window(Kinds::COPIES)
    }
    .to_bytes();
    let file = OpenOptions::new().write(true).open(rig.trace()).unwrap();
    let at = u64::try_from(WANTED_AT).unwrap();
    file.write_all_at(&bytes[MODE_AT..], at + u64::try_from(MODE_AT).unwrap())
        .unwrap();
    file.write_all_at(&bytes[..MODE_AT], at).unwrap();
    let process = agent.wait(0, |process| {
        process.generation == generation && process.phase == Phase::Recording
    });
    assert_eq!(process.kinds, Kinds::COPIES);
}
