//! Drops privileges permanently.

use rustix::io;
use rustix::process::{Gid, Uid};
use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_capabilities_secure_bits, set_no_new_privs,
    set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};

/// Becomes another user, with no capability left in any set and no way to gain one. Call it with
/// one thread: users belong to threads in the kernel.
pub fn become_user(uid: u32, gid: u32, groups: &[u32]) -> io::Result<()> {
    // Root's special treatment at execve goes first, while there still is the right to change it;
    // locked for good.
    set_capabilities_secure_bits(
        CapabilitiesSecureBits::NO_ROOT
            | CapabilitiesSecureBits::NO_ROOT_LOCKED
            | CapabilitiesSecureBits::NO_SETUID_FIXUP
            | CapabilitiesSecureBits::NO_SETUID_FIXUP_LOCKED
            | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE
            | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED,
    )?;
    drop_bounding_set()?;
    let groups: Vec<Gid> = groups.iter().map(|group| Gid::from_raw(*group)).collect();
    set_thread_groups(&groups)?;
    let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
    set_thread_res_gid(gid, gid, gid)?;
    set_thread_res_uid(uid, uid, uid)?;
    drop_capabilities()
}

/// Drops every capability of this process and of what it executes; keeps the user.
pub fn drop_capabilities() -> io::Result<()> {
    clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    set_capabilities(
        None,
        CapabilitySets {
            effective: none,
            permitted: none,
            inheritable: none,
        },
    )?;
    set_no_new_privs(true)
}

/// Empties the bounding set: a later execve gains nothing, whatever the file's capabilities. Wants
/// CAP_SETPCAP.
pub fn drop_bounding_set() -> io::Result<()> {
    for number in 0..64 {
        match remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << number)) {
            Ok(()) => {}
            // The first number that this kernel does not know.
            Err(io::Errno::INVAL) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
