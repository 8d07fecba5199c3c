//! What programs of ours may ask the kernel for: two closed lists of system calls.
//!
//! What is not listed answers EPERM, as in the profile that container runtimes have for their default. Calls that a C library
//! tries first and falls back from (`clone3`, and every call newer than the lists) answer ENOSYS. A call of another architecture
//! or of x32 ends the process: its numbers mean something else.

use std::collections::BTreeMap;

use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, sock_filter,
};

/// Who is confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// What enters a container: the profiler's command-line tools and its daemons. No more than the default profile of container
    /// runtimes gives a container without a capability.
    Entered,
    /// What reads foreign files: importers, exporters, the transform. Only sockets of the machine itself (`AF_UNIX`); no tracing, no
    /// memory of other processes, no System V or POSIX message queues, no asynchronous I/O of the kernel's.
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

/// Confines the calling thread, and whatever it starts or executes from now on, for good; sets `no_new_privs`. Call it with one
/// thread, last before execve: the calls that a caller still wants to make itself must be listed.
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

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

fn rules(profile: Profile) -> Result<Rules, SeccompError> {
    let mut rules: Rules = COMMON.iter().chain(LEGACY).map(|call| (*call, Vec::new())).collect();
    if profile == Profile::Entered {
        rules.extend(ENTERED.iter().map(|call| (*call, Vec::new())));
    }
    // No namespace of its own: CLONE_NEWUSER and all the others. aarch64 and x86_64 have the flags in the first argument.
    rules.insert(
        libc::SYS_clone,
        vec![SeccompRule::new(vec![condition(
            0,
            SeccompCmpOp::MaskedEq(NEW_NAMESPACES),
            0,
        )?])?],
    );
    // Nothing may be typed into a terminal.
    let not = |request| condition(1, SeccompCmpOp::Ne, request);
    rules.insert(
        libc::SYS_ioctl,
        vec![SeccompRule::new(vec![not(TIOCSTI)?, not(TIOCLINUX)?])?],
    );
    // The personalities that leave no protection out but randomisation of addresses.
    rules.insert(
        libc::SYS_personality,
        one_of(0, &[0x0, 0x8, 0x2_0000, 0x2_0008, 0xffff_ffff])?,
    );
    // Pipes, files and sockets by name; never a device.
    rules.insert(libc::SYS_mknodat, made(2)?);
    #[cfg(target_arch = "x86_64")]
    rules.insert(libc::SYS_mknod, made(1)?);
    match profile {
        // A virtual machine's socket would speak past the network namespace.
        Profile::Entered => rules.insert(
            libc::SYS_socket,
            vec![SeccompRule::new(vec![condition(0, SeccompCmpOp::Ne, AF_VSOCK)?])?],
        ),
        Profile::Reader => {
            rules.insert(libc::SYS_socketpair, one_of(0, &[AF_UNIX])?);
            rules.insert(libc::SYS_socket, one_of(0, &[AF_UNIX])?)
        }
    };
    Ok(rules)
}

const AF_UNIX: u64 = 1;
const AF_VSOCK: u64 = 40;
const TIOCSTI: u64 = 0x5412;
const TIOCLINUX: u64 = 0x541c;
/// `CLONE_NEWNS`, `NEWCGROUP`, `NEWUTS`, `NEWIPC`, `NEWUSER`, `NEWPID`, `NEWNET`.
const NEW_NAMESPACES: u64 = 0x7e02_0000;

fn condition(argument: u8, operator: SeccompCmpOp, value: u64) -> Result<SeccompCondition, SeccompError> {
    Ok(SeccompCondition::new(
        argument,
        SeccompCmpArgLen::Dword,
        operator,
        value,
    )?)
}

/// The argument is one of these.
fn one_of(argument: u8, values: &[u64]) -> Result<Vec<SeccompRule>, SeccompError> {
    let equal = |value: &u64| {
        let equal = condition(argument, SeccompCmpOp::Eq, *value)?;
        Ok(SeccompRule::new(vec![equal])?)
    };
    values.iter().map(equal).collect()
}

/// The mode in that argument is of no device.
fn made(argument: u8) -> Result<Vec<SeccompRule>, SeccompError> {
    const KIND: u64 = 0o170_000;
    // No kind (a file), pipe, file, socket.
    let kinds = [0, 0o010_000, 0o100_000, 0o140_000];
    let rule = |kind: u64| {
        let of_kind = condition(argument, SeccompCmpOp::MaskedEq(KIND), kind)?;
        Ok(SeccompRule::new(vec![of_kind])?)
    };
    kinds.into_iter().map(rule).collect()
}

/// What every program needs.
const COMMON: &[i64] = &[
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_bind,
    libc::SYS_brk,
    libc::SYS_capget,
    libc::SYS_capset,
    libc::SYS_chdir,
    libc::SYS_clock_getres,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_close,
    libc::SYS_close_range,
    libc::SYS_connect,
    libc::SYS_copy_file_range,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_eventfd2,
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_fadvise64,
    libc::SYS_fallocate,
    libc::SYS_fchdir,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_fcntl,
    libc::SYS_fdatasync,
    libc::SYS_fgetxattr,
    libc::SYS_flistxattr,
    libc::SYS_flock,
    libc::SYS_fstat,
    libc::SYS_fstatfs,
    libc::SYS_fsync,
    libc::SYS_ftruncate,
    libc::SYS_futex,
    libc::SYS_futex_waitv,
    libc::SYS_get_mempolicy,
    libc::SYS_get_robust_list,
    libc::SYS_getcpu,
    libc::SYS_getcwd,
    libc::SYS_getdents64,
    libc::SYS_getegid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getgroups,
    libc::SYS_getitimer,
    libc::SYS_getpeername,
    libc::SYS_getpgid,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_getpriority,
    libc::SYS_getrandom,
    libc::SYS_getresgid,
    libc::SYS_getresuid,
    libc::SYS_getrusage,
    libc::SYS_getsid,
    libc::SYS_getsockname,
    libc::SYS_getsockopt,
    libc::SYS_gettid,
    libc::SYS_gettimeofday,
    libc::SYS_getuid,
    libc::SYS_getxattr,
    libc::SYS_inotify_add_watch,
    libc::SYS_inotify_init1,
    libc::SYS_inotify_rm_watch,
    libc::SYS_ioprio_get,
    libc::SYS_ioprio_set,
    libc::SYS_kill,
    libc::SYS_landlock_add_rule,
    libc::SYS_landlock_create_ruleset,
    libc::SYS_landlock_restrict_self,
    libc::SYS_lgetxattr,
    libc::SYS_linkat,
    libc::SYS_listen,
    libc::SYS_listxattr,
    libc::SYS_llistxattr,
    libc::SYS_lseek,
    libc::SYS_madvise,
    libc::SYS_membarrier,
    libc::SYS_memfd_create,
    libc::SYS_mincore,
    libc::SYS_mkdirat,
    libc::SYS_mlock,
    libc::SYS_mlock2,
    libc::SYS_mlockall,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_mseal,
    libc::SYS_msync,
    libc::SYS_munlock,
    libc::SYS_munlockall,
    libc::SYS_munmap,
    libc::SYS_nanosleep,
    libc::SYS_newfstatat,
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_send_signal,
    libc::SYS_pipe2,
    libc::SYS_pkey_alloc,
    libc::SYS_pkey_free,
    libc::SYS_pkey_mprotect,
    libc::SYS_ppoll,
    libc::SYS_prctl,
    libc::SYS_pread64,
    libc::SYS_preadv,
    libc::SYS_preadv2,
    libc::SYS_prlimit64,
    libc::SYS_pselect6,
    libc::SYS_pwrite64,
    libc::SYS_pwritev,
    libc::SYS_pwritev2,
    libc::SYS_read,
    libc::SYS_readahead,
    libc::SYS_readlinkat,
    libc::SYS_readv,
    libc::SYS_recvfrom,
    libc::SYS_recvmmsg,
    libc::SYS_recvmsg,
    libc::SYS_renameat2,
    libc::SYS_restart_syscall,
    libc::SYS_rseq,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigpending,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigsuspend,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_sched_get_priority_max,
    libc::SYS_sched_get_priority_min,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_getattr,
    libc::SYS_sched_getparam,
    libc::SYS_sched_getscheduler,
    libc::SYS_sched_rr_get_interval,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_yield,
    libc::SYS_seccomp,
    libc::SYS_sendfile,
    libc::SYS_sendmmsg,
    libc::SYS_sendmsg,
    libc::SYS_sendto,
    libc::SYS_set_robust_list,
    libc::SYS_set_tid_address,
    libc::SYS_setfsgid,
    libc::SYS_setfsuid,
    libc::SYS_setgid,
    libc::SYS_setgroups,
    libc::SYS_setitimer,
    libc::SYS_setpgid,
    libc::SYS_setpriority,
    libc::SYS_setregid,
    libc::SYS_setresgid,
    libc::SYS_setresuid,
    libc::SYS_setreuid,
    libc::SYS_setsid,
    libc::SYS_setsockopt,
    libc::SYS_setuid,
    libc::SYS_shutdown,
    libc::SYS_sigaltstack,
    libc::SYS_signalfd4,
    libc::SYS_statfs,
    libc::SYS_statx,
    libc::SYS_symlinkat,
    libc::SYS_sysinfo,
    libc::SYS_tgkill,
    libc::SYS_timer_create,
    libc::SYS_timer_delete,
    libc::SYS_timer_getoverrun,
    libc::SYS_timer_gettime,
    libc::SYS_timer_settime,
    libc::SYS_timerfd_create,
    libc::SYS_timerfd_gettime,
    libc::SYS_timerfd_settime,
    libc::SYS_times,
    libc::SYS_tkill,
    libc::SYS_truncate,
    libc::SYS_umask,
    libc::SYS_uname,
    libc::SYS_unlinkat,
    libc::SYS_utimensat,
    libc::SYS_wait4,
    libc::SYS_waitid,
    libc::SYS_write,
    libc::SYS_writev,
];

/// Calls of x86_64 alone: later architectures have only what replaced them.
#[cfg(target_arch = "x86_64")]
const LEGACY: &[i64] = &[
    libc::SYS_access,
    libc::SYS_alarm,
    libc::SYS_arch_prctl,
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_creat,
    libc::SYS_dup2,
    libc::SYS_epoll_create,
    libc::SYS_epoll_wait,
    libc::SYS_eventfd,
    libc::SYS_fchmodat2,
    libc::SYS_fork,
    libc::SYS_futimesat,
    libc::SYS_getdents,
    libc::SYS_getpgrp,
    libc::SYS_getrlimit,
    libc::SYS_inotify_init,
    libc::SYS_lchown,
    libc::SYS_link,
    libc::SYS_lstat,
    libc::SYS_mkdir,
    libc::SYS_open,
    libc::SYS_pause,
    libc::SYS_pipe,
    libc::SYS_poll,
    libc::SYS_readlink,
    libc::SYS_rename,
    libc::SYS_renameat,
    libc::SYS_rmdir,
    libc::SYS_select,
    libc::SYS_setrlimit,
    libc::SYS_signalfd,
    libc::SYS_stat,
    libc::SYS_symlink,
    libc::SYS_sync_file_range,
    libc::SYS_time,
    libc::SYS_unlink,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_vfork,
];
#[cfg(not(target_arch = "x86_64"))]
const LEGACY: &[i64] = &[];

/// What the profiler's own tools may do beside that: trace their own children, queues and segments of the container's IPC
/// namespace, attributes of files.
const ENTERED: &[i64] = &[
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_fremovexattr,
    libc::SYS_fsetxattr,
    libc::SYS_io_cancel,
    libc::SYS_io_destroy,
    libc::SYS_io_getevents,
    libc::SYS_io_setup,
    libc::SYS_io_submit,
    libc::SYS_lremovexattr,
    libc::SYS_lsetxattr,
    libc::SYS_mq_getsetattr,
    libc::SYS_mq_notify,
    libc::SYS_mq_open,
    libc::SYS_mq_timedreceive,
    libc::SYS_mq_timedsend,
    libc::SYS_mq_unlink,
    libc::SYS_msgctl,
    libc::SYS_msgget,
    libc::SYS_msgrcv,
    libc::SYS_msgsnd,
    libc::SYS_name_to_handle_at,
    libc::SYS_process_mrelease,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_removexattr,
    libc::SYS_semctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_setxattr,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_shmdt,
    libc::SYS_shmget,
    libc::SYS_socketpair,
    libc::SYS_splice,
    libc::SYS_sync,
    libc::SYS_syncfs,
    libc::SYS_tee,
    libc::SYS_vmsplice,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_breaks_out_is_in_no_list() {
        let never = [
            libc::SYS_add_key,
            libc::SYS_bpf,
            libc::SYS_chroot,
            libc::SYS_fanotify_init,
            libc::SYS_finit_module,
            libc::SYS_fsmount,
            libc::SYS_fsopen,
            libc::SYS_init_module,
            libc::SYS_io_uring_enter,
            libc::SYS_io_uring_register,
            libc::SYS_io_uring_setup,
            libc::SYS_kcmp,
            libc::SYS_kexec_load,
            libc::SYS_keyctl,
            libc::SYS_memfd_secret,
            libc::SYS_mount,
            libc::SYS_mount_setattr,
            libc::SYS_move_mount,
            libc::SYS_move_pages,
            libc::SYS_open_by_handle_at,
            libc::SYS_open_tree,
            libc::SYS_perf_event_open,
            libc::SYS_pidfd_getfd,
            libc::SYS_pivot_root,
            libc::SYS_process_madvise,
            libc::SYS_quotactl,
            libc::SYS_reboot,
            libc::SYS_request_key,
            libc::SYS_setns,
            libc::SYS_settimeofday,
            libc::SYS_swapon,
            libc::SYS_syslog,
            libc::SYS_umount2,
            libc::SYS_unshare,
            libc::SYS_userfaultfd,
            libc::SYS_vhangup,
        ];
        for profile in [Profile::Entered, Profile::Reader] {
            let rules = rules(profile).unwrap();
            for call in never {
                assert!(!rules.contains_key(&call), "{profile:?} lists call {call}");
            }
        }
    }

    #[test]
    fn who_reads_foreign_files_may_do_nothing_that_an_entered_program_may_not() {
        let (entered, reader) = (rules(Profile::Entered).unwrap(), rules(Profile::Reader).unwrap());
        for call in reader.keys() {
            assert!(entered.contains_key(call), "call {call}");
        }
        for call in [
            libc::SYS_ptrace,
            libc::SYS_process_vm_readv,
            libc::SYS_shmget,
            libc::SYS_msgget,
        ] {
            assert!(!reader.contains_key(&call), "call {call}");
        }
    }

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
