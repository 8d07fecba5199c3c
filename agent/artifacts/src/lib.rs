//! Content-addressed store of a node's captures and the HTTP service in front of it.
