use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::process::{Child, Command};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockType, UnixAddr, bind, recv, sendto, setsockopt, socket, sockopt,
};
use nix::sys::time::TimeVal;

use super::*;

/// A process in a network namespace of its own.
struct Pod(Child);

impl Pod {
    fn new() -> Self {
        let child = Command::new("unshare").args(["--net", "sleep", "120"]).spawn().unwrap();
        let pod = Self(child);
        let until = Instant::now() + Duration::from_secs(30);
        let net = |pid: &str| std::fs::read_link(format!("/proc/{pid}/ns/net")).unwrap();
        while net(&pod.0.id().to_string()) == net("self") {
            assert!(Instant::now() < until, "unshare never entered its namespace");
            std::thread::yield_now();
        }
        pod
    }

    fn process(&self) -> ProcessId {
        Procfs::default().identify(i32::try_from(self.0.id()).unwrap()).unwrap()
    }

    /// Does that on a thread within the network namespace.
    fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let namespace = std::fs::File::open(format!("/proc/{}/ns/net", self.0.id())).unwrap();
        let thread = || {
            let kind = Some(rustix::thread::LinkNameSpaceType::Network);
            rustix::thread::move_into_link_name_space(namespace.as_fd(), kind).unwrap();
            work()
        };
        std::thread::scope(|scope| scope.spawn(thread).join().unwrap())
    }

    fn client(&self, name: &str) -> Client {
        self.within(|| {
            let flags = SockFlag::SOCK_CLOEXEC;
            let fd = socket(AddressFamily::Unix, SockType::Datagram, flags, None).unwrap();
            bind(fd.as_raw_fd(), &UnixAddr::new_abstract(name.as_bytes()).unwrap()).unwrap();
            setsockopt(&fd, sockopt::ReceiveTimeout, &TimeVal::new(0, 300_000)).unwrap();
            Client(fd)
        })
    }
}

impl Drop for Pod {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

struct Client(OwnedFd);

impl Client {
    fn send(&self, bytes: &[u8]) -> Result<usize, Errno> {
        let to = UnixAddr::new_abstract(b"dynolog\0").unwrap();
        sendto(self.0.as_raw_fd(), bytes, &to, MsgFlags::MSG_DONTWAIT)
    }

    /// Sends it as soon as there is room; false where nobody has the name.
    fn sends(&self, bytes: &[u8]) -> bool {
        let until = Instant::now() + WINDOW_DURATION;
        loop {
            match self.send(bytes) {
                Ok(_) => return true,
                Err(Errno::EAGAIN) if Instant::now() < until => std::thread::yield_now(),
                Err(Errno::ECONNREFUSED) => return false,
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// The body of the next answer; None where none comes for several times as long as one may be
    /// late.
    fn answer(&self) -> Option<String> {
        let mut bytes = [0; 4096];
        let length = recv(self.0.as_raw_fd(), &mut bytes, MsgFlags::empty()).ok()?;
        Some(String::from_utf8(bytes[40..length].to_vec()).unwrap())
    }

    /// Sends it again, as PyTorch's library does, until it is answered: on a busy machine an answer
    /// comes too late to be sent.
    fn told(&self, request: &[u8]) -> String {
        let until = Instant::now() + WINDOW_DURATION;
        loop {
            assert!(self.sends(request), "nobody has the name");
            if let Some(answer) = self.answer() {
                return answer;
            }
            assert!(Instant::now() < until, "the endpoint never answered");
        }
    }

    fn ask(&self) -> String {
        self.told(&request(&[1]))
    }
}

/// A request of activities that claims these PIDs.
fn request(pids: &[i32]) -> Vec<u8> {
    let mut body = [2, i32::try_from(pids.len()).unwrap(), 0, 0]
        .map(i32::to_le_bytes)
        .concat();
    body.extend(pids.iter().flat_map(|pid| pid.to_le_bytes()));
    let mut datagram = u64::try_from(body.len()).unwrap().to_le_bytes().to_vec();
    datagram.extend_from_slice(b"req");
    datagram.resize(40, 0);
    datagram.extend(body);
    datagram
}

/// Tells a process of it what it is told, and its PID.
struct Told(i32, &'static str);

impl Audience for Told {
    fn includes(&self, pid: i32) -> bool {
        pid == self.0
    }

    fn configuration(&self, process: ProcessId) -> Option<String> {
        Some(format!("{} {}", self.1, process.pid))
    }

    fn answered(&self, _: ProcessId) {}
}

const WINDOW_DURATION: Duration = Duration::from_mins(1);

fn own() -> i32 {
    i32::try_from(std::process::id()).unwrap()
}

fn join(endpoints: &Endpoints, pod: &Pod, audience: Told, limit: Duration) -> Result<Membership, EndpointError> {
    let audience: Arc<dyn Audience> = Arc::new(audience);
    endpoints.join(&Procfs::default(), pod.process(), &audience, limit)
}

/// A pod whose processes are told to record where they are this one.
fn joined() -> (Pod, Endpoints, Membership) {
    let (pod, endpoints) = (Pod::new(), Endpoints::default());
    let membership = join(&endpoints, &pod, Told(own(), "record"), WINDOW_DURATION).unwrap();
    (pod, endpoints, membership)
}

#[test]
fn a_process_is_answered_by_the_kernels_word_on_who_it_is() {
    let (pod, endpoints, membership) = joined();
    let client = pod.client("client");
    // Whatever PIDs it claims.
    for claimed in [&[1][..], &[own() + 1, 1], &[]] {
        assert_eq!(client.told(&request(claimed)), format!("record {}", own()));
    }
    assert_eq!(membership.counts().answered, 3);
    drop(membership);
    assert!(!client.sends(&request(&[1])), "nothing has the name any more");
    assert_eq!(endpoints.count(), 0);
}

#[test]
fn a_process_of_no_capture_is_not_answered() {
    let (pod, endpoints) = (Pod::new(), Endpoints::default());
    let membership = join(&endpoints, &pod, Told(1, "record"), WINDOW_DURATION).unwrap();
    // Though it claims to be the one.
    let client = pod.client("client");
    assert!(client.sends(&request(&[1])) && client.answer().is_none());
    assert_eq!(membership.counts().foreign, 1);
}

#[test]
fn what_no_client_sends_is_counted_and_the_next_one_is_answered() {
    let (pod, _endpoints, membership) = joined();
    let client = pod.client("client");
    let huge = vec![b'x'; 64 << 10];
    let mut many = request(&[1]);
    many[44..48].fill(0xff);
    for wrong in [&b""[..], b"x", &huge, &many, &request(&[1])[..41]] {
        assert!(client.sends(wrong));
    }
    client.ask();
    assert_eq!(membership.counts().malformed, 5);
    // A sender without a name cannot be answered.
    let nameless = pod.within(|| socket(AddressFamily::Unix, SockType::Datagram, SockFlag::empty(), None).unwrap());
    assert!(Client(nameless).sends(&request(&[1])));
    client.ask();
    assert_eq!(membership.counts().foreign, 1);
}

#[test]
fn a_flood_is_read_in_part_and_passes() {
    let (pod, _endpoints, membership) = joined();
    let flood = pod.client("flood");
    let until = Instant::now() + Duration::from_millis(1500);
    while Instant::now() < until {
        flood.send(b"x").ok();
    }
    let counts = membership.counts();
    assert!(
        counts.throttled >= 1 && counts.malformed <= u64::from(A_SLICE) * 150,
        "{counts:?}"
    );
    let client = pod.client("client");
    client.ask();
}

#[test]
fn captures_of_one_namespace_share_its_endpoint_and_each_answers_its_own() {
    let (pod, other, endpoints) = (Pod::new(), Pod::new(), Endpoints::default());
    let first = join(&endpoints, &pod, Told(own(), "first"), WINDOW_DURATION).unwrap();
    let second = join(&endpoints, &pod, Told(1, "second"), WINDOW_DURATION).unwrap();
    let elsewhere = join(&endpoints, &other, Told(own(), "elsewhere"), WINDOW_DURATION).unwrap();
    assert_eq!(endpoints.count(), 2);
    let client = pod.client("client");
    assert!(client.ask().starts_with("first"));
    assert!(other.client("client").ask().starts_with("elsewhere"));
    drop(first);
    assert!(client.sends(&request(&[1])));
    assert_eq!(client.answer(), None, "the other capture is not about this process");
    drop((second, elsewhere));
    assert_eq!(endpoints.count(), 0);
}

#[test]
fn a_name_that_something_else_has_is_left_to_it() {
    let (pod, endpoints) = (Pod::new(), Endpoints::default());
    let daemon = pod.client("dynolog\0");
    let refused = join(&endpoints, &pod, Told(own(), "record"), WINDOW_DURATION);
    assert!(matches!(refused, Err(EndpointError::Taken)), "{refused:?}");
    drop(daemon);
    assert!(join(&endpoints, &pod, Told(own(), "record"), WINDOW_DURATION).is_ok());
}

#[test]
fn an_endpoint_whose_time_is_over_gives_the_name_back_by_itself() {
    let (pod, endpoints) = (Pod::new(), Endpoints::default());
    let short = join(&endpoints, &pod, Told(own(), "short"), Duration::from_millis(10)).unwrap();
    let client = pod.client("client");
    let until = Instant::now() + WINDOW_DURATION;
    while client.sends(&request(&[1])) {
        assert!(Instant::now() < until, "the name is still taken");
    }
    let next = join(&endpoints, &pod, Told(own(), "next"), WINDOW_DURATION).unwrap();
    drop(short);
    // Another client: the first has answers of the endpoint that ended.
    assert!(pod.client("later").ask().starts_with("next"));
    drop(next);
    assert_eq!(endpoints.count(), 0);
}

#[test]
fn a_process_that_ended_has_no_endpoint() {
    let (mut pod, endpoints) = (Pod::new(), Endpoints::default());
    let process = pod.process();
    pod.0.kill().unwrap();
    pod.0.wait().unwrap();
    let audience: Arc<dyn Audience> = Arc::new(Told(own(), "record"));
    let refused = endpoints.join(&Procfs::default(), process, &audience, WINDOW_DURATION);
    assert!(refused.is_err());
    assert_eq!(endpoints.count(), 0);
}

/// Takes long to say of the first process whether it is one of its own, and counts the answers.
struct Slow {
    pid: i32,
    asked: AtomicBool,
    answered: AtomicU64,
}

impl Audience for Slow {
    #[expect(
        clippy::disallowed_methods,
        reason = "the thread that it holds up is the endpoint's own"
    )]
    fn includes(&self, pid: i32) -> bool {
        if !self.asked.swap(true, Ordering::Relaxed) {
            std::thread::sleep(MAX_ANSWER_DELAY * 3);
        }
        pid == self.pid
    }

    fn configuration(&self, _: ProcessId) -> Option<String> {
        Some("now".to_owned())
    }

    fn answered(&self, _: ProcessId) {
        self.answered.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_request_that_nobody_waits_for_any_more_is_not_answered_so_that_no_answer_is_taken_for_the_next_one() {
    let (pod, endpoints) = (Pod::new(), Endpoints::default());
    let slow = Arc::new(Slow {
        pid: own(),
        asked: AtomicBool::new(false),
        answered: AtomicU64::new(0),
    });
    let audience: Arc<dyn Audience> = Arc::<Slow>::clone(&slow);
    let membership = endpoints
        .join(&Procfs::default(), pod.process(), &audience, WINDOW_DURATION)
        .unwrap();
    let (first, second) = (pod.client("first"), pod.client("second"));
    assert!(first.sends(&request(&[1])) && second.sends(&request(&[1])));
    // The first one was read at once, and held up the second.
    assert_eq!(first.answer().as_deref(), Some("now"));
    assert_eq!(second.answer(), None);
    assert_eq!((membership.counts().late, membership.counts().answered), (1, 1));
    assert_eq!(
        slow.answered.load(Ordering::Relaxed),
        1,
        "who is told nothing is not taken for one that records"
    );
    assert_eq!(second.ask(), "now", "asked again, it is told");
}

#[test]
fn a_process_that_asks_for_nothing_is_sent_nothing_so_that_its_next_answer_is_its_own() {
    let (pod, _endpoints, membership) = joined();
    let client = pod.client("client");
    let mut nothing = request(&[1]);
    nothing[40] = 0;
    assert!(client.sends(&nothing));
    assert_eq!(client.answer(), None);
    assert_eq!((membership.counts().idle, membership.counts().answered), (1, 0));
    assert!(client.ask().starts_with("record "));
}

#[test]
fn a_registration_is_read_and_not_answered() {
    let (pod, _endpoints, membership) = joined();
    let client = pod.client("client");
    let mut registration = 16_u64.to_le_bytes().to_vec();
    registration.extend_from_slice(b"ctxt");
    registration.resize(56, 0);
    assert!(client.sends(&registration));
    assert!(client.ask().starts_with("record "));
    let counts = membership.counts();
    assert_eq!((counts.idle, counts.malformed, counts.answered), (1, 0, 1));
}
