//! One library, and the records of every release.

use flopwatch_tracer_file::process::Phase;
use flopwatch_tracer_file::record::Record;
use flopwatch_tracer_file::wanted::Kinds;

use super::agent::{Agent, lost, window};
use super::rig::{RELEASES, Rig};

#[test]
fn the_records_of_every_release_but_13_2_are_read() {
    for release in RELEASES {
        let rig = Rig::new(release);
        let (mut program, mut agent) = Agent::started(&rig);
        agent.order(window(Kinds::ALL));
        let phase = agent.settle(0);
        if release == 1302 {
            assert_eq!(phase, Phase::Refused);
            continue;
        }
        assert_eq!(phase, Phase::Recording, "{release}: {:?}", agent.process(0));
        let recorded: u64 = (0..6).map(|kind| program.recorded(&format!("launch 500 {kind}"))).sum();
        agent.end();
        let found = agent.events();
        assert_eq!(u64::try_from(found.len()).unwrap(), recorded, "{release}");
        let kernels = found.iter().filter_map(|record| match record {
            Record::Kernel(kernel) => Some(kernel),
            _ => None,
        });
        let is_whole = |kernel: &&flopwatch_tracer_file::record::Kernel| {
            kernel.shape.grid_x == 108 && kernel.run.end_ns - kernel.run.start_ns == 5000 && kernel.run.name > 0
        };
        assert_eq!(kernels.filter(is_whole).count(), 500, "{release}");
        assert_eq!(lost(&agent.process(0)), 0, "{release}");
        assert!(program.end().success(), "{release}");
    }
}
