//! The table of profilers: what every part of Flopwatch calls them, and which files they leave.
//!
//! An entry adds a profiler to manifests, to the label of pods, to requests over HTTP, to the
//! plugin's command line, and to the raw files that are served and converted.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::names::{CUDA_TRACE, JAX_DUMPS, NCU_REPORT, REPORT, RING, TRACES, XPLANE};
use crate::artifact::{ARCHIVE_TYPE, BINARY_TYPE, RawFile};

/// Names of the profilers' raw files among the artifacts of a capture.
pub(crate) mod names {
    /// Name of the report of Nsight Systems among a capture's artifacts.
    pub const REPORT: &str = "capture.nsys-rep";

    /// Name of the report of Nsight Compute, in its container and among a capture's artifacts.
    pub const NCU_REPORT: &str = "capture.ncu-rep";

    /// Name of the traces of Kineto among a capture's artifacts: an archive with one for each process.
    pub const TRACES: &str = "capture.tar";

    /// Name of the profile of JAX among a capture's artifacts.
    pub const XPLANE: &str = "profile.xplane.pb";

    /// Name of what JAX's compiler wrote of its programs among a capture's artifacts: an archive,
    /// whose `index.json` says what is not in it.
    pub const JAX_DUMPS: &str = "jax-dumps.tar";

    /// Name of the flight recorder's file among a capture's artifacts.
    pub const RING: &str = "recorder.ring";

    /// Name of what was drained of the CUDA tracer's file among a capture's artifacts.
    pub const CUDA_TRACE: &str = "capture.cuda-trace";
}

/// What an entry of the table says of a profiler.
struct Entry {
    name: &'static str,
    word: &'static str,
    called: &'static str,
    about: &'static str,
    needs_launcher: bool,
    outlives_pod: bool,
    files: &'static [RawFile],
}

/// What an entry says of how a container is prepared.
struct Preparation {
    variables: &'static [Variable],
    guards: &'static [Variable],
    writes: bool,
}

/// A variable of a program: name and value.
pub type Variable = (&'static str, &'static str);

/// Makes [`ProfilerType`] and [`PreparationWord`] of the table. An entry is the name in manifests
/// with these fields:
///
/// - `word`: the name in requests over HTTP, on command lines and in the label of pods;
/// - `called`: what people call the profiler, in a sentence;
/// - `about`: what the profiler gives and what it needs, for people;
/// - `needs_launcher`: whether it profiles only containers whose command the launcher started; one
///   that needs variables or a volume alone does not, and says itself where they are missing;
/// - `outlives_pod`: whether what it recorded is kept on the node when the pod has ended;
/// - `prepares`: the name again and what admission adds to a container for it, left out for a
///   profiler that needs nothing: `purpose` for people, the `variables` that the profiler needs,
///   the `guards` that keep these from harming the program, and whether a capture `writes` into
///   the pod;
/// - `files`: its raw files, as they are named among the artifacts of a capture.
macro_rules! profilers {
    ($(
        $(#[$attribute:meta])*
        $profiler:ident {
            word: $word:literal,
            called: $called:literal,
            about: $about:literal,
            needs_launcher: $needs_launcher:literal,
            outlives_pod: $outlives_pod:literal,
            $(prepares: $prepared:ident {
                purpose: $purpose:literal,
                variables: [$($variable:expr),*],
                guards: [$($guard:expr),*],
                writes: $writes:literal,
            },)?
            files: [$($file:expr),*],
        }
    )+) => {
        /// The profilers that a session can name. `Auto` takes the deepest that is open for the container.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        pub enum ProfilerType {
            $(
                $(#[$attribute])*
                #[doc = $about]
                $profiler,
            )+
        }

        impl ProfilerType {
            /// Every profiler, in the order of the table.
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$profiler),+];

            /// The words of all profilers, in the order of the table.
            pub const WORDS: [&'static str; [$($word),+].len()] = [$($word),+];

            const fn entry(self) -> &'static Entry {
                match self {
                    $(Self::$profiler => &Entry {
                        name: stringify!($profiler),
                        word: $word,
                        called: $called,
                        about: $about,
                        needs_launcher: $needs_launcher,
                        outlives_pod: $outlives_pod,
                        files: &[$($file),*],
                    },)+
                }
            }
        }

        /// What a container can be prepared for. The order is that in which the words are written.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum PreparationWord {
            $($(
                #[doc = $purpose]
                $prepared,
            )?)+
        }

        impl PreparationWord {
            /// Every word, in the order of the table.
            pub const ALL: [Self; [$($($purpose,)?)+].len()] = [$($(Self::$prepared,)?)+];

            /// The profiler that the word prepares for.
            pub const fn profiler(self) -> ProfilerType {
                match self {
                    $($(Self::$prepared => ProfilerType::$prepared,)?)+
                }
            }

            const fn preparation(self) -> &'static Preparation {
                match self {
                    $($(Self::$prepared => &Preparation {
                        variables: &[$($variable),*],
                        guards: &[$($guard),*],
                        writes: $writes,
                    },)?)+
                }
            }

            /// The word that prepares for a profiler; None for one that needs no preparation.
            pub const fn of(profiler: ProfilerType) -> Option<Self> {
                match profiler {
                    $($(ProfilerType::$prepared => Some(Self::$prepared),)?)+
                    _ => None,
                }
            }
        }
    };
}

profilers! {
    #[default]
    Auto {
        word: "auto",
        called: "Auto",
        about: "The deepest profiler that is open for the container.",
        needs_launcher: false,
        outlives_pod: false,
        files: [],
    }
    Nsys {
        word: "nsys",
        called: "Nsight Systems",
        about: "Nsight Systems: CUDA, NVTX, OS runtime and library calls. Needs a prepared pod.",
        needs_launcher: true,
        outlives_pod: false,
        prepares: Nsys {
            purpose: "Nsight Systems: the launcher, the tools and their volumes.",
            variables: [],
            guards: [],
            writes: true,
        },
        files: [RawFile { name: REPORT, media_type: BINARY_TYPE, makes_timeline: true }],
    }
    Ncu {
        word: "ncu",
        called: "Nsight Compute",
        about: "Nsight Compute: counters of kernels. Needs a pod that the session makes.",
        needs_launcher: true,
        outlives_pod: false,
        prepares: Ncu {
            purpose: "Nsight Compute, which starts the program itself: in pods that a session made, and nowhere else.",
            variables: [],
            guards: [],
            writes: true,
        },
        files: [RawFile { name: NCU_REPORT, media_type: BINARY_TYPE, makes_timeline: false }],
    }
    Kineto {
        word: "kineto",
        called: "Kineto",
        about: "PyTorch's own profiler: operators, annotations, Python functions, CUDA. Needs a program that was started for it.",
        needs_launcher: false,
        outlives_pod: false,
        prepares: Kineto {
            purpose: "PyTorch's Kineto: a variable.",
            // The library asks whether it is set; its value means nothing.
            variables: [("KINETO_USE_DAEMON", "1")],
            // PyTorch 2.3 and 2.4 start Kineto while CUDA's libraries are still being loaded, which
            // fails; newer ones do not read it (https://github.com/pytorch/pytorch/issues/131020).
            guards: [("KINETO_DAEMON_INIT_DELAY_S", "10")],
            writes: true,
        },
        files: [RawFile { name: TRACES, media_type: ARCHIVE_TYPE, makes_timeline: true }],
    }
    Jax {
        word: "jax",
        called: "Jax",
        about: "JAX's own profiler. Needs a program that runs its service (jax.profiler.start_server).",
        needs_launcher: false,
        outlives_pod: false,
        prepares: Jax {
            purpose: "JAX: variables.",
            // Every frame of Python that led to an operation stands in its location.
            variables: [("JAX_TRACEBACK_IN_LOCATIONS_LIMIT", "-1")],
            guards: [],
            writes: true,
        },
        files: [
            RawFile { name: XPLANE, media_type: BINARY_TYPE, makes_timeline: true },
            RawFile { name: JAX_DUMPS, media_type: ARCHIVE_TYPE, makes_timeline: false }
        ],
    }
    Metrics {
        word: "metrics",
        called: "Metrics",
        about: "NVML samples alone.",
        needs_launcher: false,
        outlives_pod: false,
        files: [],
    }
    Recorder {
        word: "recorder",
        called: "Recorder",
        about: "What the pod's flight recorder keeps of the last seconds, at once. Needs a pod that was prepared for it.",
        needs_launcher: false,
        outlives_pod: true,
        prepares: Recorder {
            purpose: "The flight recorder: a library that NVTX loads, and a volume for its file.",
            // Its variables go with its volume.
            variables: [],
            guards: [],
            // Its file has a volume of its own, in memory and of a size that does not change.
            writes: false,
        },
        files: [RawFile { name: RING, media_type: BINARY_TYPE, makes_timeline: true }],
    }
    Cuda {
        word: "cuda",
        called: "Cuda",
        about: "The CUDA tracer: kernels, copies, waits, calls and graphs, at once. Needs a pod that was prepared for it.",
        needs_launcher: false,
        outlives_pod: false,
        prepares: Cuda {
            purpose: "The CUDA tracer: a library that CUDA's driver loads, and a volume for its file.",
            // Its variables go with its volume.
            variables: [],
            guards: [],
            // Its file has a volume of its own, in memory and of a size that does not change.
            writes: false,
        },
        files: [RawFile { name: CUDA_TRACE, media_type: BINARY_TYPE, makes_timeline: true }],
    }
}

impl ProfilerType {
    /// The name as it stands in manifests.
    pub const fn as_str(self) -> &'static str {
        self.entry().name
    }

    /// The name in requests over HTTP and on command lines.
    pub const fn word(self) -> &'static str {
        self.entry().word
    }

    /// The profiler of that word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|profiler| profiler.word() == word)
    }

    /// What people call the profiler, in a sentence.
    pub const fn called(self) -> &'static str {
        self.entry().called
    }

    /// What the profiler gives and what it needs, for people.
    pub const fn about(self) -> &'static str {
        self.entry().about
    }

    /// Whether it profiles only containers whose command the launcher started.
    pub const fn needs_launcher(self) -> bool {
        self.entry().needs_launcher
    }

    /// Whether what it recorded is kept on the node when the pod has ended.
    pub const fn outlives_pod(self) -> bool {
        self.entry().outlives_pod
    }

    /// What a pod that is created for it is prepared for; None where samples from outside of the
    /// pod are all it takes.
    pub const fn preparation_word(self) -> Option<PreparationWord> {
        match self {
            Self::Auto => Some(PreparationWord::Nsys),
            profiler => PreparationWord::of(profiler),
        }
    }

    /// The files that the profiler itself writes, as they are named among the artifacts of a
    /// capture.
    pub const fn raw_files(self) -> &'static [RawFile] {
        self.entry().files
    }
}

impl PreparationWord {
    /// The word as it stands in the label.
    pub const fn as_str(self) -> &'static str {
        self.profiler().word()
    }

    /// The variables that a container is given for the word.
    pub const fn variables(self) -> &'static [Variable] {
        self.preparation().variables
    }

    /// The variables that keep the word's own from harming the program, where the container says
    /// nothing of them.
    pub const fn guards(self) -> &'static [Variable] {
        self.preparation().guards
    }

    /// Whether captures of a container that is prepared for the word write into its pod.
    pub const fn writes(self) -> bool {
        self.preparation().writes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_in_requests_is_that_in_manifests_in_small_letters() {
        for profiler in ProfilerType::ALL {
            assert_eq!(profiler.word(), profiler.as_str().to_lowercase());
            assert_eq!(ProfilerType::from_word(profiler.word()), Some(profiler));
            assert_eq!(serde_json::to_value(profiler).unwrap(), profiler.as_str());
        }
        assert_eq!(ProfilerType::from_word("gdb"), None);
    }

    #[test]
    fn a_profiler_that_needs_the_launcher_has_a_word_to_prepare_with() {
        for profiler in ProfilerType::ALL {
            assert!(PreparationWord::of(profiler).is_some() || !profiler.needs_launcher());
        }
        for word in PreparationWord::ALL {
            assert_eq!(PreparationWord::of(word.profiler()), Some(word));
        }
    }
}
