//! Continuity tests before a call, on a channel that is signalled elsewhere: T (RFC 3660 2.3).

use super::*;

const LOOP: &str = "X: {x}\nR: {p}/co1(N), {p}/oc(N), {p}/of(N)\nS: {p}/co1\n";
const PAIR: &str = "X: {x}\nR: {p}/co1(N), {p}/oc(N), {p}/of(N)\nS: {p}/co2(to=2000)\n";

pub(in super::super) const CALLS: &[Call] = &[
    call(
        "loop",
        4,
        &[
            Far("echo loop"),
            Send(Rqnt, LOOP),
            Expect("{p}/co1"),
            CREATES,
            Send(Mdcx, "C: {c}\nI: {i}\nM: sendrecv\n{sdp}"),
            Hold,
            Send(Dlcx, "C: {c}\nI: {i}\n"),
        ],
    ),
    call(
        "transponder",
        2,
        &[
            Far("echo transponder"),
            Send(Crcx, "C: {c}\nM: recvonly\nX: {x}\nR: {p}/co1(N), {p}/oc(N), {p}/of(N)\nS: {p}/co2(to=2000)\n"),
            Expect("{p}/co1"),
            Hold,
            Send(Dlcx, "C: {c}\nI: {i}\n"),
        ],
    ),
    call(
        "far end, loopback",
        2,
        &[
            Send(Crcx, "C: {c}\nM: loopback\n"),
            Pause(200),
            Send(Mdcx, "C: {c}\nI: {i}\nM: sendrecv\n{sdp}"),
            Hold,
            Send(Dlcx, "C: {c}\nI: {i}\n"),
        ],
    ),
    call(
        "far end, lb and ct",
        2,
        &[
            Send(Rqnt, "X: {x}\nS: {p}/lb(+)\n"),
            Pause(200),
            Send(Rqnt, "X: {x}\nS: {p}/lb(-)\n"),
            Send(Rqnt, "X: {x}\nS: {p}/ct(in=co2,out=co1,+)\n"),
            Pause(200),
            Send(Rqnt, "X: {x}\nS: {p}/ct(in=co2,out=co1,-)\n"),
        ],
    ),
    odd("open circuit", 2, &[Far("echo open"), Send(Rqnt, PAIR), Expect("{p}/oc({p}/co2)")]),
    // What these hear of the far end's tone behind their outcome would be in quarantine when the next test asks: they wait for its end (a far
    // end whose tone stays takes it off at last), and a request for nothing discards it.
    odd("tone that stays", 2, &[Far("echo stuck"), Send(Rqnt, LOOP), Expect("{p}/of({p}/co1)"), Pause(2_000), Send(Rqnt, "X: {x}\n")]),
    odd(
        "wrong tone",
        2,
        &[
            Far("echo loop"),
            Send(Rqnt, PAIR),
            Either(&[("{p}/of({p}/co2)", &[]), ("{p}/oc({p}/co2)", &[])]),
            Pause(500),
            Send(Rqnt, "X: {x}\n"),
        ],
    ),
    odd("given up", 1, &[Far("echo open"), Send(Rqnt, LOOP), Pause(500), Send(Rqnt, "X: {x}\n"), Pause(200)]),
];
