//! The results of the tracer: JSON for programs, Markdown for `docs/gpu-results.md`.

use std::fmt::Write as _;

use anyhow::Result;
use flopwatch_tracer::proven::{self, Cuda};
use serde::Serialize;

use super::item::ItemResult;
use crate::findings::Findings;
use crate::machine::MachineDescription;

/// Everything that was found.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct TracerResults {
    /// Version of this file's layout.
    pub(crate) version: u32,
    pub(crate) machine: MachineDescription,
    /// What the driver says its version is; none where no program begins CUDA.
    pub(crate) driver: Option<u32>,
    /// Why no program begins CUDA.
    pub(crate) no_cuda: Option<String>,
    /// Whether stand-ins were in the place of NVIDIA's libraries.
    pub(crate) is_rehearsal: bool,
    pub(crate) items: Vec<ItemResult>,
}

impl Findings for TracerResults {
    fn passed(&self) -> bool {
        self.items.iter().all(ItemResult::passed)
    }

    fn verdict(&self) -> String {
        if !self.passed() {
            return "THE TRACER DOES NOT HOLD HERE".to_owned();
        }
        match &self.no_cuda {
            Some(reason) => format!("NOTHING OF A GPU WAS RECORDED: {reason}"),
            None if self.is_rehearsal => "a rehearsal with stand-ins: it says nothing of a GPU".to_owned(),
            None => "the tracer holds with this driver, as far as it was tried".to_owned(),
        }
    }

    fn markdown(&self) -> Result<String> {
        let mut text = String::new();
        let gpu = self.machine.gpu.as_ref().map_or("No GPU", |gpu| gpu.name.as_str());
        writeln!(text, "{gpu}, {} cores. {}.", self.machine.cores, self.verdict())?;
        if let Some(driver) = self.driver {
            let known = proven::check(driver).map_or_else(|reason| reason.to_string(), |()| "proven before".to_owned());
            writeln!(text, "Driver of CUDA {}: {known}.", Cuda::of_driver(driver))?;
        }
        writeln!(text, "\n| item | result | s | found |\n|---|---|---|---|")?;
        for item in &self.items {
            let figures = item.found.figures.iter().map(|(name, value)| format!("{name} {value}"));
            let found: Vec<String> = figures.chain(item.found.said.iter().cloned()).collect();
            let (seconds, tenth) = (item.milliseconds / 1000, item.milliseconds / 100 % 10);
            writeln!(
                text,
                "| {} | {} | {seconds}.{tenth} | {} |",
                item.name,
                cell(&item.outcome()),
                cell(&found.join(", "))
            )?;
        }
        Ok(text)
    }
}

/// Text that stays within its cell.
fn cell(text: &str) -> String {
    text.replace('\n', " ").replace('|', "/")
}

#[cfg(test)]
mod tests {
    use super::super::item::Found;
    use super::*;

    fn results(failures: &[&str]) -> TracerResults {
        let found = Found {
            figures: [("begin p95 us".to_owned(), 90)].into(),
            said: vec!["refused: Held, by Pytorch".to_owned()],
            failures: failures.iter().map(|failure| (*failure).to_owned()).collect(),
        };
        TracerResults {
            version: 1,
            machine: MachineDescription::default(),
            driver: Some(13_000),
            no_cuda: None,
            is_rehearsal: false,
            items: vec![ItemResult {
                name: "200 windows".to_owned(),
                not_run: None,
                found,
                milliseconds: 1_234,
            }],
        }
    }

    #[test]
    fn what_was_found_stands_in_the_table_with_the_driver() {
        let holds = results(&[]);
        assert!(holds.passed());
        let text = holds.markdown().unwrap();
        let row = "| 200 windows | holds | 1.2 | begin p95 us 90, refused: Held, by Pytorch |";
        assert!(text.contains(row) && text.contains("Driver of CUDA 13.0"), "{text}");
    }

    #[test]
    fn a_failure_is_the_verdict_and_a_rehearsal_claims_nothing() {
        let fails = results(&["kernels: 1|2"]);
        assert!(!fails.passed() && fails.verdict().contains("DOES NOT HOLD"));
        assert!(fails.markdown().unwrap().contains("FAILED: kernels: 1/2"));
        let rehearsal = TracerResults {
            is_rehearsal: true,
            ..results(&[])
        };
        assert!(rehearsal.verdict().contains("nothing of a GPU"));
    }
}
