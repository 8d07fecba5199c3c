//! Samples NVML, attributes it to pods and exposes it to Prometheus.
