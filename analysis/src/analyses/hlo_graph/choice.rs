//! Which program the graph is of.

use flopwatch_measures::hlo_program::{HloProgram, HloPrograms};
use flopwatch_model::{Capture, Program, Timeline};
use flopwatch_report::NotCaptured;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::HloGraphParams;

/// A stage of a program's compilation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HloStage {
    /// After optimisation where the captures hold that, else before it.
    #[default]
    Auto,
    /// Before optimisation.
    Before,
    /// After optimisation, as it runs.
    After,
}

/// The program, and the same at the other stage.
pub(super) struct ProgramChoice<'a> {
    pub(super) shown: &'a HloProgram,
    pub(super) before: Option<&'a HloProgram>,
    pub(super) after: Option<&'a HloProgram>,
}

/// The programs of all captures.
pub(super) fn programs(timelines: &[&Timeline]) -> HloPrograms {
    let all = timelines.iter().flat_map(|timeline| &timeline.capture.programs);
    let programs: Vec<Program> = all.cloned().collect();
    let together = Timeline {
        capture: Capture {
            programs,
            ..Capture::default()
        },
        ..Timeline::default()
    };
    HloPrograms::of(&together)
}

fn size(program: &HloProgram) -> u64 {
    u64::try_from(program.module.instructions().count()).unwrap_or(u64::MAX)
}

impl<'a> ProgramChoice<'a> {
    pub(super) fn of(programs: &'a HloPrograms, params: &HloGraphParams) -> Option<Self> {
        let mut best: Option<&HloProgram> = None;
        for program in &programs.list {
            let is_meant = program.name.contains(&params.program)
                && (params.program_id.is_empty() || program.id.to_string() == params.program_id)
                && match params.stage {
                    HloStage::Auto => true,
                    HloStage::Before => !program.module.is_scheduled,
                    HloStage::After => program.module.is_scheduled,
                };
            // What runs goes before what was written, and the larger before the smaller.
            let rank = |program: &HloProgram| (program.module.is_scheduled, size(program));
            if is_meant && best.is_none_or(|best| rank(program) > rank(best)) {
                best = Some(program);
            }
        }
        let shown = best?;
        let other = |is_scheduled: bool| {
            if shown.module.is_scheduled == is_scheduled {
                return Some(shown);
            }
            let named = programs
                .list
                .iter()
                .filter(|one| one.name == shown.name && one.module.is_scheduled == is_scheduled);
            named.reduce(|max, one| if size(one) > size(max) { one } else { max })
        };
        Some(Self {
            shown,
            before: other(false),
            after: other(true),
        })
    }
}

/// Why there is no program.
pub(super) fn missing(programs: &HloPrograms) -> NotCaptured {
    if let Some(missing) = programs.not_captured.first().filter(|_| programs.list.is_empty()) {
        return missing.clone();
    }
    let reason = "the captures hold no program of that name, number and stage; `programs` lists those that they hold";
    NotCaptured::new("the graph", reason)
}
