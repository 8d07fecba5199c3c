//! What a capture could leave with a container beside the run folder: folders of traces, the
//! endpoint for PyTorch, connections to JAX.

use anyhow::{Context as _, Result};

use crate::node::Process;

/// The abstract name that PyTorch's processes ask at. The zero at its end belongs to it.
pub const ENDPOINT: &str = "dynolog\0";
/// [`ENDPOINT`] as the kernel's table of sockets shows it.
const SHOWN: &str = "@dynolog@";
/// Begin of the names of folders that captures make in a container.
const FOLDER: &str = "flopwatch-";
/// Code of a connection that stands, in the kernel's tables.
const ESTABLISHED: &str = "01";

/// Folders of captures in the container's folder for temporary files.
///
/// # Errors
/// When the folder cannot be read.
pub fn folders(process: Process) -> Result<Vec<String>> {
    let entries = std::fs::read_dir(process.root().join("tmp")).context("reading the container's /tmp")?;
    let names = entries
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned());
    Ok(names.filter(|name| name.starts_with(FOLDER)).collect())
}

/// Whether something has the name in the process's network that PyTorch's processes ask at.
///
/// # Errors
/// When the process has ended.
pub fn has_endpoint(process: Process) -> Result<bool> {
    let table = std::fs::read_to_string(format!("/proc/{}/net/unix", process.pid)).context("reading its sockets")?;
    Ok(names_endpoint(&table))
}

/// Connections to a port that stand in the process's network.
///
/// # Errors
/// When the process has ended.
pub fn connections(process: Process, port: u16) -> Result<usize> {
    let mut found = 0;
    for table in ["tcp", "tcp6"] {
        let table = std::fs::read_to_string(format!("/proc/{}/net/{table}", process.pid)).context("its connections")?;
        found += established(&table, port);
    }
    Ok(found)
}

/// Whether a table of Unix sockets has the name.
fn names_endpoint(table: &str) -> bool {
    let mut names = table.lines().filter_map(|line| line.split_whitespace().nth(7));
    names.any(|name| name == SHOWN)
}

/// How many connections of a table stand whose own port is that one.
fn established(table: &str, port: u16) -> usize {
    let own = format!(":{port:04X}");
    let lines = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    lines
        .filter(|fields| fields.get(1).is_some_and(|address| address.ends_with(&own)))
        .filter(|fields| fields.get(3) == Some(&ESTABLISHED))
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_endpoint_is_known_by_its_whole_name_alone() {
        let table = |name: &str| {
            format!(
                "Num       RefCount Protocol Flags    Type St Inode Path\n\
                 0000000000000000: 00000002 00000000 00010000 0001 01 12345 /run/x.sock\n\
                 0000000000000000: 00000002 00000000 00000000 0002 01 12346 {name}\n\
                 0000000000000000: 00000002 00000000 00000000 0002 01 12347\n"
            )
        };
        for (name, expected) in [
            ("@dynolog@", true),
            ("@dynolog", false),
            ("@dynolog_client@", false),
            ("/dynolog", false),
            ("dynolog", false),
        ] {
            assert_eq!(names_endpoint(&table(name)), expected, "{name}");
        }
    }

    #[test]
    fn connections_that_stand_are_counted_and_neither_listeners_nor_ended_ones() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue\n\
            0: 00000000:252D 00000000:0000 0A 00000000:00000000\n\
            1: 0100007F:252D 0100007F:D2AC 01 00000000:00000000\n\
            2: 0100007F:D2AC 0100007F:252D 01 00000000:00000000\n\
            3: 0100007F:252D 0100007F:D2AE 06 00000000:00000000\n";
        assert_eq!(established(table, 9517), 1);
        assert_eq!(established(table, 9518), 0);
    }
}
