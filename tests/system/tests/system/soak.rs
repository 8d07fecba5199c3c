//! Cycles of attaching and detaching under faults: every fault and every profiler once here, at
//! random and for long with `cargo xtask soak`. It strikes parts that all tests share, so it is a
//! group of its own.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, ensure};
use flopwatch_api::profiler::ProfilerType;
use flopwatch_system_tests::cluster::{Cluster, Group};
use flopwatch_system_tests::soak::{Draw, Options, Plan, run};

/// A variable as a number.
fn number(name: &str, default: u64) -> Result<u64> {
    Ok(match std::env::var(name) {
        Ok(text) => text.parse()?,
        Err(_) => default,
    })
}

/// The only profilers that sessions are to name; none for all.
fn profilers() -> Result<Vec<ProfilerType>> {
    let words = std::env::var("FLOPWATCH_SOAK_PROFILERS").unwrap_or_default();
    let words = words.split(',').filter(|word| !word.is_empty());
    words
        .map(|word| {
            let profiler = ProfilerType::from_word(&word.to_lowercase());
            profiler.with_context(|| format!("there is no profiler {word}"))
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn workloads_outlive_cycles_of_attaching_and_detaching_under_faults() -> Result<()> {
    let Some(cluster) = Cluster::connect(Group::Soak).await? else {
        return Ok(());
    };
    let long = std::env::var_os("FLOPWATCH_SOAK_CYCLES").is_some();
    let short = tempfile::tempdir()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let options = Options {
        cycles: number("FLOPWATCH_SOAK_CYCLES", u64::try_from(Plan::TURNS.len())?)?,
        workloads: usize::try_from(number("FLOPWATCH_SOAK_WORKLOADS", 5)?)?,
        seed: number("FLOPWATCH_SOAK_SEED", now)?,
        draw: if long {
            Draw::AtRandom(profilers()?)
        } else {
            Draw::InTurn
        },
        folder: std::env::var_os("FLOPWATCH_SOAK_FOLDER").map_or_else(|| short.path().to_owned(), PathBuf::from),
        resume: std::env::var_os("FLOPWATCH_SOAK_RESUME").is_some(),
    };
    let report = run(&cluster, &options, |line| println!("{line}")).await?;
    println!("{}", serde_json::to_string_pretty(&report)?);
    ensure!(report.is_clean(), "{:#?}", report.findings);
    Ok(())
}
