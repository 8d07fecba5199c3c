//! Pods whose program launches kernels on a simulated GPU: stand-ins for NVIDIA's driver and
//! libcupti (`tests/rig/fake-cupti`), which the image of the sample workload holds. Nothing here
//! says anything of a GPU.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use flopwatch_api::preparation::{CUDA_BYTES_ANNOTATION, CUDA_DIR, CUDA_FILE, FLOPWATCH_CUDA_CUPTI};
use flopwatch_model::{Capture, Category, Events};
use flopwatch_trace::{ReadLimits, tracer};
use flopwatch_tracer_file::header::WANTED_AT;
use flopwatch_tracer_file::wanted::{self, Wanted};
use k8s_openapi::api::core::v1::Pod;
use nix::fcntl::OFlag;
use serde_json::{Value, json};

use crate::cluster::{STATE_TIMEOUT, TestNamespace, eventually};
use crate::node::{self, Process};
use crate::pods::{labelled, shell};

/// Pause between two looks at what a program said.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// A pod that runs a shell's script with the simulated GPU, prepared for the words where there are
/// some. Its folder `/work` can be written.
pub fn scripted(name: &str, words: Option<&str>, script: &str) -> Value {
    let mut pod = shell(name, false, script);
    if let Some(words) = words {
        pod = labelled(pod, words);
    }
    // A file of the usual size asks for more memory than the pod has.
    pod["metadata"]["annotations"] = json!({ CUDA_BYTES_ANNOTATION: "8Mi" });
    let container = &mut pod["spec"]["containers"][0];
    container["env"] = json!([
        { "name": "LD_LIBRARY_PATH", "value": "/opt/simulated-gpu/driver" },
        { "name": "FLOPWATCH_FAKE_DRIVER", "value": "13050" },
        { "name": FLOPWATCH_CUDA_CUPTI, "value": "/opt/simulated-gpu/cupti" }
    ]);
    container["volumeMounts"] = json!([{ "name": "work", "mountPath": "/work" }]);
    pod["spec"]["volumes"] = json!([{ "name": "work", "emptyDir": {} }]);
    pod
}

/// A pod whose program does what it is told ([`Program`]), prepared for the words.
pub fn told(name: &str, words: &str) -> Value {
    // Whoever has the pipe open to write too never comes to its end.
    let script = "mkfifo /work/told && exec /opt/simulated-gpu/program <>/work/told >/work/said";
    scripted(name, Some(words), script)
}

/// A pod whose program launches a kernel each 5 ms and counts as the sample workload does, until it
/// is told to end, with `code`.
pub fn steady(name: &str, words: Option<&str>, code: i32) -> Value {
    let lines = format!("printf 'init\\nsteadily\\nexit {code}\\n' >/work/told");
    let script = format!("{lines} && exec /opt/simulated-gpu/program </work/told");
    scripted(name, words, &script)
}

/// As [`told`], where the container goes on when the program has ended.
pub fn outlived(name: &str, words: &str) -> Value {
    let script = "mkfifo /work/told && /opt/simulated-gpu/program <>/work/told >/work/said; sleep 600";
    scripted(name, Some(words), script)
}

/// As [`told`], beside the sample workload, whose steps the flight recorder counts.
pub fn stepping(name: &str, words: &str) -> Value {
    let script = "mkfifo /work/told && (/usr/local/bin/flopwatch-sample-workload --range-micros 2000 &) && \
                  exec /opt/simulated-gpu/program <>/work/told >/work/said";
    scripted(name, Some(words), script)
}

/// With a variable of the container's own.
#[must_use]
pub fn with_variable(mut pod: Value, name: &str, value: &str) -> Value {
    if let Some(variables) = pod["spec"]["containers"][0]["env"].as_array_mut() {
        variables.push(json!({ "name": name, "value": value }));
    }
    pod
}

/// How many kernels and calls a timeline has: what the program counts of launches of kernels.
pub fn records(capture: &Capture) -> u64 {
    let categories = [Category::CudaKernel, Category::CudaApi];
    let counts = categories.map(|category| capture.events.get(&category).map_or(0, Events::count));
    counts.iter().sum()
}

/// The program of a pod that does what it is told, which has begun CUDA.
pub struct Program {
    /// The pod as it was when it ran.
    pub pod: Pod,
    /// The program's process.
    pub process: Process,
    answers: usize,
}

impl Program {
    /// Waits until the program of a pod runs, and has it begin CUDA.
    ///
    /// # Errors
    /// When it does not in time.
    pub async fn begun(namespace: &TestNamespace, name: &str) -> Result<Self> {
        namespace.running(name).await?;
        let (pod, process) = eventually(&format!("the program of pod {name}"), || async {
            let pod = namespace.running(name).await?;
            let process = node::of_pod(&pod)?.into_iter().find(|one| one.runs("program"));
            Ok(process.map(|process| (pod, process)))
        })
        .await?;
        let mut program = Self {
            pod,
            process,
            answers: 0,
        };
        let answer = program.ask("init").await?;
        ensure!(answer == "init 0", "{answer}");
        Ok(program)
    }

    /// A file as the container sees it.
    pub fn path(&self, inside: &str) -> PathBuf {
        self.process.root().join(inside.trim_start_matches('/'))
    }

    /// The tracer's file.
    pub fn trace(&self) -> PathBuf {
        self.path(CUDA_DIR).join(CUDA_FILE)
    }

    /// What is wanted of the programs that share the tracer's file; none while that is written.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn wanted(&self) -> Result<Option<Wanted>> {
        let mut bytes = [0; wanted::BYTES];
        File::open(self.trace())?.read_exact_at(&mut bytes, u64::try_from(WANTED_AT)?)?;
        Ok(Wanted::of_bytes(&bytes))
    }

    /// Waits until the tracer's file holds so many records: libcupti has none of them any more.
    ///
    /// # Errors
    /// When it does not in time.
    pub async fn has_written(&self, count: u64) -> Result<()> {
        eventually("the tracer's file to hold what was launched", || async {
            let held = records(&tracer::read(&self.trace(), &ReadLimits::default())?);
            ensure!(held == count, "{held} of {count} records");
            Ok(Some(()))
        })
        .await
    }

    /// Has a line done, without waiting.
    ///
    /// # Errors
    /// When the program has ended.
    pub fn tell(&self, line: &str) -> Result<()> {
        let mut pipe = OpenOptions::new()
            .write(true)
            .custom_flags(OFlag::O_NONBLOCK.bits())
            .open(self.path("/work/told"))
            .context("the program reads no more")?;
        Ok(pipe.write_all(format!("{line}\n").as_bytes())?)
    }

    /// Has a line done, and gives the answer.
    ///
    /// # Errors
    /// When there is none in time.
    pub async fn ask(&mut self, line: &str) -> Result<String> {
        self.tell(line)?;
        let begin = Instant::now();
        loop {
            let said = std::fs::read_to_string(self.path("/work/said")).context("the program has ended")?;
            // One that is being written has no end yet.
            let whole = said.rsplit_once('\n').map_or("", |(whole, _)| whole);
            if let Some(answer) = whole.lines().nth(self.answers) {
                self.answers += 1;
                return Ok(answer.to_owned());
            }
            ensure!(begin.elapsed() < STATE_TIMEOUT, "{line}: no answer in {said:?}");
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Has something launched, and gives how many records the stand-in wrote for it.
    ///
    /// # Errors
    /// When the program does not say so.
    pub async fn recorded(&mut self, line: &str) -> Result<u64> {
        let answer = self.ask(line).await?;
        let count = answer.strip_prefix("recorded ").and_then(|count| count.parse().ok());
        count.with_context(|| format!("{line}: the program said {answer:?}"))
    }

    /// Has kernels launched at a pace for so long, and gives how many records the stand-in wrote
    /// for them.
    ///
    /// # Errors
    /// When the program does not say so.
    pub async fn paced(&mut self, per_second: u32, length: Duration) -> Result<u64> {
        let line = format!("pace {per_second} {}", length.as_millis());
        let answer = self.ask(&line).await?;
        let counts = answer.strip_prefix("paced ").and_then(|counts| counts.split_once(' '));
        let count = counts.and_then(|(count, _time)| count.parse().ok());
        count.with_context(|| format!("{line}: the program said {answer:?}"))
    }

    /// Launches kernels until a window records them, then so many more. Gives how many records that
    /// were, by the program's own count.
    ///
    /// # Errors
    /// When no window begins in time.
    pub async fn launched(&mut self, count: u64) -> Result<u64> {
        let begin = Instant::now();
        loop {
            let recorded = self.recorded("launch 1").await?;
            if recorded > 0 {
                return Ok(recorded + self.recorded(&format!("launch {count}")).await?);
            }
            ensure!(begin.elapsed() < STATE_TIMEOUT, "no window begins");
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Launches kernels until nobody records them any more.
    ///
    /// # Errors
    /// When somebody still does.
    pub async fn left_alone(&mut self) -> Result<()> {
        let begin = Instant::now();
        while self.recorded("launch 1").await? > 0 {
            ensure!(begin.elapsed() < STATE_TIMEOUT, "it is recorded on and on");
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }

    /// The program goes on, and no window records it.
    ///
    /// # Errors
    /// When it has ended, or is recorded.
    pub async fn goes_on_alone(&mut self) -> Result<()> {
        ensure!(self.process.is_alive(), "the program ended");
        let recorded = self.recorded("launch 10").await?;
        ensure!(recorded == 0, "{recorded} records without a window");
        Ok(())
    }
}
