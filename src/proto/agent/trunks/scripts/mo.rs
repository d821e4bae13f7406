//! Operator services and emergency calls, outgoing only: MO; the operator ends the call (RFC 3064 5.4).

use super::*;

const SETUP: &str = "X: {x}\nQ: loop\nR: {p}/swk(N), {p}/oc(N), {p}/of(N), {p}/rel(N)\nS: {p}/sup(addr(k0,9,1,1,s2),id(k0,5,5,5,{n},s0))\n";
const CONNECT: &str = "C: {c}\nI: {i}\nM: sendrecv\nX: {x}\nQ: loop\nR: {p}/rel(N), {p}/orbk(N)\n{sdp}";

const SETS_UP: Script = &[CREATES, Send(Rqnt, SETUP)];
const COMES_UP: Script = &[WINKED, ANSWERED, SENT, Send(Mdcx, CONNECT), Hold];
/// A call is up.
const OUT: Script = joined![&[WELL], SETS_UP, COMES_UP];

pub(in super::super) const CALLS: &[Call] = &[
    call("out", 4, joined![OUT, FAR_END_RELEASES]),
    call(
        "out-caller-back",
        2,
        joined![
            OUT,
            &[
                Send(Rqnt, "X: {x}\nQ: loop\nS: {p}/sus\nR: {p}/rel(N)\n"),
                Pause(300),
                Send(Rqnt, "X: {x}\nQ: loop\nS: {p}/res\nR: {p}/rel(N)\n"),
                Hold
            ],
            FAR_END_RELEASES
        ],
    ),
    call("out-recalled", 1, joined![OUT, &[Send(Rqnt, "X: {x}\nQ: loop\nS: {p}/rcl\nR: {p}/rel(N)\n"), Pause(800)], FAR_END_RELEASES]),
    call("out-released", 1, joined![OUT, RELEASES_AT_ONCE]),
    odd("out, no wink", 2, joined![&[Far("far silent")], SETS_UP, FAILS]),
    odd("out, no answer", 2, joined![&[Far("far no-answer")], SETS_UP, &[WINKED], FAILS]),
    odd("out, held off-hook", 2, joined![&[Far("far holds")], SETS_UP, &[Expect("{p}/of({p}/sup)")], HELD]),
    odd("out, never on-hook", 2, joined![&[Far("far hangs")], SETS_UP, COMES_UP, RELEASES_LATE]),
    odd(
        "out, make busy",
        2,
        &[
            Far("far manual"),
            Send(Rqnt, "X: {x}\nQ: loop\nR: {p}/rbz(N)\n"),
            Far("answer"),
            Expect("{p}/rbz"),
            Try(Rqnt, SETUP, &[(401, &[HANGS_UP, RELEASED])]),
        ],
    ),
];
