//! Writes what the check of the graft on a GPU found: `results.json` for programs, and `results.md`
//! for `docs/gpu-results.md`.

use std::fmt::Write as _;

use anyhow::Result;
use serde::Serialize;

use super::ProgramResult;
use crate::findings::Findings;
use crate::machine::MachineDescription;

/// The results of all programs of the check, and the machine that they ran on.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct GraftResults {
    /// Version of the layout of `results.json`.
    pub(crate) version: u32,
    pub(crate) machine: MachineDescription,
    pub(crate) programs: Vec<ProgramResult>,
}

impl GraftResults {
    /// The results before any program has run.
    pub(crate) const fn new(machine: MachineDescription) -> Self {
        Self {
            version: 1,
            machine,
            programs: Vec::new(),
        }
    }
}

impl Findings for GraftResults {
    fn passed(&self) -> bool {
        self.programs.iter().all(ProgramResult::passed)
    }

    fn verdict(&self) -> String {
        if !self.passed() {
            return "THE GRAFT DOES NOT HOLD HERE".to_owned();
        }
        match &self.machine.no_gpu {
            Some(reason) => {
                format!("NO CUDA PROGRAM RAN: {reason}. Only the graft of a program without CUDA was checked.")
            }
            None => "every program that ran was captured twice, and outlived its session".to_owned(),
        }
    }

    fn markdown(&self) -> Result<String> {
        let mut text = String::new();
        match &self.machine.gpu {
            Some(gpu) => writeln!(
                text,
                "{} (compute capability {}), driver for CUDA {}, {} cores. {}.",
                gpu.name,
                gpu.compute_capability,
                gpu.driver_cuda,
                self.machine.cores,
                self.verdict()
            )?,
            None => writeln!(text, "No GPU ({} cores). {}", self.machine.cores, self.verdict())?,
        }
        for program in &self.programs {
            writeln!(text, "\n### {}\n", program.program)?;
            if let Some(reason) = &program.not_run {
                writeln!(text, "Not run: {reason}.")?;
            }
            if let Some(reason) = &program.failed {
                writeln!(text, "FAILED: {reason}")?;
            }
            let Some(grafted) = &program.grafted else { continue };
            let [plain_end, grafted_end] = &grafted.ends;
            writeln!(
                text,
                "First report after {} ms plainly, {} ms grafted, of which the launcher held it back for {} ms.",
                integer_text(grafted.plain_first_ms),
                integer_text(grafted.grafted_first_ms),
                grafted.waited_ms
            )?;
            writeln!(
                text,
                "Steps per second: {} plainly, {} with an idle session, {} after the session was killed. \
                 Ended on SIGTERM with {plain_end} plainly, {grafted_end} grafted.\n",
                decimal_text(grafted.plain_per_second),
                decimal_text(grafted.idle_per_second),
                decimal_text(grafted.after_kill_per_second)
            )?;
            writeln!(
                text,
                "| capture | kernels | names | ranges | events | raw bytes | steps/s | start | stop | import | transform |"
            )?;
            writeln!(text, "|---|---|---|---|---|---|---|---|---|---|---|")?;
            for (number, window) in (1..).zip(&grafted.windows) {
                writeln!(
                    text,
                    "| {number} | {} | {} | {} | {} | {} | {} | {:.2} s | {:.2} s | {:.2} s | {:.2} s |",
                    window.kernels,
                    window.kernel_names,
                    window.ranges,
                    window.events,
                    window.raw_bytes,
                    decimal_text(window.steps_per_second),
                    window.start_seconds,
                    window.stop_seconds,
                    window.import_seconds,
                    window.transform_seconds
                )?;
            }
        }
        Ok(text)
    }
}

/// An integer as text; `-` where it was not measured.
fn integer_text(value: Option<u64>) -> String {
    value.map_or("-".to_owned(), |value| value.to_string())
}

/// A number with one decimal as text; `-` where it was not measured.
fn decimal_text(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:.1}"))
}

#[cfg(test)]
mod tests {
    use super::super::{GraftedResult, Holds, WindowResult};
    use super::*;

    fn program(kernels: [u64; 2]) -> ProgramResult {
        let window = |kernels| WindowResult {
            kernels,
            events: 10,
            ..WindowResult::default()
        };
        let end = || "signal: 15 (SIGTERM)".to_owned();
        ProgramResult {
            program: "a small CUDA program".to_owned(),
            holds: Holds::Kernels,
            not_run: None,
            failed: None,
            grafted: Some(GraftedResult {
                windows: kernels.map(window).to_vec(),
                after_kill_per_second: Some(5.0),
                ends: [end(), end()],
                ..GraftedResult::default()
            }),
        }
    }

    fn results(program: ProgramResult) -> GraftResults {
        GraftResults {
            programs: vec![program],
            ..GraftResults::new(MachineDescription::default())
        }
    }

    #[test]
    fn a_capture_without_kernels_fails_the_check() {
        assert!(results(program([3, 4])).passed());
        let empty = results(program([3, 0]));
        assert!(!empty.passed() && empty.verdict().contains("DOES NOT HOLD"));
    }

    #[test]
    fn a_program_that_did_not_outlive_its_session_or_ends_otherwise_fails_the_check() {
        let mut stopped = program([3, 4]);
        let mut ended_otherwise = stopped.clone();
        if let Some(grafted) = &mut stopped.grafted {
            grafted.after_kill_per_second = None;
        }
        if let Some(grafted) = &mut ended_otherwise.grafted {
            "exit status: 1".clone_into(&mut grafted.ends[1]);
        }
        assert!(!stopped.passed() && !ended_otherwise.passed());
    }

    #[test]
    fn what_did_not_run_is_named_and_not_claimed() {
        let mut skipped = program([0, 0]);
        skipped.grafted = None;
        skipped.not_run = Some("no NVIDIA driver".to_owned());
        let mut results = results(skipped);
        results.machine.no_gpu = Some("no NVIDIA driver".to_owned());
        assert!(results.passed() && results.verdict().contains("NO CUDA PROGRAM RAN"));
        assert!(results.markdown().unwrap().contains("Not run: no NVIDIA driver."));
    }
}
