//! What a script is made of, and how its texts become those of a call.

use crate::proto::base::HexId;
use crate::proto::codec::mgcp::Verb;

/// The steps of a call, in order.
pub(super) type Script = &'static [Step];

/// One step.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// Orders something of the far end, in the words of `tollgate sim`, and waits until it is done.
    Far(&'static str),
    /// Sends a command with these parameters, whose response must be 2xx.
    Send(Verb, &'static str),
    /// The same with parameters in parts.
    SendAll(Verb, &'static [&'static str]),
    /// Sends a command; with one of these codes the call goes on otherwise, with 2xx it just goes on.
    Try(Verb, &'static str, &'static [(u16, Script)]),
    /// Waits for this event; any other one is wrong.
    Expect(&'static str),
    /// Waits for one of these events and goes on as it says.
    Either(&'static [(&'static str, Script)]),
    /// Waits for these digits, each an event of package D.
    Digits(&'static str),
    /// Waits for this event and passes over others.
    Until(&'static str),
    /// Passes over events that have come.
    Forget,
    /// Holds the call.
    Hold,
    /// Waits so many milliseconds; events wait for a later step.
    Pause(u64),
    /// Audits that nothing is up and the line is idle.
    Idle,
}

/// A kind of call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    /// Its name in reports.
    pub name: &'static str,
    /// Whether the far end misbehaves.
    pub odd: bool,
    /// How often it is made, compared with others that are (or are not) odd.
    pub weight: u32,
    /// What happens.
    pub script: Script,
}

/// What the names in a text stand for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Values {
    /// The package of the trunk.
    pub package: &'static str,
    /// The call.
    pub call: HexId,
    /// Its connection.
    pub connection: HexId,
    /// The request in force.
    pub request: u32,
    /// Digits of the call.
    pub digits: [u8; 4],
}

/// A session description of the other side of the call.
const DESCRIPTION: &str = "\nv=0\no=- 1 1 IN IP4 192.0.2.10\ns=-\nc=IN IP4 192.0.2.10\nt=0 0\nm=audio 10000 RTP/AVP 0\na=ptime:20\n";

impl Values {
    /// `text` with everything filled in, and lines ended as MGCP does.
    pub fn fill(&self, text: &str) -> String {
        let mut out = String::with_capacity(2 * text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            push_lines(&mut out, before);
            let Some((name, behind)) = after.split_once('}') else { break };
            rest = behind;
            match name {
                "p" => out.push_str(self.package),
                "c" => push_id(&mut out, self.call),
                "i" => push_id(&mut out, self.connection),
                "x" => push_id(&mut out, HexId::from_u64(self.request.into(), 8)),
                "n" => {
                    for (place, digit) in self.digits.iter().enumerate() {
                        out.push_str(if place > 0 { "," } else { "" });
                        out.push(char::from(*digit));
                    }
                }
                "d" => out.extend(self.digits.iter().map(|digit| char::from(*digit))),
                "sdp" => push_lines(&mut out, DESCRIPTION),
                _ => debug_assert!(false, "no such name: {name}"),
            }
        }
        push_lines(&mut out, rest);
        out
    }
}

fn push_lines(out: &mut String, text: &str) {
    for piece in text.split_inclusive('\n') {
        match piece.strip_suffix('\n') {
            Some(line) => {
                out.push_str(line);
                out.push_str("\r\n");
            }
            None => out.push_str(piece),
        }
    }
}

fn push_id(out: &mut String, id: HexId) {
    let mut room = [0; HexId::MAX];
    out.extend(id.text(&mut room).iter().map(|byte| char::from(*byte)));
}

#[cfg(test)]
mod tests {
    use super::super::Kind;
    use super::*;

    #[test]
    fn texts_are_filled_in() {
        let values = Values { package: "MS", call: HexId::from_u64(0xA1, 2), connection: HexId::NONE, request: 0x2B, digits: *b"1234" };
        assert_eq!(
            values.fill("C: {c}\nS: {p}/sup(addr({n},s0))\nX: {x}\nI: {i}"),
            "C: A1\r\nS: MS/sup(addr(1,2,3,4,s0))\r\nX: 0000002B\r\nI: "
        );
        assert_eq!(values.fill("seize 555{d}"), "seize 5551234");
        assert!(values.fill("{sdp}").starts_with("\r\nv=0\r\n"));
    }

    /// Every script has orderly calls and odd ones, with names of their own, and no text with a name nobody knows.
    #[test]
    fn every_kind_of_trunk_has_its_calls() {
        fn check(script: Script, values: &Values) {
            for step in script {
                match step {
                    Step::Far(text) | Step::Send(_, text) | Step::Expect(text) | Step::Digits(text) | Step::Until(text) => {
                        values.fill(text);
                    }
                    Step::SendAll(_, texts) => texts.iter().for_each(|text| drop(values.fill(text))),
                    Step::Try(_, text, others) => {
                        values.fill(text);
                        others.iter().for_each(|(_, script)| check(script, values));
                    }
                    Step::Either(events) => events.iter().for_each(|(text, script)| {
                        values.fill(text);
                        check(script, values);
                    }),
                    Step::Forget | Step::Hold | Step::Pause(_) | Step::Idle => {}
                }
            }
        }
        for kind in Kind::ALL {
            let calls = kind.calls();
            for odd in [true, false] {
                assert!(calls.iter().any(|call| call.odd == odd && call.weight > 0), "{kind:?}");
            }
            let names: std::collections::BTreeSet<_> = calls.iter().map(|call| call.name).collect();
            assert_eq!(names.len(), calls.len(), "{kind:?}");
            let values = Values { package: kind.package(), call: HexId::NONE, connection: HexId::NONE, request: 0, digits: *b"0000" };
            calls.iter().for_each(|call| check(call.script, &values));
        }
    }
}
