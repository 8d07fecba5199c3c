//! Sampled series.

/// Samples of one metric of one device. Series have no durations and are not event categories.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CounterSeries {
    /// Who sampled it, e.g. `nvml`. Letters, digits, `.`, `_`, `:` and `-`, as the next two: they
    /// are names in the file.
    pub source: String,
    /// Which device, e.g. `gpu0` or a UUID.
    pub device: String,
    /// What, e.g. `power_watts`.
    pub metric: String,
    /// Unit of the values, e.g. `W`, `bytes`, `ratio`.
    pub unit: String,
    /// Times in ns relative to the session's start, as many as values.
    pub t_ns: Vec<u64>,
    /// Values of the samples.
    pub value: Vec<f64>,
}

impl CounterSeries {
    /// Whether its three names can be names in a file and every sample has its time.
    pub fn is_well_formed(&self) -> bool {
        let named = [&self.source, &self.device, &self.metric].into_iter().all(|part| {
            !part.is_empty()
                && part.len() <= 128
                && !part.bytes().all(|b| b == b'.')
                && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"._:-".contains(&b))
        });
        named && self.t_ns.len() == self.value.len()
    }
}
