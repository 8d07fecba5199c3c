//! CUPTI without the tracer: whether a release works with this driver at all, which the tracer's
//! table of rules follows.

use anyhow::{Result, bail};

use super::item::{Ended, Found};
use super::place::{Release, Setup};
use super::program::Program;
use super::until::Until;

const LAUNCHES: u64 = 1000;
/// The calls in the order of the program's answer, behind the three counts.
const CALLS: [&str; 7] = [
    "cuptiGetVersion",
    "cuptiSubscribe",
    "cuptiActivityRegisterCallbacks",
    "cuptiActivityEnable",
    "cuptiActivityFlushAll",
    "cuptiActivityDisable",
    "cuptiUnsubscribe",
];

/// Has a program use a release by itself. Whatever it does is a result: it fails where the release
/// is the driver's own and records less than everything.
pub(super) fn of_release(setup: &Setup, release: &Release, until: Until, found: &mut Found) -> Result<Ended> {
    let folder = tempfile::tempdir()?;
    let mut program = Program::start(setup.bare_command(), folder.path())?;
    program.must_begin(until)?;
    let line = format!("bare {} {LAUNCHES}", release.path.display());
    let answer = match program.ask(&line, "bare", until) {
        Ok(answer) => answer,
        Err(error) if release.major() == setup.version / 1000 => return Err(error),
        Err(error) => {
            found.say(format!("{error:#}"));
            return Ok(Ended::Done);
        }
    };
    let [version, kernels, timed, codes @ ..] = &answer[..] else {
        bail!("the program answered {answer:?}");
    };
    found.figure("API version", *version);
    found.figure("kernels", *kernels);
    found.figure("kernels with times", *timed);
    for (call, code) in CALLS.iter().zip(codes).filter(|(_, code)| **code != 0) {
        found.say(format!("{call} answers {code}"));
    }
    if release.major() == setup.version / 1000 {
        found.must_equal("kernels with times", *timed, LAUNCHES);
    }
    Ok(Ended::Done)
}
