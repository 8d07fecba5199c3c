//! What functions of the operating system are for, by their names.

use schemars::JsonSchema;
use serde::Serialize;
use strum::IntoStaticStr;

/// What a function of the operating system is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum OsCall {
    /// Waits for another thread or process, or for time to pass: `sem_wait`, `poll`,
    /// `pthread_cond_wait`, `futex`, `nanosleep`.
    Wait,
    /// Waits for a lock, where another thread has it: `pthread_mutex_lock`.
    Lock,
    /// Reads and writes files, sockets and devices: `read`, `ioctl`.
    InputOutput,
    /// Anything else: memory, threads, files' names.
    Other,
}

impl OsCall {
    /// What the function of that name is for.
    pub fn of(name: &str) -> Self {
        let bare = name.trim_start_matches("__libc_").trim_start_matches("__");
        let bare = bare.strip_suffix("_unlocked").unwrap_or(bare);
        match bare {
            "poll"
            | "ppoll"
            | "select"
            | "pselect"
            | "pselect6"
            | "epoll_wait"
            | "epoll_pwait"
            | "epoll_pwait2"
            | "futex"
            | "nanosleep"
            | "clock_nanosleep"
            | "sleep"
            | "usleep"
            | "pause"
            | "wait"
            | "wait3"
            | "wait4"
            | "waitpid"
            | "waitid"
            | "accept"
            | "accept4"
            | "sigwait"
            | "sigwaitinfo"
            | "sigtimedwait"
            | "sigsuspend"
            | "sem_wait"
            | "sem_timedwait"
            | "sem_clockwait"
            | "pthread_join"
            | "pthread_timedjoin_np"
            | "pthread_barrier_wait"
            | "pthread_cond_wait"
            | "pthread_cond_timedwait"
            | "pthread_cond_clockwait" => Self::Wait,
            "pthread_mutex_lock"
            | "pthread_mutex_timedlock"
            | "pthread_mutex_clocklock"
            | "pthread_rwlock_rdlock"
            | "pthread_rwlock_wrlock"
            | "pthread_rwlock_timedrdlock"
            | "pthread_rwlock_timedwrlock"
            | "pthread_spin_lock"
            | "flock"
            | "lockf" => Self::Lock,
            "read" | "readv" | "pread" | "pread64" | "preadv" | "write" | "writev" | "pwrite" | "pwrite64"
            | "pwritev" | "fread" | "fwrite" | "fgets" | "fputs" | "fgetc" | "fputc" | "getc" | "putc" | "getline"
            | "getdelim" | "fflush" | "fsync" | "fdatasync" | "sync" | "ioctl" | "recv" | "recvfrom" | "recvmsg"
            | "recvmmsg" | "send" | "sendto" | "sendmsg" | "sendmmsg" | "sendfile" | "splice" | "connect"
            | "fscanf" | "fprintf" | "vfprintf" | "printf" | "puts" | "msync" => Self::InputOutput,
            _ => Self::Other,
        }
    }

    /// Whether the thread does nothing in it but wait for others.
    pub const fn waits(self) -> bool {
        matches!(self, Self::Wait | Self::Lock)
    }

    /// Name in JSON.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_known_by_their_names() {
        for (name, call) in [
            ("sem_timedwait", OsCall::Wait),
            ("pthread_cond_wait", OsCall::Wait),
            ("__poll", OsCall::Wait),
            ("pthread_mutex_lock", OsCall::Lock),
            ("pthread_mutex_trylock", OsCall::Other),
            ("ioctl", OsCall::InputOutput),
            ("fwrite_unlocked", OsCall::InputOutput),
            ("mmap64", OsCall::Other),
        ] {
            assert_eq!(OsCall::of(name), call, "{name}");
        }
    }
}
