//! Flopwatch's node agent: targets, profilers, captures, artifacts, metrics; and a recorder for one machine.
