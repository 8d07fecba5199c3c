//! TCP sockets that processes of a container listen at.
//!
//! The network namespace is the pod's, so its table of sockets shows every container's: a socket
//! belongs to a process that has its inode open.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use crate::process::{ProcessId, Procfs};

/// Most descriptors of a process that are looked at.
const DESCRIPTORS: usize = 65_536;
/// Most bytes of a table of sockets that are read: some 100,000 sockets.
const TABLE: u64 = 16 << 20;
/// Most sockets of a process that are given.
const MAX_LISTENERS: usize = 64;
/// The state of a socket that listens, as the table writes it.
const LISTEN: &str = "0A";

/// A socket that listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Listener {
    /// The process that has it open.
    pub process: ProcessId,
    /// Address and port that the socket listens on.
    pub address: SocketAddr,
}

impl Listener {
    /// Where to connect to from within its network namespace: loopback for one that listens
    /// everywhere.
    pub fn near(&self) -> SocketAddr {
        let port = self.address.port();
        match self.address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port),
            IpAddr::V6(ip) if ip.is_unspecified() => SocketAddr::new(Ipv6Addr::LOCALHOST.into(), port),
            _ => self.address,
        }
    }
}

/// The sockets that a process listens at, by their ports; at most 64. What cannot be read counts as
/// none.
pub fn of_process(procfs: &Procfs, process: ProcessId) -> Vec<Listener> {
    let folder = procfs.folder(process.pid);
    let own = sockets(&folder.join("fd"));
    let mut found = Vec::new();
    for name in ["net/tcp", "net/tcp6"] {
        let table = read(&folder.join(name)).unwrap_or_default();
        found.extend(
            table
                .lines()
                .filter_map(listening)
                .filter(|(_, inode)| own.contains(inode)),
        );
    }
    let mut found: Vec<_> = found
        .into_iter()
        .map(|(address, _)| Listener { process, address })
        .collect();
    found.sort_unstable_by_key(|listener| (listener.address.port(), listener.address));
    found.truncate(MAX_LISTENERS);
    // Whose they are is only known if the process is the same now.
    if procfs.is_alive(process) { found } else { Vec::new() }
}

/// Inodes of the sockets that are open in a folder of descriptors.
fn sockets(folder: &Path) -> HashSet<u64> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return HashSet::new();
    };
    let links = entries.take(DESCRIPTORS).filter_map(Result::ok);
    links
        .filter_map(|entry| std::fs::read_link(entry.path()).ok())
        .filter_map(|target| inode(target.to_str()?))
        .collect()
}

/// The inode of `socket:[123]`.
fn inode(target: &str) -> Option<u64> {
    target.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(TABLE).read_to_string(&mut text)?;
    Ok(text)
}

/// Address and inode of a line of the table, if its socket listens.
fn listening(line: &str) -> Option<(SocketAddr, u64)> {
    let mut words = line.split_ascii_whitespace();
    let local = words.nth(1)?;
    if words.nth(1)? != LISTEN {
        return None;
    }
    let inode = words.nth(5)?.parse().ok()?;
    let (ip, port) = local.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    Some((SocketAddr::new(address(ip)?, port), inode))
}

/// An address: 32-bit words in hexadecimal, each in the byte order of the machine.
fn address(text: &str) -> Option<IpAddr> {
    let word = |at: usize| u32::from_str_radix(text.get(at * 8..at * 8 + 8)?, 16).ok();
    match text.len() {
        8 => Some(Ipv4Addr::from(word(0)?.to_ne_bytes()).into()),
        32 => {
            let mut bytes = [0; 16];
            for (at, place) in bytes.chunks_exact_mut(4).enumerate() {
                place.copy_from_slice(&word(at)?.to_ne_bytes());
            }
            Some(Ipv6Addr::from(bytes).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    const HEAD: &str =
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode";

    #[test]
    fn a_line_of_the_table_gives_address_and_inode_of_a_socket_that_listens() {
        let rows = [
            (HEAD, None),
            ("", None),
            (
                "   0: 0100007F:2534 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1050 1 0 100 0 0 10 0",
                Some(("127.0.0.1:9524", 1050)),
            ),
            (
                "   1: 0100007F:2534 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 1051 1 0 100 0 0 10 0",
                None,
            ),
            (
                "   0: 00000000000000000000000000000000:252D 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 \
                 00000000     0        0 66818 1 0 100 0 0 10 0",
                Some(("[::]:9517", 66818)),
            ),
            (
                "   0: B80D01200000000067452301EFCDAB89:0050 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 \
                 00000000     0        0 7 1 0 100 0 0 10 0",
                Some(("[2001:db8::123:4567:89ab:cdef]:80", 7)),
            ),
            ("   0: 010000:2534 00000000:0000 0A 0:0 00:0 0 0 0 1050", None),
            ("   0: 0100007F:99999 00000000:0000 0A 0:0 00:0 0 0 0 1050", None),
            (
                "   0: \u{e9}\u{e9}\u{e9}\u{e9}:2534 00000000:0000 0A 0:0 00:0 0 0 0 1050",
                None,
            ),
        ];
        for (line, expected) in rows {
            let expected = expected.map(|(address, inode)| (address.parse().unwrap(), inode));
            assert_eq!(listening(line), expected, "{line}");
        }
    }

    #[test]
    fn a_socket_that_listens_everywhere_is_reached_by_loopback() {
        let process = ProcessId { pid: 1, start_time: 1 };
        for (listens, near) in [
            ("0.0.0.0:9012", "127.0.0.1:9012"),
            ("[::]:9012", "[::1]:9012"),
            ("10.0.0.7:9012", "10.0.0.7:9012"),
            ("[::1]:9012", "[::1]:9012"),
        ] {
            let address = listens.parse().unwrap();
            assert_eq!(Listener { process, address }.near(), near.parse().unwrap());
        }
    }

    #[test]
    fn a_process_is_found_at_the_port_that_it_listens_at_itself() {
        let procfs = Procfs::default();
        let own = procfs.identify(i32::try_from(std::process::id()).unwrap()).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let is_ours = |found: Vec<Listener>| found.iter().any(|found| found.address == address);
        assert!(is_ours(of_process(&procfs, own)));
        // Another process in the same network namespace sees the same table.
        let mut other = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let id = procfs.identify(i32::try_from(other.id()).unwrap()).unwrap();
        let found = of_process(&procfs, id);
        other.kill().unwrap();
        other.wait().unwrap();
        assert!(!is_ours(found));
    }

    #[test]
    fn only_links_to_sockets_have_an_inode() {
        assert_eq!(inode("socket:[42]"), Some(42));
        for other in ["pipe:[42]", "socket:[x]", "socket:42", "/dev/null", "socket:[]"] {
            assert_eq!(inode(other), None, "{other}");
        }
    }
}
