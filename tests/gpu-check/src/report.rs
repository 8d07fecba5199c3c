//! The results: JSON for programs, Markdown for `docs/gpu-results.md`.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;

use crate::child::ChildResult;
use crate::counters::CountersResult;
use crate::equality::seconds;
use crate::findings::Findings;
use crate::machine::MachineDescription;
use crate::nvml::{NvmlResult, SeriesResult};
use crate::pipeline::CupyResult;

/// Everything that was found.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Results {
    /// Version of this file's layout.
    pub(crate) version: u32,
    pub(crate) machine: MachineDescription,
    pub(crate) sizes: Vec<SizeResult>,
    pub(crate) files: Option<FilesResult>,
    pub(crate) auto: Option<AutoResult>,
    pub(crate) child: Option<ChildResult>,
    pub(crate) nvml: Option<NvmlResult>,
    pub(crate) counters: Option<CountersResult>,
}

/// Both engines at one size.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct SizeResult {
    pub(crate) events: u64,
    /// First run on the GPU, which loads the kernels.
    pub(crate) gpu_first_seconds: Option<f64>,
    pub(crate) shapes: Vec<ShapeResult>,
    pub(crate) cupy: Option<CupyResult>,
}

/// One kind of input.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ShapeResult {
    pub(crate) shape: String,
    pub(crate) cpu_seconds: f64,
    /// With every copy to and from the GPU, each round.
    pub(crate) gpu_seconds: Vec<f64>,
    /// Whether the outcomes are equal; absent where no GPU took part.
    pub(crate) equal: Option<bool>,
    /// What differs first.
    pub(crate) difference: Option<String>,
}

/// The timeline files of both.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct FilesResult {
    pub(crate) events: u64,
    pub(crate) bytes: u64,
    /// Absent where no GPU took part.
    pub(crate) equal: Option<bool>,
}

/// What `Auto` picked.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct AutoResult {
    pub(crate) events: u64,
    pub(crate) device: String,
    pub(crate) reason: String,
}

impl SizeResult {
    pub(crate) fn add(&mut self, shape: &str, cpu: Duration, gpu_seconds: Vec<f64>, compared: Compared) {
        let (equal, difference) = match compared {
            Compared::Not => (None, None),
            Compared::Equal => (Some(true), None),
            Compared::Different(what) => (Some(false), Some(what)),
        };
        self.shapes.push(ShapeResult {
            shape: shape.to_owned(),
            cpu_seconds: seconds(cpu),
            gpu_seconds,
            equal,
            difference,
        });
    }
}

/// What came of comparing both outcomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Compared {
    /// No GPU took part.
    Not,
    Equal,
    /// What differs first.
    Different(String),
}

impl Results {
    pub(crate) fn new(machine: MachineDescription) -> Self {
        Self {
            version: 1,
            machine,
            ..Self::default()
        }
    }

    fn equal(&self) -> bool {
        let shapes = self.sizes.iter().flat_map(|size| &size.shapes);
        let compared = shapes
            .map(|shape| shape.equal)
            .chain(self.files.iter().map(|files| files.equal));
        compared.flatten().all(|equal| equal)
    }

    /// What is not in the table.
    fn rest(&self, text: &mut String) -> Result<()> {
        if let Some(files) = &self.files {
            let equal = files
                .equal
                .map_or("not compared", |equal| if equal { "equal" } else { "DIFFERENT" });
            writeln!(
                text,
                "\nTimeline files of {} events ({} bytes): {equal}.",
                files.events, files.bytes
            )?;
        }
        if let Some(auto) = &self.auto {
            writeln!(
                text,
                "\n`Auto` for {} events: {} ({}).",
                auto.events, auto.device, auto.reason
            )?;
        }
        if let Some(child) = &self.child {
            let ended = child.failed.as_deref().unwrap_or("ran on the GPU");
            writeln!(
                text,
                "\nThe transform's child, {} events within {} MiB of memory, {:.2} s: {ended}.",
                child.events,
                child.memory_bytes >> 20,
                child.seconds
            )?;
        }
        if let Some(nvml) = &self.nvml {
            if let Some(reason) = &nvml.unavailable {
                writeln!(text, "\nNVML: {reason}.")?;
            } else {
                writeln!(
                    text,
                    "\nNVML through the agent's sampler, 2 s at 100 ms, {} missed:\n",
                    nvml.missed
                )?;
                for (name, series) in &nvml.series {
                    let SeriesResult {
                        points,
                        least,
                        most,
                        unit,
                        ..
                    } = series;
                    writeln!(text, "- {name}: {points} points, {least} to {most} {unit}")?;
                }
            }
        }
        if let Some(counters) = &self.counters {
            let found = counters.ncu.as_deref().unwrap_or("none");
            match &counters.unavailable {
                Some(reason) => writeln!(text, "\nNsight Compute ({found}): {reason}")?,
                None => writeln!(
                    text,
                    "\nNsight Compute ({found}): {} metrics of {} kernels, read back from its report.",
                    counters.kernels.values().sum::<u64>(),
                    counters.kernels.len()
                )?,
            }
        }
        Ok(())
    }
}

impl Findings for Results {
    /// Whether nothing that was compared differs, and the child ran within its bounds.
    fn passed(&self) -> bool {
        self.equal() && self.child.as_ref().is_none_or(|child| child.failed.is_none())
    }

    fn verdict(&self) -> String {
        match &self.machine.no_gpu {
            Some(reason) => format!("NO GPU PART RAN: {reason}. Only the processor's part was checked."),
            None if !self.equal() => "THE GPU GIVES OTHER RESULTS THAN THE PROCESSOR".to_owned(),
            None if !self.passed() => "THE TRANSFORM'S CHILD DOES NOT RUN ON THE GPU".to_owned(),
            None => "the GPU gives what the processor gives".to_owned(),
        }
    }

    fn markdown(&self) -> Result<String> {
        let mut text = String::new();
        let machine = &self.machine;
        match &machine.gpu {
            Some(gpu) => writeln!(
                text,
                "{} (compute capability {}, {} MiB), driver for CUDA {}, {} cores; {}.",
                gpu.name,
                gpu.compute_capability,
                gpu.memory_bytes >> 20,
                gpu.driver_cuda,
                machine.cores,
                gpu.neighbours
            )?,
            None => writeln!(text, "No GPU ({} cores). {}", machine.cores, self.verdict())?,
        }
        writeln!(text, "Kernels: {}.\n", machine.kernels)?;
        writeln!(
            text,
            "| events | input | processor | GPU with copies | ratio | equal | CuPy | ratio |"
        )?;
        writeln!(text, "|---|---|---|---|---|---|---|---|")?;
        for size in &self.sizes {
            for (at, shape) in size.shapes.iter().enumerate() {
                let gpu = median(&shape.gpu_seconds);
                let cupy = size.cupy.as_ref().filter(|_| at == 0);
                let cupy_seconds = cupy.and_then(|cupy| median(&cupy.seconds));
                let ratio = |other: Option<f64>| match (other, gpu) {
                    (Some(other), Some(gpu)) if gpu > 0.0 => format!("{:.1}", other / gpu),
                    _ => "-".to_owned(),
                };
                let equal = match (shape.equal, &shape.difference) {
                    (None, _) => "not compared".to_owned(),
                    (Some(true), _) => "yes".to_owned(),
                    (Some(false), difference) => format!("NO: {}", difference.as_deref().unwrap_or_default()),
                };
                let cupy_text = match cupy.and_then(|cupy| cupy.unavailable.as_deref()) {
                    Some(reason) => reason.to_owned(),
                    None => shown(cupy_seconds),
                };
                writeln!(
                    text,
                    "| {} | {} | {} | {} | {} | {equal} | {cupy_text} | {} |",
                    size.events,
                    shape.shape,
                    shown(Some(shape.cpu_seconds)),
                    shown(gpu),
                    ratio(Some(shape.cpu_seconds)),
                    ratio(cupy_seconds),
                )?;
            }
        }
        self.rest(&mut text)?;
        Ok(text)
    }
}

/// The median; the mean of both in the middle of an even number.
fn median(seconds: &[f64]) -> Option<f64> {
    let mut sorted = seconds.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    let (lower, upper) = (sorted.get(last / 2)?, sorted.get(last.div_ceil(2))?);
    Some(lower.midpoint(*upper))
}

fn shown(seconds: Option<f64>) -> String {
    seconds.map_or("-".to_owned(), |seconds| format!("{:.1} ms", seconds * 1e3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(compared: Compared) -> Results {
        let mut results = Results::new(MachineDescription::default());
        let mut size = SizeResult {
            events: 1000,
            ..SizeResult::default()
        };
        size.add(
            "kernels",
            Duration::from_millis(10),
            vec![0.004, 0.002, 0.003],
            compared,
        );
        results.sizes.push(size);
        results
    }

    #[test]
    fn a_difference_fails_the_check_and_is_named() {
        let results = size(Compared::Different("lanes".to_owned()));
        assert!(!results.passed());
        assert!(results.markdown().unwrap().contains("NO: lanes"));
    }

    #[test]
    fn what_was_not_compared_is_not_called_equal() {
        let mut results = size(Compared::Not);
        results.machine.no_gpu = Some("no NVIDIA driver".to_owned());
        assert!(results.verdict().contains("NO GPU PART RAN: no NVIDIA driver"));
        let text = results.markdown().unwrap();
        assert!(text.contains("not compared") && !text.contains("| yes |"), "{text}");
    }

    #[test]
    fn a_child_that_fails_fails_the_check() {
        let mut results = size(Compared::Equal);
        assert!(results.passed());
        results.child = Some(ChildResult {
            failed: Some("out of memory".to_owned()),
            ..ChildResult::default()
        });
        assert!(!results.passed() && results.verdict().contains("CHILD"));
        assert!(results.markdown().unwrap().contains(": out of memory."));
    }

    #[test]
    fn the_ratio_is_of_the_median() {
        let text = size(Compared::Equal).markdown().unwrap();
        assert!(
            text.contains("| 1000 | kernels | 10.0 ms | 3.0 ms | 3.3 | yes |"),
            "{text}"
        );
    }
}
