//! What PyTorch's Kineto takes requests through: an abstract datagram socket in a pod's network
//! namespace, and a folder in the container that the traces are written to.
//!
//! A program that was started with `KINETO_USE_DAEMON` sends a datagram to the name `dynolog` every
//! 5 s. The socket is bound in the network namespace of the pod, where abstract names live, by a
//! thread that enters it and ends there. What a datagram says of its sender is not believed: the
//! kernel names the process, and only members of an [`Audience`] are answered.

mod endpoint;
mod message;
mod socket;
mod traces;

pub use endpoint::{Audience, Counts, Endpoints, Membership};
pub use socket::EndpointError;
pub use traces::{TraceFolder, captures_in, folder_name};
