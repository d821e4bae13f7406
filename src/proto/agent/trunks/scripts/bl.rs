//! Lines of a PBX: BL (RFC 3064 5.1).

use super::*;

const RING: &str = "X: {x}\nQ: loop\nR: {p}/hd(N), {p}/oc(N)\nS: {p}/rg, {p}/rt@{i}\n";
const CREATE: &str = "C: {c}\nL: p:20, a:PCMU\nM: sendrecv\n{sdp}";
const DIAL: &str = "X: {x}\nQ: loop\nR: {p}/hu(N), D/[0-9](D)\nD: xxxxxxx\nS: {p}/dl\n";
const UP: &str = "X: {x}\nQ: loop\nR: {p}/hu(N), {p}/hf(N)\n";
const DELETE: &str = "C: {c}\nI: {i}\nX: {x}\nQ: loop\nR: {p}/hd(N)\n";
const LIFTED: Step = Expect("{p}/hd");
const LAID_DOWN: Step = Expect("{p}/hu");

pub(in super::super) const CALLS: &[Call] = &[
    call(
        "to the line",
        4,
        &[WELL, Send(Crcx, CREATE), Send(Rqnt, RING), LIFTED, Send(Rqnt, UP), Hold, HANGS_UP, LAID_DOWN, Send(Dlcx, DELETE)],
    ),
    call(
        "to the line, left last",
        2,
        &[
            WELL,
            Send(Crcx, CREATE),
            Send(Rqnt, RING),
            LIFTED,
            Send(Rqnt, UP),
            Hold,
            // The other party is gone: dial tone until the line is on-hook (E6).
            Send(Rqnt, "X: {x}\nQ: loop\nS: {p}/dl\nR: {p}/hu(N)\n"),
            Pause(300),
            HANGS_UP,
            LAID_DOWN,
            Send(Dlcx, DELETE),
        ],
    ),
    call(
        "from the line",
        4,
        &[
            WELL,
            Send(Rqnt, "X: {x}\nQ: loop\nR: {p}/hd(N)\n"),
            KEYS_SEIZE,
            LIFTED,
            Send(Rqnt, DIAL),
            KEYS_NUMBER,
            Send(Crcx, CREATE),
            Send(Rqnt, UP),
            Hold,
            HANGS_UP,
            LAID_DOWN,
            Send(Dlcx, DELETE),
        ],
    ),
    call(
        "from the line, flash",
        1,
        &[
            WELL,
            Send(Rqnt, "X: {x}\nR: {p}/hd(E(R({p}/hu(N),D/[0-9](D)),S({p}/dl),D(xxxxxxx)))\n"),
            KEYS_SEIZE,
            KEYS_NUMBER,
            Send(Crcx, CREATE),
            Send(Rqnt, UP),
            Hold,
            Far("flash"),
            Expect("{p}/hf"),
            HANGS_UP,
            LAID_DOWN,
            Send(Dlcx, DELETE),
        ],
    ),
    odd(
        "to the line, no answer",
        2,
        &[Far("far no-answer"), Send(Crcx, CREATE), Send(Rqnt, RING), Pause(900), Send(Rqnt, "X: {x}\nQ: loop\n"), Send(Dlcx, DELETE)],
    ),
    odd(
        "to the line, lifted before",
        2,
        &[
            WELL,
            Send(Crcx, CREATE),
            Far("answer"),
            Try(Rqnt, RING, &[(401, &[LIFTED, HANGS_UP, LAID_DOWN, Send(Dlcx, DELETE)])]),
            LIFTED,
            HANGS_UP,
            LAID_DOWN,
            Send(Dlcx, DELETE),
        ],
    ),
    odd(
        "from the line, no digits",
        2,
        &[
            WELL,
            Send(Rqnt, "X: {x}\nQ: loop\nR: {p}/hd(N)\n"),
            Far("seize"),
            LIFTED,
            Send(Rqnt, DIAL),
            Pause(900),
            HANGS_UP,
            LAID_DOWN,
            Send(Rqnt, "X: {x}\nQ: loop\n"),
        ],
    ),
    odd(
        "from the line, never on-hook",
        2,
        &[
            WELL,
            Send(Rqnt, "X: {x}\nQ: loop\nR: {p}/hd(N)\n"),
            KEYS_SEIZE,
            LIFTED,
            Send(Rqnt, DIAL),
            KEYS_NUMBER,
            Send(Crcx, CREATE),
            // Nobody is left; the line stays off-hook after dial tone and reorder.
            Send(Dlcx, "C: {c}\nI: {i}\nX: {x}\nQ: loop\nS: {p}/dl\nR: {p}/hu(N), {p}/oc(N)\n"),
            Pause(500),
            Send(Rqnt, "X: {x}\nQ: loop\nS: {p}/ro\nR: {p}/hu(N), {p}/oc(N)\n"),
            Pause(1_000),
            HANGS_UP,
            LAID_DOWN,
        ],
    ),
    odd("from the line, a short one", 2, &[WELL, Send(Rqnt, "X: {x}\nQ: loop\nR: {p}/hd(N)\n"), Far("wink"), LIFTED, LAID_DOWN]),
];
