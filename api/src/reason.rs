//! Condition types and reasons: closed sets.
//!
//! Every reason that can stand in a condition, an Event or a metrics label is a variant here, and
//! its doc says when it occurs and what helps. Nothing else writes reasons, so that dashboards and
//! scripts can rely on the list.

macro_rules! closed_set {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[$doc])* $variant),+ }

        impl $name {
            /// Every member, in the order of its documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word that stands in conditions, Events and labels.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => stringify!($variant)),+ }
            }

            /// The member of that name, if there is one.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|member| member.as_str() == name)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

closed_set! {
    /// Condition types of a ProfilingSession.
    SessionCondition {
        /// The request is understood and may run.
        Accepted,
        /// Target containers were found and captures exist for them.
        TargetsFound,
        /// At least one capture is at work.
        Capturing,
        /// The summary: True when every capture succeeded, Unknown until the last one ended.
        Succeeded,
    }
}

closed_set! {
    /// Condition types of a Capture.
    CaptureCondition {
        /// The node's agent took the capture on.
        Accepted,
        /// The profiler's session in the container answered.
        Attached,
        /// The window was recorded and the raw capture taken out of the container.
        Captured,
        /// The timeline and the tables were made.
        Transformed,
        /// The artifacts are stored and served.
        Published,
        /// Replicas of the artifacts are in the cluster's object store; absent where none are to be.
        Stored,
        /// The summary: True when artifacts with the required events are published, Unknown until the capture ended.
        Succeeded,
        /// The node is gone. Written by the operator alone; the agent stops when it sees it and never clears it.
        Lost,
    }
}

closed_set! {
    /// Reasons in the conditions of a ProfilingSession.
    SessionReason {
        /// The request is understood.
        Accepted,
        /// Captures exist for the target containers.
        TargetsFound,
        /// No pod matches yet; the session waits until `startDeadlineSeconds`.
        WaitingForTargets,
        /// No pod matched before `startDeadlineSeconds`. Check the name or the labels.
        NoTargets,
        /// The pod has no container of a name in `containerNames`. The message lists those it has.
        NoSuchContainer,
        /// No container asks for a GPU and none was prepared. Name one in `containerNames`.
        NoDefaultContainer,
        /// As many captures as the namespace may have at once are at work; the session waits until `startDeadlineSeconds`.
        /// One that asks for more than that by itself is refused: lower `maxPods`.
        NamespaceLimit,
        /// The API server refuses the pod of `target.podTemplate` or the copy of `target.replicaOf`, or the original cannot be
        /// copied; the message says why.
        PodRefused,
        /// The controller may not create pods in the session's namespace. Its administrator binds the ClusterRole
        /// `flopwatch-pod-templates` there; the message has the command. The session waits until `startDeadlineSeconds`.
        PodsNotAllowed,
        /// The session's own pod would not be prepared, or was not; the message says why. Nothing of it ran, or
        /// it was deleted.
        PodNotPrepared,
        /// The session says that an alert made it (annotation `flopwatch.dev/trigger`), and no
        /// ProfilingSchedule would have asked for it so; the message says why. Leave the annotation
        /// out.
        Refused,
        /// The session of `profiler.ncu.topKernelsOf` is absent, has not ended or saw no kernels; the message says which.
        NoTopKernels,
        /// The session's own pod ended or was deleted before a capture could be made.
        PodEnded,
        /// The cluster's administrator has suspended new captures; the session waits until `startDeadlineSeconds`.
        CapturesSuspended,
        /// Captures have been made but none is at work yet.
        Pending,
        /// At least one capture is at work.
        Capturing,
        /// Every capture has ended.
        Finished,
        /// The session has not ended.
        Progressing,
        /// Every capture succeeded.
        Succeeded,
        /// Some captures succeeded and some failed; the counts and the captures' conditions say which.
        PartiallySucceeded,
        /// No capture succeeded.
        Failed,
        /// The user stopped the session with `stop: Discard`.
        Discarded,
    }
}

closed_set! {
    /// Reasons in the conditions of a Capture.
    CaptureReason {
        /// The agent took the capture on.
        Accepted,
        /// The capture waits for its turn on the node.
        WaitingForTurn,
        /// The capture has not come this far.
        Pending,
        /// The capture is at work.
        Progressing,
        /// The profiler's session answered.
        Attached,
        /// The window was recorded.
        Captured,
        /// Timeline and tables were made.
        Transformed,
        /// The artifacts are stored.
        Published,
        /// Artifacts with the required events are published.
        Succeeded,
        /// The target pod or container is gone or not running. Ask for one that runs.
        TargetNotRunning,
        /// Another capture has the container. Wait for it, or stop it.
        ContainerBusy,
        /// `startDeadlineSeconds` passed before the capture's turn came.
        DeadlineExceeded,
        /// The container was not prepared, so Nsight Systems cannot trace it. Label the pod template with
        /// `flopwatch.dev/prepare: nsys` and let the pod be created anew.
        NotPrepared,
        /// The container was prepared, but its start was not grafted; the message says why.
        NotGrafted,
        /// The container was prepared without a category that the session asks for. Add it to the pod annotation
        /// `flopwatch.dev/nsys-trace` and let the pod be created anew.
        CategoryNotPrepared,
        /// The container was prepared with another option of Nsight Systems than the session asks for (how CUDA graphs are traced, which
        /// NVTX range is captured). Add the pod annotation that the message names and let the pod be created anew.
        OptionNotPrepared,
        /// The container was prepared by a version of Flopwatch, or with a version of Nsight Systems, that this node's agent
        /// cannot serve; the message names both. Let the pod be created anew.
        VersionUnsupported,
        /// The program began before its collection did (`start: ContainerStart`); the message says why.
        StartMissed,
        /// The profiler's session in the container ended or does not answer. It comes back when the container restarts.
        SessionGone,
        /// This version has no such profiler for this container; the message says what the probe found.
        ProfilerUnavailable,
        /// Another profiler holds CUPTI in the process. Remove it first.
        OtherProfiler,
        /// The driver gives the GPU's counters to administrators alone, and the container is none. The node's administrator
        /// loads the driver with `NVreg_RestrictProfilingToAdminUsers=0`, which opens them to every container of the node.
        CountersRestricted,
        /// Another program of the node holds the GPU's counters, as DCGM does for its profiling metrics; the message names it.
        /// Pause it for the session.
        CountersBusy,
        /// The program shares its GPU through the Multi-Process Service, so that counters would be those of all its clients.
        /// Run the pod without it, or choose a profiler that reads no counters.
        MultiProcessService,
        /// The GPU has less memory left than the profiler takes beside the program. Leave some free in the program.
        GpuMemory,
        /// Entering the container or starting the collection failed; the message says how.
        AttachFailed,
        /// The range of the program that was to be recorded did not begin in the window; the message says what was waited for.
        RangeMissed,
        /// Stopping the collection or taking the raw capture out failed; the message says how.
        CollectionFailed,
        /// The container restarted within the window.
        ContainerRestarted,
        /// The raw capture is larger than the limit.
        CaptureTooLarge,
        /// The node has too little free disk space left.
        DiskSpace,
        /// Nsight Systems' importer failed or passed its deadline.
        ImportFailed,
        /// The transform failed; the message names the file and the table.
        TransformFailed,
        /// The window holds none of the events that the session requires. The message says which categories are empty.
        RequiredEventsMissing,
        /// The window slowed the target beyond `overhead.duringBasisPoints`, or took so much memory that the target or its node came
        /// near the end of theirs, and was ended; the message says which. What it recorded is published. A window that would do so
        /// and could not be ended is not begun, and there is nothing to publish. Trace less, or for a shorter
        /// time; raise the budget or set `overhead.action: Report`, which holds for the pace alone; or raise the memory limit.
        OverBudget,
        /// The window holds none of the events that the session requires, though the driver's or the kernel's own account says that
        /// the program did such work, or the program was told to record and did not: the profiler missed it, in a second window too
        /// where there could be one. The message says by what. Restart the pod, or choose another profiler.
        EventsMissed,
        /// What the profiler wrote ends before its end, in a second window too where there could be one. Ask for a shorter window,
        /// or look whether the container's disk is full.
        CaptureTruncated,
        /// No NVML on the node, so there is nothing to sample.
        NvmlUnavailable,
        /// Storing the artifacts on the node failed.
        StoreFailed,
        /// Replicas of the artifacts are in the object store.
        Stored,
        /// The session asks for storage Durable and the cluster has no object store. Ask the administrator for one, or for
        /// other storage.
        NoObjectStore,
        /// The object store refuses the agent's credentials, or has no such bucket; the message says which. The artifacts
        /// stay on the node, and the agent goes on trying.
        ObjectStoreRefused,
        /// The object store cannot be reached, fails or is too slow. The artifacts stay on the node, and the agent goes on
        /// trying.
        ObjectStoreUnavailable,
        /// The node removed the artifacts, which had no replicas elsewhere, to keep within its limits of size and age.
        Evicted,
        /// The capture was deleted, and its node's agent did not remove in time what it kept of it. The operator let the
        /// capture go; the Event says what was left, which the agent's sweep removes.
        ArtifactsLeft,
        /// The user stopped the capture with `stop: Discard`, or deleted it.
        Discarded,
        /// The agent restarted in the middle of the capture.
        AgentRestarted,
        /// The node is gone.
        NodeLost,
    }
}

closed_set! {
    /// Condition types of a ProfilingSchedule.
    ScheduleCondition {
        /// The spec can be followed, and sessions are made when their times come.
        Ready,
    }
}

closed_set! {
    /// Reasons in the condition and the Events of a ProfilingSchedule.
    ScheduleReason {
        /// Sessions are made when their times come.
        Scheduled,
        /// `spec.suspend` is set: no sessions are made.
        Suspended,
        /// The cluster's administrator has suspended new captures: no sessions are made meanwhile, and what passes is not caught up.
        CapturesSuspended,
        /// The spec cannot be followed; the message says what is wrong with the times, the blackouts or the selector.
        ScheduleInvalid,
        /// The API server refuses a session; the message says why: a quota, or a policy of the cluster. It is tried again until the
        /// window would be too late.
        SessionRefused,
        /// A window on a pod of an image and hardware failed or exceeded the budget: such pods are left alone for a while, see
        /// `spec.backoff`.
        BackedOff,
        /// More than two of the last ten windows on pods of an image and hardware failed. They are left alone until the schedule is changed.
        ClassSuspended,
        /// Pods of an image and hardware lose more than `spec.budget.amortizedBasisPoints` over all of their time. They are left alone
        /// until that is no longer so.
        OverBudget,
        /// Nothing tells how fast pods of an image and hardware are, and `spec.budget.unknown` is Refuse. They are left alone until the
        /// schedule is changed.
        NoSensor,
    }
}

closed_set! {
    /// Reasons in the problem details of an agent's artifact service (RFC 9457), which the gateway reads.
    ArtifactReason {
        /// A name in the path is no Kubernetes name.
        BadName,
        /// The path is not UTF-8 once it is decoded.
        BadPath,
        /// The query is not what it should be.
        BadQuery,
        /// There is no token, or the API server does not know it.
        Unauthenticated,
        /// The caller may not read the session.
        Forbidden,
        /// The caller may read the session, but not its raw captures.
        RawForbidden,
        /// There is no such artifact.
        NotFound,
        /// The capture holds nothing of the kind.
        NotCaptured,
        /// The path exists, the method does not.
        Method,
        /// No byte of the range is in the artifact.
        Range,
        /// The request came for another host than this machine.
        ForeignHost,
        /// The Kubernetes API could not be asked who may read.
        Reviews,
        /// The stored content is not what was published.
        Corrupt,
        /// The object store that holds the artifact fails.
        ObjectStore,
        /// The node's store failed.
        Store,
        /// As many conversions as may be are waiting.
        Busy,
        /// The derived artifact is being made.
        Converting,
        /// The derived artifact cannot be made.
        ConversionFailed,
        /// The analysis has no such parameter, or the parameter cannot have that value.
        BadParameter,
        /// The analysis is made of more or fewer captures.
        BadInputs,
        /// Captures of other nodes are neither on this node nor in the object store.
        MissingInputs,
        /// A timeline that was handed over is larger than what may be here of them.
        TooLarge,
        /// What was handed over is not what it was called.
        Mismatch,
        /// What was handed over did not come to its end.
        Broken,
        /// The node's disk has no room for what was handed over.
        NoSpace,
    }
}

impl ArtifactReason {
    /// Whether the artifact may be had elsewhere all the same: this agent's own copy is what fails.
    pub const fn is_of_this_copy(self) -> bool {
        matches!(self, Self::Corrupt | Self::Store)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_found_by_its_own_name() {
        for reason in CaptureReason::ALL {
            assert_eq!(CaptureReason::from_name(reason.as_str()), Some(*reason));
        }
        for reason in ArtifactReason::ALL {
            assert_eq!(ArtifactReason::from_name(reason.as_str()), Some(*reason));
        }
        for reason in ScheduleReason::ALL {
            assert_eq!(ScheduleReason::from_name(reason.as_str()), Some(*reason));
        }
        assert_eq!(CaptureReason::from_name("NoSuchReason"), None);
    }
}
