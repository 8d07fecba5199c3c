//! The profilers that an agent can use.

use std::collections::BTreeSet;
use std::sync::Arc;

use flopwatch_api::capability::Capability;
use flopwatch_api::profiler::ProfilerType;
use flopwatch_api::reason::CaptureReason;
use flopwatch_attach::process::{Mapped, ProcessId, Procfs};
use flopwatch_pipeline::failure::Failure;

use super::cuda::Cuda;
use super::facts::Facts;
use super::findings::Findings;
use super::ncu::Ncu;
use super::{AnyProfiler, all};
use crate::counters::Counters;

/// Profilers, the deepest first.
#[derive(Clone, Debug)]
pub struct Registry(Vec<Arc<AnyProfiler>>);

impl Default for Registry {
    /// Every profiler of this version, without leases of a node's counters.
    fn default() -> Self {
        Self(all(Ncu::default(), Cuda::default()))
    }
}

impl Registry {
    /// Every profiler of this version, on a node whose counters are leased, with its CUDA tracer.
    pub fn of_node(counters: Arc<Counters>, cuda: Cuda) -> Self {
        let ncu = Ncu {
            counters: Some(counters),
        };
        Self(all(ncu, cuda))
    }

    /// These, the deepest first.
    pub fn new(profilers: Vec<Arc<AnyProfiler>>) -> Self {
        Self(profilers)
    }

    /// All, the deepest first.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<AnyProfiler>> {
        self.0.iter()
    }

    /// The one of a type.
    pub fn get(&self, type_: ProfilerType) -> Option<&Arc<AnyProfiler>> {
        self.0.iter().find(|profiler| profiler.type_() == type_)
    }

    /// The one that a capture was attached with. Fails where an agent of another version chose it.
    pub fn of_capture(&self, type_: ProfilerType) -> Result<&Arc<AnyProfiler>, Failure> {
        self.get(type_).ok_or_else(|| {
            let message = format!("this agent cannot go on with a capture of {}", type_.as_str());
            Failure::new(CaptureReason::VersionUnsupported, message)
        })
    }

    /// Variables of a container's first process that any of them decides by.
    pub fn variables(&self) -> BTreeSet<&'static str> {
        let all = self.0.iter().flat_map(|profiler| profiler.variables());
        all.copied().collect()
    }

    /// What each of them alone looks for among a container's processes.
    pub fn inspect(&self, procfs: &Procfs, processes: &[(ProcessId, Mapped)]) -> Findings {
        let mut found = Findings::default();
        for profiler in &self.0 {
            profiler.inspect(procfs, processes, &mut found);
        }
        found
    }

    /// What is open for a container and what is not, in the order of the types.
    pub fn capabilities(&self, facts: &Facts) -> Vec<Capability> {
        let mut all: Vec<_> = self.0.iter().map(|profiler| profiler.capability(facts)).collect();
        all.sort_by_key(|capability| capability.profiler);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profilers::Remains;

    #[test]
    fn every_type_but_auto_is_open_or_closed() {
        let registry = Registry::default();
        let types: Vec<_> = registry
            .capabilities(&Facts::default())
            .into_iter()
            .map(|capability| capability.profiler)
            .collect();
        let expected: Vec<_> = ProfilerType::ALL
            .into_iter()
            .filter(|type_| *type_ != ProfilerType::Auto)
            .collect();
        assert_eq!(types, expected);
        assert!(registry.get(ProfilerType::Auto).is_none());
    }

    #[test]
    fn windows_that_give_no_memory_back_when_they_end_are_not_ended_for_it() {
        use ProfilerType::{Kineto, Ncu, Recorder};
        let registry = Registry::default();
        let kept = registry.iter().filter(|profiler| !profiler.can_be_ended());
        let kept: Vec<_> = kept.map(|profiler| profiler.type_()).collect();
        assert_eq!(kept, [Kineto, Recorder, Ncu]);
    }

    #[test]
    fn what_outlives_its_pod_is_published_by_its_own_profiler() {
        let kept = Remains {
            ring: Some("/kept".into()),
            kernels: None,
            ended_utc_ns: 7,
        };
        for profiler in Registry::default().iter() {
            let state = profiler.attach_to_kept(kept.clone()).unwrap();
            assert_eq!(state.is_some(), profiler.type_().outlives_pod(), "{profiler:?}");
        }
    }

    #[test]
    fn every_closed_profiler_has_a_reason_of_the_closed_set_and_a_remedy() {
        for capability in Registry::default().capabilities(&Facts::default()) {
            assert!(!capability.available);
            assert!(CaptureReason::from_name(&capability.reason).is_some(), "{capability:?}");
            assert!(!capability.remedy.is_empty());
        }
    }
}
