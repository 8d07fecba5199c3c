//! Copies of NVTX that Python programs have: PyTorch's own, that of the package `nvtx` beside JAX,
//! and NVTX 2 in `libnvToolsExt`.

use std::process::Command;

use flopwatch_model::Capture;

use super::rig::{Rig, lost, ranges};

/// Names an interpreter with PyTorch.
const TORCH: &str = "FLOPWATCH_TORCH";
/// Names an interpreter with JAX, `nvtx` and `libnvToolsExt`.
const PYTHON: &str = "FLOPWATCH_PYTHON";

const OF_PYTORCH: &str = "
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

const OF_JAX: &str = "
import jax, jax.numpy as jnp, nvtx

@nvtx.annotate('step', color='blue', domain='training')
def step(x):
    with nvtx.annotate('matmul', payload=7):
        return jax.jit(lambda x: x @ x / 2)(x).block_until_ready()

x = jnp.eye(8)
for _ in range(30):
    x = step(x)
nvtx.end_range(nvtx.start_range('loose'))
nvtx.mark('mark')
";

const OF_NVTX_2: &str = "
import ctypes, importlib.metadata
found = [f for f in importlib.metadata.files('nvidia-nvtx-cu12') if 'libnvToolsExt.so' in f.name]
nvtx = ctypes.CDLL(str(found[0].locate()))
for step in range(40):
    nvtx.nvtxRangePushA(b'step')
    nvtx.nvtxRangePushW(ctypes.c_wchar_p('wide'))
    nvtx.nvtxRangePop()
    nvtx.nvtxRangePop()
nvtx.nvtxRangeStartA.restype = ctypes.c_uint64
nvtx.nvtxRangeEnd(ctypes.c_uint64(nvtx.nvtxRangeStartA(b'loose')))
nvtx.nvtxMarkA(b'mark')
";

/// What the program recorded; none, and it says so, where this machine has no such interpreter.
fn recorded(interpreter: &str, program: &str) -> Option<Capture> {
    let Some(python) = std::env::var_os(interpreter) else {
        println!("skipped: no Python (set {interpreter}, which `cargo xtask setup` makes)");
        return None;
    };
    let rig = Rig::any()?;
    let mut command = Command::new(python);
    let output = rig.recorded(command.args(["-c", program])).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    Some(rig.capture())
}

/// How many ranges of each name a capture has.
fn count<const N: usize>(capture: &Capture, names: [&str; N]) -> [usize; N] {
    let events = ranges(capture);
    names.map(|name| (0..events.len()).filter(|at| events.name_of(*at) == name).count())
}

#[test]
fn ranges_of_pytorch_are_recorded() {
    let Some(capture) = recorded(TORCH, OF_PYTORCH) else {
        return;
    };
    assert_eq!(count(&capture, ["step", "block 1", "loose"]), [50, 1, 1]);
    assert_eq!((ranges(&capture).len(), lost(&capture, "NVTX marks")), (52, 1));
}

#[test]
fn ranges_of_a_jax_program_with_pythons_nvtx_are_recorded() {
    let Some(capture) = recorded(PYTHON, OF_JAX) else {
        return;
    };
    assert_eq!(count(&capture, ["training:step", "matmul", "loose"]), [30, 30, 1]);
    assert_eq!((ranges(&capture).len(), lost(&capture, "NVTX marks")), (61, 1));
}

#[test]
fn ranges_of_nvtx_2_are_recorded_by_its_own_entry_point() {
    let Some(capture) = recorded(PYTHON, OF_NVTX_2) else {
        return;
    };
    assert_eq!(count(&capture, ["step", "wide", "loose"]), [40, 40, 1]);
    assert_eq!((ranges(&capture).len(), lost(&capture, "NVTX marks")), (81, 1));
}
