//! Trunks with MF digits in one stage: MS (RFC 3064 5.1).

use super::*;

const SETUP: &str = "X: {x}\nQ: loop\nR: {p}/oc(N), {p}/of(N), {p}/rel(N), {p}/ans(N)\nS: {p}/sup(addr(k0,5,5,5,{n},s0))\n";
const SETUP_STEP: &str =
    "C: {c}\nL: p:20, a:PCMU\nM: recvonly\nX: {x}\nR: {p}/oc(N), {p}/of(N), {p}/rel(N)\nS: {p}/sup(addr(k0,5,5,5,{n},s0))\n";
const ARM: Step = Send(Rqnt, "X: {x}\nQ: loop\nR: {p}/sup(N), {p}/inf(N), {p}/rel(N)\n");
/// The digits may come before the next request does (RFC 3435 4.4.1).
const ARM_STEP: Step = Send(Rqnt, "X: {x}\nR: {p}/sup(N)\nT: {p}/sup, {p}/inf\n");
const ARM_EMBEDDED: Step = Send(Rqnt, "X: {x}\nR: {p}/sup(E(R({p}/inf(N),{p}/rel(N))))\n");

const SETS_UP: Script = &[CREATES, Send(Rqnt, SETUP)];
/// A call out is up.
const OUT: Script = joined![&[WELL], SETS_UP, &[SENT, ANSWERED, CONNECTS, Hold]];
/// A call comes in.
const IN: Script = &[WELL, ARM, MF_SEIZES, SEIZED];

pub(in super::super) const CALLS: &[Call] = &[
    call("out", 4, joined![OUT, RELEASES]),
    call(
        "out-step",
        2,
        joined![
            &[WELL, Send(Crcx, SETUP_STEP), SENT, Send(Rqnt, "X: {x}\nR: {p}/ans(N), {p}/rel(N)\n"), ANSWERED, CONNECTS, Hold],
            RELEASES_AT_ONCE
        ],
    ),
    call("out-called-first", 2, joined![OUT, CALLED_FIRST]),
    call("out-suspended", 1, joined![OUT, &[HANGS_UP, SUSPENDED, Far("answer"), Expect("{p}/res"), Hold], RELEASES]),
    call("in", 4, joined![IN, &[MF_NUMBER], TAKEN, FAR_END_RELEASES]),
    call(
        "in-step",
        2,
        joined![
            &[WELL, ARM_STEP, MF_SEIZES, SEIZED, Send(Rqnt, "X: {x}\nR: {p}/inf(N), {p}/rel(N)\n"), MF_NUMBER],
            TAKEN,
            FAR_END_RELEASES
        ],
    ),
    call("in-embedded", 2, joined![&[WELL, ARM_EMBEDDED, MF_SEIZES, MF_NUMBER], TAKEN, FAR_END_RELEASES]),
    call("in-called-first", 1, joined![IN, &[MF_NUMBER, ACCEPTS, ANSWERS, Hold, Send(Rqnt, SUSPEND)], FAR_END_RELEASES]),
    call("in-released", 1, joined![IN, &[MF_NUMBER, ACCEPTS, ANSWERS, Hold], RELEASES_AT_ONCE]),
    odd("out, no answer", 2, joined![&[Far("far no-answer")], SETS_UP, &[SENT, Pause(800)], RELEASES]),
    odd("out, no wink", 2, joined![&[Far("far silent")], SETS_UP, &[NO_WINK_OR_NONE_NEEDED]]),
    odd("out, both seize", 2, joined![&[Far("far collides")], SETS_UP, &[COLLIDES]]),
    odd("out, held off-hook", 2, joined![&[Far("far holds")], SETS_UP, &[IS_HELD]]),
    odd("out, never on-hook", 2, joined![&[Far("far hangs")], SETS_UP, &[SENT, ANSWERED, CONNECTS, Hold], RELEASES_LATE]),
    odd("out, glare", 2, joined![&[WELL], SETS_UP, &[MF_SEIZES, GLARE]]),
    odd("out, seized before", 1, &[WELL, CREATES, MF_SEIZES, Try(Rqnt, SETUP, &[(401, MEETS), (400, MEETS)]), GLARE]),
    odd(
        "in, abandoned",
        2,
        joined![
            IN,
            &[HANGS_UP, Either(&[("{p}/rel(0)", &[Send(Rqnt, COMPLETE)]), ("{p}/inf(k0,5,5,5,{n},s0)", &[ENDED, Send(Rqnt, COMPLETE)])])]
        ],
    ),
    odd("in, no digits", 1, joined![&[WELL, ARM, Far("seize"), SEIZED, Expect("{p}/rel(111)")], GIVES_BACK]),
    odd("in, too few digits", 2, joined![&[WELL, ARM, Far("seize k0,5,5,5"), SEIZED, Expect("{p}/inf(k0,5,5,5)")], GIVES_BACK]),
    odd("in, never on-hook", 2, joined![&[Far("far hangs"), ARM, MF_SEIZES, SEIZED, MF_NUMBER, ACCEPTS, ANSWERS, Hold], RELEASES_LATE]),
    odd("in, a wink only", 2, BLIP),
];
