//! What happens when a part of the cluster dies, stands still or runs out of space. These tests
//! take the release's parts away from everybody, so they are a group of their own; the one that
//! takes the API server away is another.

mod agent;
mod api_server;
mod disk;
mod operator;
mod recorder;
mod release;
mod rights;
