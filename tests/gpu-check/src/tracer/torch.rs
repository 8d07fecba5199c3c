//! PyTorch with its own profiler: before, during and after windows of the tracer, with the libcupti
//! that PyTorch has.

use anyhow::{Context as _, Result, bail};
use flopwatch_tracer_file::process::{Holder, Phase, Process, Reason};
use flopwatch_tracer_file::wanted::{GraphLevel, Kinds};

use super::agent::{Agent, refusal};
use super::item::{Ended, Found};
use super::place::{Place, Setup};
use super::program::{Begun, Program};
use super::tally::Tally;
use super::until::{Until, microseconds};

const FILE: &str = "torch_profiler_program.py";
const STEPS: &str = "steps 50";
const PROFILE: &str = "profile 50";

/// PyTorch's profiler and windows in turns.
pub(super) fn in_turns(setup: &Setup, until: Until, found: &mut Found) -> Result<Ended> {
    let folder = tempfile::tempdir()?;
    let mut plain = Program::start(setup.python_command(FILE), folder.path())?;
    match plain.begin(until)? {
        Begun::Ready(_) => {}
        Begun::Unavailable(reason) => return Ok(Ended::NotRun(reason)),
    }
    let expected = profiled(&mut plain, PROFILE, until)?;
    found.figure("kernels by PyTorch's profiler, without the tracer", expected);
    drop(plain);
    if expected == 0 {
        let reason = "PyTorch's profiler records nothing here, without the tracer";
        return Ok(Ended::NotRun(reason.to_owned()));
    }

    let place = Place::new(setup.newest()?)?;
    let begun = place.try_begin(setup.python_command(FILE), until)?;
    let (mut program, mut agent) = match begun {
        Ok(begun) => begun,
        Err(reason) => return Ok(Ended::NotRun(reason)),
    };
    first_window(&mut program, &mut agent, until, found)?;
    let before = profiled(&mut program, PROFILE, until)?;
    as_before("behind a window", before, expected, found);

    // PyTorch records: the tracer is refused, and says by whom.
    program.ask("begin", "begun", until)?;
    program.ask(STEPS, "stepped", until)?;
    let (process, _) = agent.try_begin(Kinds::KERNELS, GraphLevel::Whole, until)?;
    let is_refused =
        process.phase == Phase::Refused && (process.reason == Reason::ExcludedVersion || is_held(&process));
    found.must(is_refused, || {
        format!("beside PyTorch's profiler: {:?}, {}", process.phase, refusal(&process))
    });
    found.say(format!("beside PyTorch's profiler: {}", refusal(&process)));
    let during = profiled(&mut program, "finish", until)?;
    as_before("beside a window that is refused", during, expected, found);
    agent.end(until)?;

    second_window(&mut program, &mut agent, until, found)?;
    let after = profiled(&mut program, PROFILE, until)?;
    as_before("in the end", after, expected, found);
    let status = program.end(until)?;
    found.must(status.success(), || format!("PyTorch ended with {status}"));
    Ok(Ended::Done)
}

fn profiled(program: &mut Program, line: &str, until: Until) -> Result<u64> {
    let answer = program.ask(line, "profiled", until)?;
    answer.first().copied().with_context(|| format!("{line}: no count"))
}

/// Notes a profile that lacks what PyTorch's profiler finds without the tracer. The first one of a
/// program may hold a few kernels more.
fn as_before(when: &str, kernels: u64, expected: u64, found: &mut Found) {
    found.figure(&format!("kernels by PyTorch's profiler {when}"), kernels);
    found.must(kernels * 10 >= expected * 9, || {
        format!("PyTorch's profiler {when}: {kernels} kernels of {expected}")
    });
}

fn is_held(process: &Process) -> bool {
    process.reason == Reason::Held && process.holder == Holder::Pytorch
}

/// A window before PyTorch's profiler was ever used.
fn first_window(program: &mut Program, agent: &mut Agent, until: Until, found: &mut Found) -> Result<()> {
    let (process, took) = agent.try_begin(Kinds::KERNELS, GraphLevel::Whole, until)?;
    found.figure("API version of PyTorch's CUPTI", u64::from(process.cupti_version));
    match process.phase {
        Phase::Recording => {
            found.figure("first begin us", microseconds(took));
            recorded(program, agent, "first window", until, found)
        }
        // 13.2 is never called.
        _ if process.reason == Reason::ExcludedVersion => {
            found.say("PyTorch's CUPTI is of a version that is not called: no window");
            Ok(())
        }
        _ => bail!("the first window: {}", refusal(&process)),
    }
}

/// A window after PyTorch's profiler was used: PyTorch may hold the subscription for good.
fn second_window(program: &mut Program, agent: &mut Agent, until: Until, found: &mut Found) -> Result<()> {
    let (process, _) = agent.try_begin(Kinds::KERNELS, GraphLevel::Whole, until)?;
    if process.phase == Phase::Recording {
        return recorded(program, agent, "window after PyTorch's profiler", until, found);
    }
    found.say(format!("after PyTorch's profiler: {}", refusal(&process)));
    let is_known = process.reason == Reason::ExcludedVersion || is_held(&process);
    found.must(is_known, || format!("after PyTorch's profiler: {}", refusal(&process)));
    Ok(())
}

fn recorded(program: &mut Program, agent: &mut Agent, name: &str, until: Until, found: &mut Found) -> Result<()> {
    let mut tally = Tally::default();
    program.ask(STEPS, "stepped", until)?;
    agent.end(until)?;
    agent.drain(&mut tally)?;
    found.figure(&format!("kernels in the {name}"), tally.kernels);
    found.must(tally.kernels > 0, || format!("the {name} holds no kernel"));
    Ok(())
}
