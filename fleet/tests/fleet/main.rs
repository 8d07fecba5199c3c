//! Tests of the fleet's rows through the crate's own face.
