//! Trunks with DTMF digits or dial pulses: DT; what comes in is of package D (RFC 3064 5.1).

use super::*;

const SETUP: &str = "X: {x}\nQ: loop\nR: {p}/oc(N), {p}/of(N), {p}/rel(N), {p}/ans(N)\nS: {p}/sup(addr(5,5,5,{n}))\n";
const ARM: Step = Send(Rqnt, "X: {x}\nQ: loop\nR: {p}/sup(N), {p}/rel(N), D/[0-9](D)\nD: xxxxxxx\n");
/// The digits may begin before the next request comes (RFC 3435 4.4.1).
const ARM_STEP: Step = Send(Rqnt, "X: {x}\nR: {p}/sup(N)\nT: {p}/sup, D/[0-9]\n");
const ARM_EMBEDDED: Step = Send(Rqnt, "X: {x}\nR: {p}/sup(E(R({p}/rel(N),D/[0-9](D)),D(xxxxxxx)))\n");

const SETS_UP: Script = &[CREATES, Send(Rqnt, SETUP)];
/// A call out is up.
const OUT: Script = joined![&[WELL], SETS_UP, &[SENT, ANSWERED, CONNECTS, Hold]];
/// A call comes in.
const IN: Script = &[WELL, ARM, KEYS_SEIZE, SEIZED];

pub(in super::super) const CALLS: &[Call] = &[
    call("out", 4, joined![OUT, RELEASES]),
    call("out-called-first", 2, joined![OUT, CALLED_FIRST]),
    call("in", 4, joined![IN, &[KEYS_NUMBER], TAKEN, FAR_END_RELEASES]),
    call(
        "in-step",
        2,
        joined![
            &[WELL, ARM_STEP, KEYS_SEIZE, SEIZED, Send(Rqnt, "X: {x}\nR: {p}/rel(N), D/[0-9](D)\nD: xxxxxxx\n"), KEYS_NUMBER],
            TAKEN,
            FAR_END_RELEASES
        ],
    ),
    call("in-embedded", 2, joined![&[WELL, ARM_EMBEDDED, KEYS_SEIZE, KEYS_NUMBER], TAKEN, FAR_END_RELEASES]),
    call("in-released", 1, joined![IN, &[KEYS_NUMBER, ACCEPTS, ANSWERS, Hold], RELEASES_AT_ONCE]),
    odd("out, no answer", 2, joined![&[Far("far no-answer")], SETS_UP, &[SENT, Pause(800)], RELEASES]),
    odd("out, no wink", 2, joined![&[Far("far silent")], SETS_UP, &[NO_WINK_OR_NONE_NEEDED]]),
    odd("out, both seize", 2, joined![&[Far("far collides")], SETS_UP, &[COLLIDES]]),
    odd("out, held off-hook", 2, joined![&[Far("far holds")], SETS_UP, &[IS_HELD]]),
    odd("out, never on-hook", 2, joined![&[Far("far hangs")], SETS_UP, &[SENT, ANSWERED, CONNECTS, Hold], RELEASES_LATE]),
    odd("out, glare", 2, joined![&[WELL], SETS_UP, &[KEYS_SEIZE, GLARE]]),
    // Some of the digits may have come before it hangs up.
    odd("in, abandoned", 2, joined![IN, &[HANGS_UP, Until("{p}/rel(0)"), Send(Rqnt, COMPLETE)]]),
    odd("in, no digits", 1, joined![&[WELL, ARM, Far("seize"), SEIZED, Expect("{p}/rel(111)")], GIVES_BACK]),
    odd("in, never on-hook", 2, joined![&[Far("far hangs"), ARM, KEYS_SEIZE, SEIZED, KEYS_NUMBER, ACCEPTS, ANSWERS, Hold], RELEASES_LATE]),
    odd("in, a wink only", 2, BLIP),
];
