//! What travels over the operator socket: one request line up, one response line down, both JSON, then the connection ends. Behind the
//! response to `trace` there is a line for each datagram.
//!
//! Owns the requests, the frame (bounded lines, one deadline for a whole line) and nothing of what requests mean. What comes in is
//! not trusted: too long, too slow, not UTF-8, not JSON and not known are errors with a reason.

use serde::{Deserialize, Serialize};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::view::Body;
use crate::host::clock::Clock;
use crate::host::cluster::view::Cursor;
use crate::proto::base::Time;

/// The longest request, in bytes, its line end included.
pub const REQUEST_MAX: usize = 4096;
/// The longest response, in bytes: room for a line on each of 100,000 endpoints.
pub const RESPONSE_MAX: usize = 128 << 20;

/// What an operator wants.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// A list, or one endpoint.
    Show {
        /// Of what.
        what: What,
        /// A name or a pattern of names.
        #[serde(default)]
        name: Option<String>,
        /// Only what is in this state, or in all of several with commas between them.
        #[serde(default)]
        state: Option<String>,
    },
    /// Some of the calls of a gateway of a cluster, in an order of their own: the answer says where to go on.
    Calls {
        /// The gateway.
        node: u32,
        /// Behind this one.
        #[serde(default)]
        after: Option<Cursor>,
    },
    /// Take endpoints out of service.
    Block {
        /// An endpoint, a facility, or a name with `*` or ranges.
        name: String,
        /// How fast.
        how: How,
    },
    /// Give endpoints back.
    Unblock {
        /// As in `block`.
        name: String,
    },
    /// End what holds one endpoint and forget its request.
    Free {
        /// The endpoint.
        name: String,
    },
    /// What a span receives goes back to its far end, or does not any more.
    Loop {
        /// The facility.
        name: String,
        /// Whether it begins.
        on: bool,
    },
    /// AIS goes to the far end of a span, or does not any more.
    Ais {
        /// The facility.
        name: String,
        /// Whether it begins.
        on: bool,
    },
    /// No new calls anywhere, or take them again.
    Drain {
        /// Whether to refuse.
        on: bool,
    },
    /// An order to the simulated card.
    Sim(Sim),
    /// Datagrams as they come and go.
    Trace {
        /// Only of these endpoints: a name or a pattern with `*`.
        #[serde(default)]
        name: Option<String>,
        /// Only those to and from this agent.
        #[serde(default)]
        agent: Option<String>,
        /// Only of this call.
        #[serde(default)]
        call: Option<String>,
        /// For so long.
        #[serde(default)]
        seconds: Option<u32>,
        /// So many at the most.
        #[serde(default)]
        count: Option<u64>,
    },
    /// An order to the central node of a cluster.
    Cac(CacOrder),
    /// Read the tuning file again.
    Reload {
        /// Only say what would change.
        dry_run: bool,
    },
}

impl Request {
    /// Whether only the owner of the socket may: it changes something, or shows what subscribers dial.
    pub fn is_owners(&self) -> bool {
        !matches!(self, Request::Show { .. } | Request::Calls { .. } | Request::Reload { dry_run: true })
    }
}

/// As an operator would type it.
impl std::fmt::Display for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Request::Show { what, .. } => write!(f, "show {what:?}"),
            Request::Calls { node, .. } => write!(f, "calls of node {node}"),
            Request::Block { name, how: How::Idle } => write!(f, "block {name}"),
            Request::Block { name, how: How::Graceful(seconds) } => write!(f, "block {name} --graceful {seconds}"),
            Request::Block { name, how: How::Force } => write!(f, "block {name} --force"),
            Request::Unblock { name } => write!(f, "unblock {name}"),
            Request::Free { name } => write!(f, "free {name}"),
            Request::Loop { name, on } => write!(f, "loop {name}{}", if *on { "" } else { " --off" }),
            Request::Ais { name, on } => write!(f, "ais {name}{}", if *on { "" } else { " --off" }),
            Request::Drain { on: true } => f.write_str("drain"),
            Request::Drain { on: false } => f.write_str("drain --off"),
            Request::Sim(Sim::Alarm { facility, defect, now }) => {
                write!(f, "sim alarm {facility} {defect}{}", if *now { " --now" } else { "" })
            }
            Request::Sim(order) => write!(f, "sim {}", serde_json::to_string(order).unwrap_or_default()),
            Request::Trace { name, .. } => write!(f, "trace {}", name.as_deref().unwrap_or("*")),
            Request::Cac(order) => write!(f, "cac {}", serde_json::to_string(order).unwrap_or_default()),
            Request::Reload { dry_run: false } => f.write_str("reload"),
            Request::Reload { dry_run: true } => f.write_str("reload --dry-run"),
        }
    }
}

/// What is ordered in a cluster, of the central node but for [`CacOrder::Release`] (R47).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, clap::Subcommand)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum CacOrder {
    /// No new calls for a gateway but emergencies, or again.
    Drain {
        /// Its number.
        node: u32,
        /// It gets calls again.
        #[arg(long)]
        off: bool,
    },
    /// A gateway that was lost is dead: its calls no longer count.
    Forget {
        /// Its number.
        node: u32,
    },
    /// A gateway tells all its calls again.
    Resync {
        /// Its number; without, every one.
        node: Option<u32>,
    },
    /// Of a gateway: calls of its last life that were restored no longer count.
    Release {
        /// One call; without, all that were restored.
        guid: Option<String>,
    },
    /// Limits count what they would refuse, and refuse nothing.
    DryRun {
        /// They refuse again.
        #[arg(long)]
        off: bool,
    },
}

/// What the far end of a channel is ordered to do.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Far {
    /// Seize, and send digits when it may.
    Seize {
        /// `5551234#`, or `k0,5,5,5,s0` on an MF trunk; empty for none.
        digits: String,
    },
    /// Go off-hook.
    Answer,
    /// Go on-hook.
    Release,
    /// Wink.
    Wink,
    /// Go on-hook for a moment.
    Flash,
    /// Send digits.
    Digits {
        /// As for `seize`.
        digits: String,
    },
    /// Hold a key of a telephone down.
    Hold {
        /// `0` to `9`, `A` to `D`, `*` or `#`.
        key: char,
        /// For so long, in ms.
        ms: u32,
    },
    /// What it does of its own accord from now on.
    Behave {
        /// This.
        behaviour: Behaviour,
    },
    /// What it does with continuity tones from now on.
    Echo {
        /// This.
        echo: Echo,
    },
}

/// What a far end does of its own accord.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Behaviour {
    /// It winks, takes digits, answers, and releases when the gateway does.
    Answers,
    /// The same without an answer.
    NoAnswer,
    /// It does nothing when it is seized.
    Silent,
    /// It seizes when it is seized, gives way after a second, then answers.
    Collides,
    /// It seizes when it is seized and stays off-hook for ever.
    Holds,
    /// It answers and never releases.
    Hangs,
    /// It does only what it is ordered.
    Manual,
}

/// What a far end does with continuity tones.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Echo {
    /// It returns them.
    Loop,
    /// It returns the other one.
    Transponder,
    /// It hears nothing.
    Open,
    /// It returns them and does not stop.
    Stuck,
}

/// What can be shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// The cores: role, CPU, load, whether they live.
    Cores,
    /// T3, T1 and E1: state and use.
    Spans,
    /// Everything about one T3, T1 or E1: defects and performance counters.
    Span,
    /// What is wrong.
    Alarms,
    /// What was wrong: the last 1000 alarms that began or ended, the latest last.
    History,
    /// Endpoints, one line each with its call.
    Endpoints,
    /// Everything about one endpoint.
    Endpoint,
    /// Connections, one line each.
    Connections,
    /// Call agents and what they owe an answer to.
    Agents,
    /// H.248 gateways and their controllers.
    Gateways,
    /// Transactions kept, running and outstanding.
    Transactions,
    /// Admission: use and limits of each scope, and why calls were refused.
    Cac,
    /// In a cluster: the calls that count, one line for each leg.
    Ccbs,
    /// All counters.
    Counters,
}

/// How fast endpoints go out of service.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum How {
    /// When their calls have ended by themselves.
    Idle,
    /// After so many seconds; calls that are up then are lost.
    Graceful(u32),
    /// At once; calls are lost.
    Force,
}

/// What can be ordered of a simulated card.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Sim {
    /// A defect begins, or all defects of a facility end.
    Alarm {
        /// `ds/ds3-1`, `ds/ds3-1/ds1-5`, `ds/ds1-3` or `ds/e1-2`.
        facility: String,
        /// `los`, `lof`, `ais`, `rai`, `loopback`, `card`; or `clear`.
        defect: String,
        /// Without the integration time.
        now: bool,
    },
    /// Orders take so many milliseconds from now on.
    Delay {
        /// 0: they are done at once.
        ms: u32,
    },
    /// Orders are never answered from now on; `delay` ends it.
    Hang,
    /// The next orders are refused.
    Refuse {
        /// So many.
        orders: u32,
    },
    /// Packets are lost on their way here from now on.
    Loss {
        /// So many of a million.
        ppm: u32,
    },
    /// The far end of a channel does something.
    Far {
        /// The endpoint.
        endpoint: String,
        /// What.
        order: Far,
    },
    /// What far ends do of their own accord from now on, but for those told by themselves.
    Behave {
        /// This.
        behaviour: Behaviour,
    },
    /// A core stands still, as a stuck one would.
    Stall {
        /// Which.
        core: u8,
        /// For how long, in milliseconds.
        ms: u32,
    },
}

/// What the gateway says.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Response {
    /// Who says it.
    pub gateway: GatewayView,
    /// Cores that did not answer: what they own is missing from this.
    #[serde(default)]
    pub silent_cores: Vec<u8>,
    /// The answer.
    #[serde(flatten)]
    pub body: Body,
}

/// The gateway, in a word.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct GatewayView {
    /// Its domain name.
    pub domain: String,
    /// Version of the program.
    pub version: String,
    /// Whether it has simulated cards: no voice.
    pub simulated: bool,
    /// Whether there are real ones besides.
    #[serde(default)]
    pub mixed: bool,
    /// Since its start, in seconds.
    pub uptime_s: u64,
}

/// Why a request was not done.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Failure {
    /// What kind of reason it is.
    pub kind: FailureKind,
    /// In words, one or several lines.
    pub message: String,
}

impl Failure {
    /// With these words.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Failure {
        Failure { kind, message: message.into() }
    }
}

/// Kinds of reasons.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// The request cannot be read.
    BadRequest,
    /// The user is not the owner of the socket.
    NotPermitted,
    /// No such name, state or core.
    Unknown,
    /// It cannot be done now, or with this gateway.
    Refused,
    /// A core did not answer.
    Silent,
    /// Too many operators at a time.
    Busy,
}

/// Why a line did not come or go.
#[derive(Debug)]
pub enum LineError {
    /// Longer than allowed.
    TooLong,
    /// Not within the time.
    TooSlow,
    /// The other side ended before the line did.
    Cut,
    /// Anything else.
    Io(io::Error),
}

impl std::fmt::Display for LineError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LineError::TooLong => f.write_str("the line is too long"),
            LineError::TooSlow => f.write_str("the line did not pass in time"),
            LineError::Cut => f.write_str("the connection ended before the line did"),
            LineError::Io(error) => error.fmt(f),
        }
    }
}

/// A stream with one deadline for all that passes.
pub struct Timed<'a> {
    stream: &'a UnixStream,
    clock: Clock,
    until: Time,
}

impl<'a> Timed<'a> {
    /// Everything must have passed `within` from now.
    pub fn new(stream: &'a UnixStream, clock: Clock, within: Duration) -> Timed<'a> {
        Timed { stream, clock, until: clock.now() + within }
    }

    /// Reads up to the first line end, which is not part of what is returned, and at most `max` bytes. What follows is dropped.
    ///
    /// # Errors
    /// When no line comes.
    pub fn read_line(&mut self, max: usize) -> Result<Vec<u8>, LineError> {
        let (mut line, mut chunk) = (Vec::new(), [0; 16 << 10]);
        loop {
            self.stream.set_read_timeout(Some(self.left()?)).map_err(LineError::Io)?;
            let length = match self.stream.read(&mut chunk) {
                Ok(0) => return Err(LineError::Cut),
                Ok(length) => length,
                Err(error) if is_retried(&error) => continue,
                Err(error) => return Err(LineError::Io(error)),
            };
            let fresh = chunk.get(..length).unwrap_or_default();
            let end = fresh.iter().position(|&byte| byte == b'\n');
            line.extend_from_slice(fresh.get(..end.unwrap_or(length)).unwrap_or_default());
            if line.len() >= max {
                return Err(LineError::TooLong);
            }
            if end.is_some() {
                return Ok(line);
            }
        }
    }

    /// Writes `line` and a line end.
    ///
    /// # Errors
    /// When it does not pass.
    pub fn write_line(&mut self, mut line: Vec<u8>) -> Result<(), LineError> {
        line.push(b'\n');
        let mut rest = line.as_slice();
        while !rest.is_empty() {
            self.stream.set_write_timeout(Some(self.left()?)).map_err(LineError::Io)?;
            match self.stream.write(rest) {
                Ok(0) => return Err(LineError::Cut),
                Ok(length) => rest = rest.get(length..).unwrap_or_default(),
                Err(error) if is_retried(&error) => {}
                Err(error) => return Err(LineError::Io(error)),
            }
        }
        Ok(())
    }

    /// What is left of the time; never zero, which would mean "for ever".
    fn left(&self) -> Result<Duration, LineError> {
        let left = self.until.since(self.clock.now());
        if left.is_zero() { Err(LineError::TooSlow) } else { Ok(left.max(Duration::from_millis(1))) }
    }
}

/// Whether a call ended for the time being only; the deadline is looked at again before the next.
pub(super) fn is_retried(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Request, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn requests_read_as_they_are_written() {
        let block = Request::Block { name: "ds/ds3-1/*".into(), how: How::Graceful(30) };
        assert_eq!(serde_json::to_string(&block).unwrap(), r#"{"block":{"name":"ds/ds3-1/*","how":{"graceful":30}}}"#);
        let alarm = Sim::Alarm { facility: "ds/ds3-1".into(), defect: "los".into(), now: true };
        for request in [
            block,
            Request::Show { what: What::Endpoints, name: Some("*".into()), state: Some("busy".into()) },
            Request::Block { name: "x".into(), how: How::Force },
            Request::Calls { node: 7, after: Some("7/00000007-00000001-0100000000000009/egress".to_owned().try_into().unwrap()) },
            Request::Calls { node: 7, after: None },
            Request::Drain { on: false },
            Request::Sim(alarm),
            Request::Sim(Sim::Hang),
            Request::Sim(Sim::Far { endpoint: "ds/ds1-1/1".into(), order: Far::Seize { digits: "k0,1,s0".into() } }),
            Request::Sim(Sim::Behave { behaviour: Behaviour::NoAnswer }),
            Request::Reload { dry_run: true },
        ] {
            assert_eq!(read(&serde_json::to_string(&request).unwrap()), Ok(request));
        }
        assert_eq!(read(r#"{"show":{"what":"cores"}}"#), Ok(Request::Show { what: What::Cores, name: None, state: None }));
    }

    #[test]
    fn what_is_not_a_request_is_refused_with_a_reason() {
        for bad in [
            "",
            "{}",
            "[]",
            "null",
            "\"show\"",
            r#"{"show":{"what":"secrets"}}"#,
            r#"{"show":{"what":"cores","more":1}}"#,
            r#"{"calls":{"node":7,"after":"7/00000007-00000001-0100000000000009"}}"#,
            r#"{"calls":{"node":7,"after":"7/00000007-00000001-0100000000000009/ingress/1"}}"#,
            r#"{"block":{"name":"x","how":{"graceful":-1}}}"#,
            r#"{"block":{"name":"x","how":{"graceful":4294967296}}}"#,
            r#"{"drain":{"on":1}}"#,
            r#"{"drain":{"on":true},"reload":{"dry_run":true}}"#,
            &"[".repeat(REQUEST_MAX),
            &r#"{"sim":"#.repeat(500),
        ] {
            assert!(!read(bad).unwrap_err().is_empty(), "{bad}");
        }
    }

    #[test]
    fn only_questions_are_free() {
        assert!(!Request::Show { what: What::Cores, name: None, state: None }.is_owners());
        assert!(!Request::Reload { dry_run: true }.is_owners());
        for order in
            [Request::Reload { dry_run: false }, Request::Drain { on: true }, Request::Sim(Sim::Hang), Request::Free { name: "x".into() }]
        {
            assert!(order.is_owners(), "{order:?}");
        }
    }

    #[test]
    fn lines_are_bounded_in_length_and_time() {
        let clock = Clock::new();
        let timed = |stream| Timed::new(stream, clock, Duration::from_millis(60));
        let (mut a, b) = UnixStream::pair().unwrap();
        a.write_all(b"one\ntwo").unwrap();
        assert_eq!(timed(&b).read_line(10).unwrap(), b"one");
        assert!(matches!(timed(&b).read_line(10), Err(LineError::TooSlow)), "the rest of a chunk is dropped, and no more comes");
        a.write_all(&[b'x'; 10]).unwrap();
        assert!(matches!(timed(&b).read_line(10), Err(LineError::TooLong)));
        // Nobody reads: the socket fills up, and the writer gives up.
        assert!(matches!(timed(&b).write_line(vec![b'x'; 4 << 20]), Err(LineError::TooSlow)));
        drop(a);
        assert!(matches!(timed(&b).read_line(10), Err(LineError::Cut | LineError::Io(_))));
    }

    #[test]
    fn a_dribbling_writer_does_not_stretch_the_deadline() {
        let clock = Clock::new();
        let (mut a, b) = UnixStream::pair().unwrap();
        let dribble = std::thread::spawn(move || {
            while a.write_all(b"x").is_ok() {
                std::thread::park_timeout(Duration::from_millis(5))
            }
        });
        let before = clock.now();
        assert!(matches!(Timed::new(&b, clock, Duration::from_millis(100)).read_line(1 << 20), Err(LineError::TooSlow)));
        assert!(clock.now().since(before) < Duration::from_secs(2));
        drop(b);
        dribble.join().unwrap();
    }
}
