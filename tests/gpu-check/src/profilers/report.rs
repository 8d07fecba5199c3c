//! The results of the profilers: JSON for programs, Markdown for `docs/gpu-results.md`.

use std::fmt::Write as _;

use anyhow::Result;
use serde::Serialize;

use super::ProfilerResult;
use crate::findings::Findings;
use crate::machine::MachineDescription;

/// Everything that was found.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ProfilersResults {
    /// Version of this file's layout.
    pub(crate) version: u32,
    pub(crate) machine: MachineDescription,
    pub(crate) profilers: Vec<ProfilerResult>,
}

impl ProfilersResults {
    pub(crate) const fn new(machine: MachineDescription) -> Self {
        Self {
            version: 1,
            machine,
            profilers: Vec::new(),
        }
    }
}

impl Findings for ProfilersResults {
    fn passed(&self) -> bool {
        self.profilers.iter().all(ProfilerResult::passed)
    }

    fn verdict(&self) -> String {
        if !self.passed() {
            return "A PROFILER DOES NOT HOLD HERE".to_owned();
        }
        match &self.machine.no_gpu {
            Some(reason) => format!("NOTHING OF A GPU WAS RECORDED: {reason}"),
            None => "every profiler that this machine has found what it must".to_owned(),
        }
    }

    fn markdown(&self) -> Result<String> {
        let mut text = String::new();
        let gpu = self.machine.gpu.as_ref();
        let name = gpu.map_or_else(
            || "No GPU".to_owned(),
            |gpu| format!("{} (driver for CUDA {})", gpu.name, gpu.driver_cuda),
        );
        writeln!(text, "{name}, {} cores. {}.\n", self.machine.cores, self.verdict())?;
        writeln!(text, "| profiler | must hold | result |\n|---|---|---|")?;
        for profiler in &self.profilers {
            let (name, holds, outcome) = (&profiler.profiler, &profiler.holds, profiler.outcome());
            writeln!(text, "| {name} | {holds} | {outcome} |")?;
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::Outcome;
    use super::*;

    fn results(outcome: Result<Outcome>) -> ProfilersResults {
        ProfilersResults {
            profilers: vec![ProfilerResult::new("Kineto", "cuda_kernel", outcome)],
            ..ProfilersResults::new(MachineDescription::default())
        }
    }

    fn found(kernels: u64) -> Outcome {
        let events = BTreeMap::from([("cuda_kernel".to_owned(), kernels), ("cpu_op".to_owned(), 7)]);
        Outcome::Found(events)
    }

    #[test]
    fn a_capture_without_what_it_must_hold_fails_the_check() {
        assert!(results(Ok(found(3))).passed());
        assert!(!results(Ok(found(0))).passed());
        assert!(results(Ok(found(0))).verdict().contains("DOES NOT HOLD"));
    }

    #[test]
    fn what_the_machine_does_not_give_is_named_and_is_no_error() {
        let closed = results(Ok(Outcome::Closed("ERR_NVGPUCTRPERM".to_owned())));
        assert!(closed.passed());
        assert!(
            closed
                .markdown()
                .unwrap()
                .contains("closed on this machine: ERR_NVGPUCTRPERM")
        );
        let broken = results(Err(anyhow::anyhow!("the report is cut")));
        assert!(!broken.passed() && broken.markdown().unwrap().contains("FAILED: the report is cut"));
    }
}
