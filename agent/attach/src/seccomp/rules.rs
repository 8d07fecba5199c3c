//! Which calls each profile lists, and with which arguments.

use std::collections::BTreeMap;

use nix::libc;
use seccompiler::{SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompRule};

use super::calls::{COMMON, ENTERED, LEGACY};
use super::{Profile, SeccompError};

pub(super) type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// What a profile allows.
pub(super) fn rules(profile: Profile) -> Result<Rules, SeccompError> {
    let mut rules: Rules = COMMON.iter().chain(LEGACY).map(|call| (*call, Vec::new())).collect();
    if profile == Profile::Entered {
        rules.extend(ENTERED.iter().map(|call| (*call, Vec::new())));
    }
    // No namespace of its own: CLONE_NEWUSER and all the others. aarch64 and x86_64 have the flags
    // in the first argument.
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
}
