//! The children of a capture, with a script in the place of a converter that was taken over.
//!
//! Needs root, as the node's agent has it; says so and passes without.

use std::future::{pending, ready};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use flopwatch_attach::nsys::HostTools;
use flopwatch_attach::sandbox::users::Users;
use flopwatch_pipeline::sandbox_dir::SandboxDir;
use flopwatch_pipeline::steps::{ChildRunner, Limits};
use flopwatch_test_harness::script;
use tempfile::TempDir;
use tokio::sync::Semaphore;

/// A capture's folder, and a converter.
struct Rig {
    folder: TempDir,
    steps: ChildRunner,
    users: Users,
}

impl Rig {
    /// With a script in the importer's place: `$2` is what it reads, `$4` what it makes.
    fn new(importer: &str) -> Option<Self> {
        Self::with_turns(importer, Semaphore::MAX_PERMITS)
    }

    /// The same, in which so many children live at once at most.
    fn with_turns(importer: &str, turns: usize) -> Option<Self> {
        if !nix::unistd::geteuid().is_root() {
            println!("skipped: changing users needs root");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("tools")).unwrap();
        for (name, text) in [("importer", importer), ("nsys", "echo no")] {
            script::write(&at("tools").join(name), text);
        }
        std::fs::create_dir(at("spool")).unwrap();
        std::fs::set_permissions(at("spool"), PermissionsExt::from_mode(0o700)).unwrap();
        std::fs::write(at("spool/capture.qdstrm"), "raw").unwrap();
        std::fs::set_permissions(at("spool/capture.qdstrm"), PermissionsExt::from_mode(0o600)).unwrap();
        let tools = HostTools {
            nsys: at("tools/nsys"),
            importer: at("tools/importer"),
            libraries: Vec::new(),
        };
        let users = Users::range(75_000..=75_003);
        let limits = Limits {
            users: users.clone(),
            whole: true,
            turns: Arc::new(Semaphore::new(turns)),
            ..Limits::default()
        };
        let own = PathBuf::from(env!("CARGO_BIN_EXE_flopwatch-agent"));
        Some(Self {
            steps: ChildRunner::new(own, Some(tools), limits),
            users,
            folder,
        })
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn sandbox_dir(&self, name: &str) -> SandboxDir {
        SandboxDir::make(self.at("spool").join(name), &self.users).unwrap()
    }

    async fn import(&self, sandbox_dir: &SandboxDir) -> Result<Option<Duration>, flopwatch_pipeline::steps::Error> {
        let raw = self.at("spool/capture.qdstrm");
        let report = sandbox_dir.at("capture.nsys-rep");
        self.steps.import(sandbox_dir, &raw, &report, pending()).await
    }
}

fn listing(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

#[tokio::test]
async fn what_a_converter_plants_in_its_folder_is_not_published() {
    let script = "cat \"$2\" > made; id -u >> made; ln -s /etc/shadow \"$4\"; ln -s /etc/cron.d/x ../capture.partial; ls -A .. >> made";
    let Some(rig) = Rig::new(script) else { return };
    let (sandbox_dir, other) = (rig.sandbox_dir("work"), rig.sandbox_dir("other"));
    std::fs::write(other.at("secret"), "secret").unwrap();
    rig.import(&sandbox_dir).await.unwrap();
    let refused = sandbox_dir.open("capture.nsys-rep").unwrap_err().to_string();
    assert!(refused.contains("is a symbolic link"), "{refused}");
    let mut made = String::new();
    std::io::Read::read_to_string(&mut sandbox_dir.open("made").unwrap(), &mut made).unwrap();
    let expected = format!("raw{}\ncapture.qdstrm\nwork\n", sandbox_dir.user());
    assert_eq!(made, expected, "it sees its input and its own folder");
    assert_ne!(sandbox_dir.user(), other.user());
    let mut left = listing(&rig.at("spool"));
    left.sort();
    assert_eq!(
        left,
        ["capture.qdstrm", "other", "work"],
        "nothing was planted beside its folder"
    );
    // What lies in its folder and is somebody else's is none of its products.
    std::fs::write(sandbox_dir.at("ours"), "x").unwrap();
    let refused = sandbox_dir.open("ours").unwrap_err().to_string();
    assert!(refused.contains("belongs to user 0"), "{refused}");
}

#[tokio::test]
async fn what_a_converter_closed_is_removed_in_its_name() {
    let script = "mkdir -p a/b; echo x > a/b/c; chmod 0 a/b/c a/b a; echo report > \"$4\"";
    let Some(rig) = Rig::new(script) else { return };
    let sandbox_dir = rig.sandbox_dir("work");
    rig.import(&sandbox_dir).await.unwrap();
    let folder = sandbox_dir.path().to_owned();
    assert_eq!(std::fs::metadata(folder.join("a")).unwrap().uid(), sandbox_dir.user());
    // While it is in use, nobody else is that user.
    rig.steps.clear(&folder).await.unwrap();
    assert_eq!(listing(&folder).len(), 2);
    drop(sandbox_dir);
    rig.steps.clear(&folder).await.unwrap();
    assert_eq!(listing(&folder), Vec::<String>::new());
}

#[tokio::test]
async fn a_converter_that_fails_says_so_in_its_last_words_and_is_not_run_again() {
    let Some(rig) = Rig::new("echo run >> runs; echo \"the file is broken, $(wc -l < runs)\" >&2; exit 3") else {
        return;
    };
    let error = rig.import(&rig.sandbox_dir("work")).await.unwrap_err().to_string();
    assert_eq!(error, "the import failed (exit code 3): the file is broken, 1");
}

/// How NVIDIA's importer fails at random.
const AT_RANDOM: [&str; 2] = [
    "kill -SEGV $$",
    "printf 'Value: \"void AnalysisHelper::AnalysisStatus::SetNextState(StateType)\"\\n  }\\n}\\n' >&2; exit 2",
];

#[tokio::test]
async fn an_importer_that_fails_at_random_is_run_a_second_time() {
    for fails in AT_RANDOM {
        let script = format!("test -e failed || {{ touch failed; echo half > \"$4\"; {fails}; }}; echo whole > \"$4\"");
        let Some(rig) = Rig::new(&script) else { return };
        let sandbox_dir = rig.sandbox_dir("work");
        rig.import(&sandbox_dir).await.unwrap();
        let mut made = String::new();
        std::io::Read::read_to_string(&mut sandbox_dir.open("capture.nsys-rep").unwrap(), &mut made).unwrap();
        assert_eq!(made, "whole\n");
    }
}

#[tokio::test]
async fn an_importer_that_fails_at_random_twice_fails_with_its_last_words() {
    let [_, says] = AT_RANDOM;
    let Some(rig) = Rig::new(says) else { return };
    let error = rig.import(&rig.sandbox_dir("work")).await.unwrap_err().to_string();
    assert!(error.ends_with("AnalysisStatus::SetNextState(StateType)\""), "{error}");
}

#[tokio::test]
async fn children_for_which_there_is_no_memory_together_live_one_after_the_other() {
    let script = "date +%s%N > begun; sleep 0.3; date +%s%N > ended; echo report > \"$4\"";
    let Some(rig) = Rig::with_turns(script, 1) else { return };
    let places = ["a", "b", "c"].map(|name| rig.sandbox_dir(name));
    let [a, b, c] = &places;
    let (a, b, c) = tokio::join!(rig.import(a), rig.import(b), rig.import(c));
    for made in [a, b, c] {
        made.unwrap();
    }
    let mut lives = places.map(|sandbox_dir| {
        ["begun", "ended"].map(|name| -> u64 {
            let text = std::fs::read_to_string(sandbox_dir.at(name)).unwrap();
            text.trim().parse().unwrap()
        })
    });
    lives.sort_unstable();
    let overlap = lives.windows(2).any(|pair| pair[0][1] > pair[1][0]);
    assert!(!overlap, "{lives:?}");
}

#[tokio::test]
async fn whoever_ends_a_capture_waits_for_no_turn_of_its_child() {
    let Some(rig) = Rig::with_turns("echo report > \"$4\"", 1) else {
        return;
    };
    let sandbox_dir = rig.sandbox_dir("work");
    let other = Arc::clone(&rig.steps.limits().turns).try_acquire_owned().unwrap();
    let (raw, report) = (rig.at("spool/capture.qdstrm"), sandbox_dir.at("capture.nsys-rep"));
    let ended = rig.steps.import(&sandbox_dir, &raw, &report, ready(())).await;
    assert!(ended.unwrap_err().to_string().contains("was interrupted"));
    drop(other);
    rig.import(&sandbox_dir).await.unwrap();
}
