//! What programs of ours may ask the kernel for: two closed lists of system calls.
//!
//! What is not listed answers EPERM, as in the profile that container runtimes have for their
//! default. Calls that a C library tries first and falls back from (`clone3`, and every call newer
//! than the lists) answer ENOSYS. A call of another architecture or of x32 ends the process: its
//! numbers mean something else.

mod calls;
mod rules;

use nix::libc;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch, sock_filter};

use rules::rules;

/// Who is confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// What enters a container: the profiler's command-line tools and its daemons. No more than the
    /// default profile of container runtimes gives a container without a capability.
    Entered,
    /// What reads foreign files: importers, exporters, the transform. Only sockets of the machine
    /// itself (`AF_UNIX`); no tracing, no memory of other processes, no System V or POSIX message
    /// queues, no asynchronous I/O of the kernel's.
    Reader,
}

/// Why a filter is not in place.
#[derive(Debug, thiserror::Error)]
pub enum SeccompError {
    /// There are no lists for this processor.
    #[error("no filter of system calls for this architecture")]
    Architecture,
    /// The lists make no filter.
    #[error("the filter of system calls cannot be built: {0}")]
    Build(#[from] seccompiler::BackendError),
    /// The kernel refused it.
    #[error("the filter of system calls cannot be installed: {0}")]
    Install(#[from] seccompiler::Error),
}

/// Confines the calling thread, and whatever it starts or executes from now on, for good; sets
/// `no_new_privs`. Call it with one thread, last before execve: the calls that a caller still wants
/// to make itself must be listed.
pub fn confine(profile: Profile) -> Result<(), SeccompError> {
    Ok(seccompiler::apply_filter(&program(profile)?)?)
}

fn program(profile: Profile) -> Result<BpfProgram, SeccompError> {
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|_unknown| SeccompError::Architecture)?;
    let errno = |number: libc::c_int| SeccompAction::Errno(number.unsigned_abs());
    let filter = SeccompFilter::new(rules(profile)?, errno(libc::EPERM), SeccompAction::Allow, arch)?;
    let listed: BpfProgram = filter.try_into()?;
    let mut whole = preamble(&errno(libc::ENOSYS), audit_arch(arch));
    whole.extend(listed);
    Ok(whole)
}

/// Number of the newest call that the lists know of or leave out on purpose: `mseal`, Linux 6.10.
const NEWEST: u32 = 462;
/// `clone3`: its flags lie in memory, where no filter sees them.
const CLONE3: u32 = 435;
/// Bit of a call's number that says x32.
const X32: u32 = 0x4000_0000;

const fn audit_arch(arch: TargetArch) -> u32 {
    // The machine's number in ELF, 64 bits, little-endian.
    let machine: u32 = match arch {
        TargetArch::x86_64 => 62,
        TargetArch::aarch64 => 183,
        TargetArch::riscv64 => 243,
    };
    machine | 0x8000_0000 | 0x4000_0000
}

/// What the crate cannot say: it knows one answer for what is listed and one for what is not.
fn preamble(no_such_call: &SeccompAction, arch: u32) -> BpfProgram {
    /// Offsets in `struct seccomp_data`.
    const NUMBER: u32 = 0;
    const ARCH: u32 = 4;
    /// `BPF_LD | BPF_W | BPF_ABS`, `BPF_JMP` with `JEQ`, `JGT`, `JSET`, and `BPF_RET | BPF_K`.
    const LOAD: u16 = 0x20;
    const IF_EQUAL: u16 = 0x15;
    const IF_GREATER: u16 = 0x25;
    const IF_ANY_BIT: u16 = 0x45;
    const RETURN: u16 = 0x06;
    let step = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    let kill = u32::from(SeccompAction::KillProcess);
    vec![
        step(LOAD, 0, 0, ARCH),
        step(IF_EQUAL, 1, 0, arch),
        step(RETURN, 0, 0, kill),
        step(LOAD, 0, 0, NUMBER),
        step(IF_ANY_BIT, 0, 1, X32),
        step(RETURN, 0, 0, kill),
        step(IF_EQUAL, 1, 0, CLONE3),
        step(IF_GREATER, 0, 1, NEWEST),
        step(RETURN, 0, 0, u32::from(no_such_call.clone())),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A filter holds for the thread that takes it.
    fn confined<T: Send>(profile: Profile, work: impl FnOnce() -> T + Send) -> T {
        let thread = || {
            confine(profile).unwrap();
            work()
        };
        std::thread::scope(|scope| scope.spawn(thread).join().unwrap())
    }

    #[test]
    fn a_confined_thread_starts_programs_and_gets_no_namespace_device_or_trace() {
        for profile in [Profile::Entered, Profile::Reader] {
            confined(profile, || {
                let started = std::process::Command::new("true").status().unwrap();
                assert!(started.success(), "{profile:?}");
                let refused = nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWUSER);
                assert_eq!(refused, Err(nix::Error::EPERM), "{profile:?}");
                let device = std::env::temp_dir().join(format!("flopwatch-seccomp-{}-{profile:?}", std::process::id()));
                let made = nix::sys::stat::mknod(
                    &device,
                    nix::sys::stat::SFlag::S_IFCHR,
                    nix::sys::stat::Mode::S_IRUSR,
                    nix::sys::stat::makedev(1, 3),
                );
                assert_eq!(made, Err(nix::Error::EPERM), "{profile:?}");
                nix::sys::stat::mknod(
                    &device,
                    nix::sys::stat::SFlag::S_IFIFO,
                    nix::sys::stat::Mode::S_IRUSR,
                    0,
                )
                .unwrap();
                std::fs::remove_file(&device).unwrap();
            });
        }
    }

    #[test]
    fn who_reads_foreign_files_has_only_sockets_of_the_machine() {
        confined(Profile::Reader, || {
            std::os::unix::net::UnixStream::pair().unwrap();
            let refused = std::net::UdpSocket::bind("127.0.0.1:0").unwrap_err();
            assert_eq!(refused.kind(), std::io::ErrorKind::PermissionDenied);
        });
        confined(Profile::Entered, || {
            std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        });
    }

    #[test]
    fn every_program_is_small_enough_for_the_kernel() {
        for profile in [Profile::Entered, Profile::Reader] {
            let program = program(profile).unwrap();
            assert!(program.len() < 4096, "{profile:?}: {}", program.len());
        }
    }
}
