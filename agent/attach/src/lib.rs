//! Finds a container's process, enters it without privilege, grafts a profiler's session into it and controls that session.
