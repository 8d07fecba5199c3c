//! Captures of real JAX by its own profiler, of a double of its service, and of services that are
//! none. The programs run in network namespaces that the tests make, as in a pod.

mod double;
mod hostile;
mod memory;
mod program;
mod real;
mod rig;
mod windows;
