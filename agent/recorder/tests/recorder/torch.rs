//! PyTorch's own copy of NVTX, which Python reaches through `torch.cuda.nvtx`.

use std::process::Command;

use super::rig::{Rig, lost, ranges};

const SCRIPT: &str = "
import torch
nvtx = torch.cuda.nvtx
for step in range(50):
    nvtx.range_push('step')
    nvtx.range_pop()
with nvtx.range('block {}', 1):
    pass
nvtx.range_end(nvtx.range_start('loose'))
nvtx.mark('mark')
";

#[test]
fn ranges_of_pytorch_are_recorded() {
    let Some(python) = std::env::var_os("FLOPWATCH_TORCH") else {
        println!("skipped: no PyTorch (set FLOPWATCH_TORCH, which `cargo xtask setup` makes)");
        return;
    };
    let Some(rig) = Rig::any() else { return };
    let mut command = Command::new(python);
    let output = rig.recorded(command.args(["-c", SCRIPT])).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let capture = rig.capture();
    let events = ranges(&capture);
    let count = |name: &str| (0..events.len()).filter(|at| events.name_of(*at) == name).count();
    assert_eq!([count("step"), count("block 1"), count("loose")], [50, 1, 1]);
    assert_eq!((events.len(), lost(&capture, "NVTX marks")), (52, 1));
}
