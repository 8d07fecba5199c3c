//! The agent is killed in each stage of a capture, and the next one brings the capture to the end
//! that it has when nobody is killed.
//!
//! Three times in each stage, or as often as `FLOPWATCH_AGENT_KILLS` says (`cargo xtask soak
//! --agent-kills 50`). Stages are those that the journal has, so that a new one is struck too.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use flopwatch_agent::adoption::Stage;
use serde::Deserialize as _;
use serde::de::value::Error as ValueError;
use serde::de::{Deserializer, Error as _, Visitor};
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};

use super::rig::{Rig, eventually};
use super::sample::{ask_named, rig};
use super::sample_profiler::Sample;

/// Captures at a time.
const LANES: usize = 2;
/// Longest time from when a stage is seen to the kill.
const MAX_DELAY: Duration = Duration::from_millis(150);
/// Rest in a window whose end is waited for: all are of a second.
const PAUSE_DURATION: Duration = Duration::from_millis(800);
/// Longest life, and longest end of one.
const STATE_TIMEOUT: Duration = Duration::from_mins(1);
/// Captures that are begun for one kill: a stage may be gone before it is seen.
const MAX_ATTEMPTS: u32 = 5;

/// How a capture goes.
#[derive(Clone, Copy, Debug)]
enum Course {
    /// Its one window holds what was asked for.
    Whole,
    /// Its first window misses it.
    RetryRecord,
    /// What it records is no trace.
    Spoilt,
}

impl Course {
    const ALL: [Self; 3] = [Self::Whole, Self::RetryRecord, Self::Spoilt];

    fn rig(self) -> (Rig, Sample) {
        let sample = Sample::default();
        match self {
            Self::Whole => {}
            Self::RetryRecord => sample.misses.store(1, Ordering::SeqCst),
            Self::Spoilt => sample.rubbish.store(u32::MAX, Ordering::SeqCst),
        }
        let rig = rig(&sample);
        // A sign that the program does something in its windows.
        rig.containers.inside().processor.1 = Duration::from_secs(1);
        ask_named(&rig, "c", 1, "Kineto", "cpu_op");
        (rig, sample)
    }
}

/// How a capture ended.
#[derive(Debug, PartialEq, Eq)]
struct End {
    reason: String,
    artifacts: BTreeSet<String>,
    is_published: bool,
}

/// Names of the stages, as journals have them.
fn stages() -> &'static [&'static str] {
    /// Asked for an enumeration, it notes the variants.
    struct Variants<'a>(&'a mut &'static [&'static str]);

    impl<'de> Deserializer<'de> for Variants<'_> {
        type Error = ValueError;

        fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, ValueError> {
            Err(ValueError::custom("it is no enumeration"))
        }

        fn deserialize_enum<V: Visitor<'de>>(
            self,
            _: &'static str,
            variants: &'static [&'static str],
            _: V,
        ) -> Result<V::Value, ValueError> {
            *self.0 = variants;
            Err(ValueError::custom("there is no value"))
        }

        serde::forward_to_deserialize_any! {
            bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct
            newtype_struct seq tuple tuple_struct map struct identifier ignored_any
        }
    }

    let mut found: &'static [&'static str] = &[];
    Stage::deserialize(Variants(&mut found)).unwrap_err();
    found
}

/// The process of one life of the agent, which can be killed.
struct Process {
    runtime: Runtime,
    /// How many threads of its own it has.
    threads: Arc<AtomicUsize>,
}

impl Process {
    fn start() -> Self {
        let threads = Arc::<AtomicUsize>::default();
        let (begun, ended) = (Arc::clone(&threads), Arc::clone(&threads));
        let runtime = Builder::new_current_thread()
            .enable_all()
            // Whoever looks at the journal looks after each step of whoever writes it.
            .event_interval(1)
            .on_thread_start(move || {
                begun.fetch_add(1, Ordering::SeqCst);
            })
            .on_thread_stop(move || {
                ended.fetch_sub(1, Ordering::SeqCst);
            })
            .build();
        Self {
            runtime: runtime.unwrap(),
            threads,
        }
    }

    /// Ends it wherever it is. What blocks on a thread comes to its end, as a system call of a
    /// process that is killed does.
    #[expect(
        clippy::disallowed_methods,
        reason = "nothing of the life runs any more that could be waited for"
    )]
    fn kill(self) {
        self.runtime.shutdown_background();
        let begun = Instant::now();
        while self.threads.load(Ordering::SeqCst) > 0 {
            assert!(begun.elapsed() < STATE_TIMEOUT, "a thread does not end");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Carries the capture on, and tells each stage that its journal comes to until `sees` says that it
/// is enough, or the capture has ended. Whether it was enough.
async fn watch(rig: &Rig, mut sees: impl FnMut(&str) -> bool) -> bool {
    let (journal, begun) = (rig.journal("c"), Instant::now());
    let mut last = String::new();
    loop {
        let text = std::fs::read(&journal).unwrap_or_default();
        let kept: Value = serde_json::from_slice(&text).unwrap_or_default();
        let stage = kept["stage"].as_object().and_then(|stage| stage.keys().next());
        if let Some(stage) = stage.filter(|stage| **stage != last) {
            last.clone_from(stage);
            if sees(stage) {
                return true;
            }
            if stage == "Window" {
                tokio::time::sleep(PAUSE_DURATION).await;
            }
        }
        if rig
            .condition("c", "Succeeded")
            .is_some_and(|(status, ..)| status != "Unknown")
        {
            return false;
        }
        assert!(begun.elapsed() < STATE_TIMEOUT, "the capture stays in stage {last}");
        tokio::task::yield_now().await;
    }
}

/// How the capture ended, of which nothing is left but what is published.
async fn end_of(rig: &Rig, sample: &Sample) -> End {
    let (reason, _) = rig.end_of("c").await;
    eventually("the spool to be empty", || rig.spooled().is_empty().then_some(())).await;
    assert!(!sample.records.load(Ordering::SeqCst), "its collection goes on");
    let capture = rig.server.get("captures", "team", "c").unwrap();
    let artifacts = capture["status"]["artifacts"].as_array().cloned().unwrap_or_default();
    let artifacts = artifacts.iter().map(|artifact| {
        let name = artifact["name"].as_str().unwrap();
        assert!(!rig.published("c", name).is_empty(), "{name} is there");
        name.to_owned()
    });
    End {
        reason,
        artifacts: artifacts.collect(),
        is_published: rig.manifest("c").exists(),
    }
}

/// The stages of a capture of that course whose agent lives, and its end.
fn unharmed(course: Course) -> (BTreeSet<String>, End) {
    let (rig, sample) = course.rig();
    let process = Process::start();
    let seen = process.runtime.block_on(async {
        let life = rig.live().await;
        let mut stages = BTreeSet::new();
        watch(&rig, |stage| {
            stages.insert(stage.to_owned());
            false
        })
        .await;
        let end = end_of(&rig, &sample).await;
        life.end().await;
        (stages, end)
    });
    process.kill();
    seen
}

/// A kill.
struct Kill<'a> {
    stage: &'static str,
    course: Course,
    after: Duration,
    expected: &'a End,
}

impl fmt::Display for Kill<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, {:?} after it came to {}", self.course, self.after, self.stage)
    }
}

impl Kill<'_> {
    /// Strikes a capture; how often it began to record.
    fn strike(&self) -> u32 {
        for _ in 0..MAX_ATTEMPTS {
            let (rig, sample) = self.course.rig();
            let process = Process::start();
            let is_there = process.runtime.block_on(async {
                let _life = rig.live().await;
                let is_there = watch(&rig, |stage| stage == self.stage).await;
                if is_there {
                    tokio::time::sleep(self.after).await;
                }
                is_there
            });
            process.kill();
            if !is_there {
                continue;
            }
            let process = Process::start();
            process.runtime.block_on(async {
                let life = rig.live().await;
                // One that was killed behind the capture's end has left its files behind.
                life.sweep().await;
                assert_eq!(end_of(&rig, &sample).await, *self.expected, "{self}");
                life.end().await;
            });
            process.kill();
            return sample.starts.load(Ordering::SeqCst);
        }
        panic!("{self}: never seen there");
    }
}

#[test]
fn an_agent_that_is_killed_in_any_stage_leaves_the_next_one_the_end_that_the_capture_would_have_had() {
    let count = std::env::var("FLOPWATCH_AGENT_KILLS").map_or(3, |count| count.parse::<u32>().unwrap());
    let courses: Vec<_> = Course::ALL
        .into_iter()
        .map(|course| (course, unharmed(course)))
        .collect();
    let mut kills = Vec::new();
    for stage in stages() {
        let through: Vec<_> = courses.iter().filter(|(_, (seen, _))| seen.contains(*stage)).collect();
        assert!(!through.is_empty(), "no capture of these comes to stage {stage}");
        let of_stage = (0..count).zip(through.iter().cycle());
        kills.extend(of_stage.map(|(number, (course, (_, expected)))| Kill {
            stage,
            course: *course,
            // The first ones at once.
            after: MAX_DELAY * number / count,
            expected,
        }));
    }
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..LANES {
            scope.spawn(|| {
                while let Some(kill) = kills.get(next.fetch_add(1, Ordering::SeqCst)) {
                    let begun = Instant::now();
                    let starts = kill.strike();
                    println!("{kill}: recorded {starts} times, took {:?}", begun.elapsed());
                }
            });
        }
    });
}
