//! An NVML library without a GPU.
