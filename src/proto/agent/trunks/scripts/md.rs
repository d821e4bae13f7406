//! Feature Group D: MD. EANA has the identity and the address, EAIN asks for more after the country code (RFC 3064 5.3).

use super::*;

const EVENTS: &str = "X: {x}\nQ: loop\nR: {p}/swk(N), {p}/oc(N), {p}/of(N), {p}/rel(N), {p}/ans(N), {p}/awk(N)\n";
const EANA: Step = Step::SendAll(Rqnt, &[EVENTS, "S: {p}/sup(ct(nda),id(k0,8,1,5,{n},s0),addr(k0,5,5,5,{n},s0))\n"]);
const EAIN: Step = Step::SendAll(Rqnt, &[EVENTS, "S: {p}/sup(addr(k0,5,5,5,{n},s0), ct(nta), ca(k0,1,3,8,s0), id(k0,8,1,5,{n},s0))\n"]);
const ARM: Step = Send(Rqnt, "X: {x}\nQ: loop\nR: {p}/sup(N), {p}/inf(N), {p}/rel(N)\n");
const ACKNOWLEDGE: Step = Send(Rqnt, "X: {x}\nQ: loop\nS: {p}/awk\nR: {p}/inf(N), {p}/rel(N)\n");
const SEIZE: Step = Far("seize k0,8,1,5,{n},s0,k0,5,5,5,{n},s0");
const IDENTITY: Step = Expect("{p}/inf(k0,8,1,5,{n},s0)");
const ALL_TAKEN: Step = Expect("{p}/awk");

const COMES_UP: Script = &[WINKED, SENT, ALL_TAKEN, ANSWERED, CONNECTS, Hold];
/// A call out is up.
const OUT: Script = joined![&[WELL, CREATES, EANA], COMES_UP];
/// A call comes in, and all of its digits.
const IN: Script = &[WELL, ARM, SEIZE, SEIZED, IDENTITY, MF_NUMBER, ACKNOWLEDGE];

pub(in super::super) const CALLS: &[Call] = &[
    call("out", 4, joined![OUT, RELEASES]),
    call("out-international", 2, joined![&[WELL, CREATES, EAIN], COMES_UP, RELEASES_AT_ONCE]),
    call(
        "out-overlap",
        1,
        joined![
            &[
                WELL,
                CREATES,
                Step::SendAll(Rqnt, &[EVENTS, "S: {p}/sup(ct(nda),id(k0,8,1,5,{n},s0))\n"]),
                WINKED,
                SENT,
                Send(Rqnt, "X: {x}\nQ: loop\nR: {p}/oc(N), {p}/of(N), {p}/rel(N), {p}/ans(N), {p}/awk(N)\nS: {p}/inf(k0,5,5,5,{n},s0)\n"),
                Until("{p}/oc({p}/inf)"),
                Until("{p}/ans"),
                CONNECTS,
                Hold
            ],
            RELEASES_AT_ONCE
        ],
    ),
    call("out-called-first", 1, joined![OUT, CALLED_FIRST]),
    call("in", 4, joined![IN, TAKEN, FAR_END_RELEASES]),
    call(
        "in-international",
        2,
        joined![
            &[
                WELL,
                ARM,
                Far("seize k0,1,3,8,s0"),
                SEIZED,
                Expect("{p}/inf(k0,1,3,8,s0)"),
                Send(Rqnt, "X: {x}\nQ: loop\nR: {p}/inf(N), {p}/rel(N)\nS: {p}/cwk\n"),
                Pause(250),
                Far("digits k0,8,1,5,{n},s0,k0,5,5,5,{n},s0"),
                IDENTITY,
                MF_NUMBER,
                ACKNOWLEDGE
            ],
            TAKEN,
            FAR_END_RELEASES
        ],
    ),
    call("in-released", 1, joined![IN, &[ACCEPTS, Pause(300), ANSWERS, Hold], RELEASES_AT_ONCE]),
    odd("out, no answer", 2, joined![&[Far("far no-answer"), CREATES, EANA, WINKED, SENT, ALL_TAKEN, Pause(800)], RELEASES]),
    odd("out, no wink", 2, joined![&[Far("far silent"), CREATES, EANA], FAILS]),
    odd("out, held off-hook", 2, joined![&[Far("far holds"), CREATES, EANA, Expect("{p}/of({p}/sup)")], HELD]),
    odd("out, never on-hook", 2, joined![&[Far("far hangs"), CREATES, EANA], COMES_UP, RELEASES_LATE]),
    // It may have winked before it seizes.
    odd("out, glare", 2, &[WELL, CREATES, EANA, SEIZE, Either(&[("{p}/swk", &[GLARE]), LOSES, WINS])]),
    odd(
        "in, abandoned",
        2,
        &[
            WELL,
            ARM,
            SEIZE,
            SEIZED,
            HANGS_UP,
            Either(&[("{p}/rel(0)", &[Send(Rqnt, COMPLETE)]), ("{p}/inf(k0,8,1,5,{n},s0)", &[Until("{p}/rel(0)"), Send(Rqnt, COMPLETE)])]),
        ],
    ),
    odd("in, no digits", 1, joined![&[WELL, ARM, Far("seize"), SEIZED, Expect("{p}/rel(111)")], GIVES_BACK]),
    odd("in, too few digits", 2, joined![&[WELL, ARM, Far("seize k0,5,5,5"), SEIZED, Expect("{p}/inf(k0,5,5,5)")], GIVES_BACK]),
    odd("in, a wink only", 2, BLIP),
];
