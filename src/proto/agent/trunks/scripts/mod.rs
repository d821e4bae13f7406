//! The calls of each kind of trunk, step by step: what the far end is told, what is sent, what must be notified.
//!
//! They follow the flows of RFC 3064 5.1 to 5.4 and RFC 3660 2.3, in each form an agent may give its requests (quarantine `loop` and `step`,
//! embedded requests, requests within connection commands). [`Call::odd`] ones have a far end that misbehaves.
//!
//! In texts `{p}` is the package, `{c}` the call, `{i}` the connection, `{x}` a new request, `{n}` four digits of the call, `{d}` the same
//! without commas, `{sdp}` a session description. Every event that comes must be expected, in this order; that is the check.

pub(super) mod bl;
pub(super) mod cot;
pub(super) mod dt;
pub(super) mod md;
pub(super) mod mo;
pub(super) mod ms;

use super::script::{Call, Script, Step};
use crate::proto::codec::mgcp::Verb::{Crcx, Dlcx, Mdcx, Rqnt};
use Step::{Either, Expect, Far, Forget, Hold, Idle, Pause, Send, Try, Until};

/// One script of several, one behind the other.
macro_rules! joined {
    ($($part:expr),+ $(,)?) => {{
        const PARTS: &[Script] = &[$($part),+];
        const STEPS: [Step; steps(PARTS)] = join(PARTS);
        &STEPS
    }};
}
use joined;

const fn steps(parts: &[Script]) -> usize {
    let (mut count, mut part) = (0, 0);
    while part < parts.len() {
        count += parts[part].len();
        part += 1;
    }
    count
}

const fn join<const N: usize>(parts: &[Script]) -> [Step; N] {
    let mut joined = [Forget; N];
    let (mut at, mut part) = (0, 0);
    while part < parts.len() {
        let mut step = 0;
        while step < parts[part].len() {
            joined[at] = parts[part][step];
            at += 1;
            step += 1;
        }
        part += 1;
    }
    joined
}

const CREATE: &str = "C: {c}\nL: p:20, a:PCMU\nM: recvonly\n";
/// The far side of the call answers its description; the trunk is to tell when either end leaves.
const CONNECT: &str = "C: {c}\nI: {i}\nM: sendrecv\nX: {x}\nQ: loop\nR: {p}/rel(N), {p}/sus(N), {p}/res(N)\n{sdp}";
/// The call is over and the trunk waits for the next one.
const DELETE: &str = "C: {c}\nI: {i}\nX: {x}\nQ: loop\nR: {p}/rlc(N)\n";
/// The same together with the release of the trunk.
const DELETE_RELEASING: &str = "C: {c}\nI: {i}\nX: {x}\nQ: loop\nS: {p}/rel\nR: {p}/rlc(N)\n";
/// The same with the end of a release that the trunk told.
const DELETE_COMPLETING: &str = "C: {c}\nI: {i}\nX: {x}\nQ: loop\nS: {p}/rlc\nR: {p}/rlc(N)\n";
const RELEASE: &str = "X: {x}\nQ: loop\nS: {p}/rel\nR: {p}/rlc(N)\n";
const COMPLETE: &str = "X: {x}\nQ: loop\nS: {p}/rlc\nR: {p}/rlc(N)\n";

/// A far end that does what it should.
const WELL: Step = Far("far answers");
const CREATES: Step = Send(Crcx, CREATE);
const CONNECTS: Step = Send(Mdcx, CONNECT);

/// Brings a trunk to rest whatever it does.
pub(super) const RESET_TRUNK: Script = &[
    WELL,
    Far("release"),
    Pause(400),
    Send(Dlcx, ""),
    Send(Rqnt, "X: {x}\nQ: loop\nS: {p}/rel\nR: {p}/rlc(N)\n"),
    Until("{p}/rlc"),
    Pause(100),
    Forget,
];
/// The same for a line of a PBX: it is idle when the PBX is on-hook.
pub(super) const RESET_LINE: Script = &[WELL, Far("release"), Send(Dlcx, ""), Send(Rqnt, "X: {x}\nQ: loop\n"), Pause(1_500), Forget, Idle];
/// The same where only a connection and tones can be left.
pub(super) const RESET_CLEAR: Script = &[Far("echo loop"), Send(Dlcx, ""), Send(Rqnt, "X: {x}\n"), Forget];
/// The look at a trunk or line at the end.
pub(super) const AUDIT: Script = &[Idle];

const fn call(name: &'static str, weight: u32, script: Script) -> Call {
    Call { name, odd: false, weight, script }
}

const fn odd(name: &'static str, weight: u32, script: Script) -> Call {
    Call { name, odd: true, weight, script }
}

const SENT: Step = Expect("{p}/oc({p}/sup)");
const ANSWERED: Step = Expect("{p}/ans");
const RELEASED: Step = Expect("{p}/rlc");
const WINKED: Step = Expect("{p}/swk");
const SUSPENDED: Step = Expect("{p}/sus");
const SEIZED: Step = Expect("{p}/sup");
const ENDED: Step = Expect("{p}/rel(0)");
const HANGS_UP: Step = Far("release");
/// The agent takes an incoming call.
const ACCEPTS: Step = Send(Crcx, "C: {c}\nL: p:20, a:PCMU\nM: recvonly\nX: {x}\nQ: loop\nR: {p}/rel(N)\n");
/// It is answered at the other side.
const ANSWERS: Step = Send(Mdcx, "C: {c}\nI: {i}\nM: sendrecv\nX: {x}\nQ: loop\nS: {p}/ans\nR: {p}/rel(N)\n{sdp}");
/// The called party went on-hook at the other side.
const SUSPEND: &str = "X: {x}\nQ: loop\nS: {p}/sus\nR: {p}/rel(N)\n";

/// The agent releases a call that is up, and clears it afterwards or by the same command.
const RELEASES: Script = &[Send(Rqnt, RELEASE), RELEASED, Send(Dlcx, DELETE)];
const RELEASES_AT_ONCE: Script = &[Send(Dlcx, DELETE_RELEASING), RELEASED];
/// The same, and the far end goes on-hook late.
const RELEASES_LATE: Script = &[Send(Dlcx, DELETE_RELEASING), Pause(1_000), HANGS_UP, RELEASED];
/// The called end goes on-hook first.
const CALLED_FIRST: Script = &[HANGS_UP, SUSPENDED, Send(Dlcx, DELETE_RELEASING), RELEASED];
/// An incoming call is taken and answered, and is up.
const TAKEN: Script = &[ACCEPTS, Pause(200), ANSWERS, Hold];
/// The far end releases a call it made.
const FAR_END_RELEASES: Script = &[HANGS_UP, ENDED, Send(Dlcx, DELETE_COMPLETING)];
/// A seizure that came to nothing: the agent gives the trunk back.
const GIVES_BACK: Script = &[Send(Rqnt, RELEASE), HANGS_UP, RELEASED];
/// The set-up fails: the far end does not do its part.
const FAILS: Script = &[Expect("{p}/of({p}/sup)"), Expect("{p}/rel(111)"), Send(Dlcx, DELETE_RELEASING), RELEASED];
/// No wink comes; with immediate start nobody waits for one.
const NO_WINK_OR_NONE_NEEDED: Step = Either(&[
    ("{p}/of({p}/sup)", &[Expect("{p}/rel(111)"), Send(Dlcx, DELETE_RELEASING), RELEASED]),
    ("{p}/oc({p}/sup)", &[Pause(800), Send(Dlcx, DELETE_RELEASING), RELEASED]),
]);
/// Both ends seize.
const COLLIDES: Step =
    Either(&[("{p}/oc({p}/sup)", &[ANSWERED, Send(Dlcx, DELETE_RELEASING), Until("{p}/rlc")]), ("{p}/of({p}/sup)", YIELDED)]);
/// The far end stays off-hook. An immediate-start trunk has sent its digits before it can tell.
const IS_HELD: Step =
    Either(&[("{p}/of({p}/sup)", HELD), ("{p}/oc({p}/sup)", &[ANSWERED, Send(Dlcx, DELETE_RELEASING), HANGS_UP, RELEASED])]);

/// Both ends have seized, and the far end's call wins: it gives up soon.
const YIELDED: Script = &[Expect("{p}/rel(44)"), Either(&[("{p}/sup", &[Until("{p}/rel(0)"), Send(Dlcx, DELETE_COMPLETING)])])];
/// The far end does not give way.
const HELD: Script = &[Expect("{p}/rel(44)"), Send(Dlcx, DELETE_RELEASING), Pause(1_000), HANGS_UP, Until("{p}/rlc")];
/// Both ends mean it: which of them wins is a question of provisioning and of milliseconds; the trunk must be free afterwards.
const GLARE: Step = Either(&[LOSES, WINS]);
const LOSES: (&str, Script) =
    ("{p}/of({p}/sup)", &[Expect("{p}/rel(44)"), Pause(500), HANGS_UP, Send(Dlcx, DELETE_RELEASING), Until("{p}/rlc"), Pause(300), Forget]);
const WINS: (&str, Script) =
    ("{p}/oc({p}/sup)", &[Pause(500), HANGS_UP, Pause(500), Send(Dlcx, DELETE_RELEASING), Until("{p}/rlc"), Pause(300), Forget]);
/// The trunk was seized before: the call comes in instead.
const MEETS: Script = &[SEIZED, Send(Rqnt, RELEASE), HANGS_UP, Until("{p}/rlc"), Send(Dlcx, DELETE)];
/// A wink on an idle trunk is a short call.
const BLIP: Script = &[WELL, Send(Rqnt, "X: {x}\nQ: loop\nR: {p}/sup(N), {p}/rel(N)\n"), Far("wink"), SEIZED, ENDED, Send(Rqnt, COMPLETE)];

/// Numbers that come in: in MF, and as keys or pulses.
const MF_SEIZES: Step = Far("seize k0,5,5,5,{n},s0");
const MF_NUMBER: Step = Expect("{p}/inf(k0,5,5,5,{n},s0)");
const KEYS_SEIZE: Step = Far("seize 555{d}");
const KEYS_NUMBER: Step = Step::Digits("555{d}");
