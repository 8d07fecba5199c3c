//! GPU Performance Monitoring while the GPU works.

use std::collections::BTreeMap;

use anyhow::{Result, bail};

use super::Outcome;
use crate::nvml;

/// The metric that a working GPU must have.
pub(super) const SM_ACTIVITY: &str = "sm_activity";

/// Points by metric, each in its range.
pub(super) fn read(gpu: bool) -> Result<Outcome> {
    if !gpu {
        return Ok(Outcome::NotRun("no GPU".to_owned()));
    }
    let read = nvml::read(gpu)?;
    if let Some(reason) = read.unavailable {
        return Ok(Outcome::NotRun(reason));
    }
    let mut found = BTreeMap::new();
    for (name, series) in read.series.iter().filter(|(_, series)| series.gpm) {
        let most = if series.unit == "ratio" { 1.0 } else { f64::MAX };
        if !(0.0..=most).contains(&series.least) || !(0.0..=most).contains(&series.most) {
            bail!(
                "{name} is out of its range: {} to {} {}",
                series.least,
                series.most,
                series.unit
            );
        }
        let metric = name.split(' ').next().unwrap_or_default();
        if metric == SM_ACTIVITY && series.most <= 0.0 {
            bail!("the multiprocessors worked, and {name} says that they did not");
        }
        *found.entry(metric.to_owned()).or_default() += u64::try_from(series.points)?;
    }
    if found.is_empty() && read.unsupported.iter().any(|metric| metric == SM_ACTIVITY) {
        return Ok(Outcome::Closed(
            "unsupported by this GPU, or refused by its driver".to_owned(),
        ));
    }
    Ok(Outcome::Found(found))
}
