//! A response as the sender of a command reads it (RFC 3435 3.3). Unknown and forbidden parameters are ignored (G-PAR-05).

use super::code::{Code, CodeSet};
use super::command::{Parameters, descriptions};
use super::header::{HeaderLine, ResponseLine, header_line};
use super::name::{EndpointName, NotifiedEntity};
use super::refusal::{Fault, Refusal};
use super::value::{ConnectionParameters, ReasonCode, effective_code, package_and_text};
use crate::proto::base::{HexId, TransactionId};
use crate::proto::codec::scan::Items;

/// A response whose first line is right.
#[derive(Clone, Debug)]
pub struct Response<'a> {
    /// The response code, 0..=999.
    pub code: u16,
    /// The command it answers.
    pub id: TransactionId,
    /// The package that defines an 8xx code.
    pub package: Option<&'a [u8]>,
    /// The commentary; may be empty.
    pub text: &'a [u8],
    /// The session descriptions: local, then remote (G-AUC-04).
    pub descriptions: [Option<&'a [u8]>; 2],
    parameters: Parameters<'a>,
    message: &'a [u8],
    header_at: usize,
}

impl<'a> Response<'a> {
    /// Reads one message of a datagram that begins with three digits.
    pub fn parse(message: &'a [u8]) -> Result<Response<'a>, Refusal> {
        let line = ResponseLine::parse(message).ok_or(Refusal::new(Fault::ResponseLine, 0))?;
        if message.len() > usize::from(u16::MAX) {
            return Err(Refusal::new(Fault::MessageTooLong, usize::from(u16::MAX)));
        }
        let (package, text) = package_and_text(line.code, line.rest);
        let mut response = Response {
            code: line.code,
            id: line.id,
            package,
            text,
            descriptions: [None; 2],
            parameters: Parameters::new(message),
            message,
            header_at: line.next,
        };
        let mut at = line.next;
        while at < message.len() {
            let (line, next) = header_line(message, at);
            match line {
                HeaderLine::Parameter { code: Some(code), value_at, value_end, .. } if !response.parameters.present().has(code) => {
                    response.parameters.insert(code, value_at, value_end);
                }
                HeaderLine::Blank => {
                    response.descriptions = descriptions(message, next);
                    break;
                }
                _ => {}
            }
            at = next;
        }
        Ok(response)
    }

    /// The code with unknown ones mapped to their class (G-RSL-04).
    pub fn effective_code(&self) -> u16 {
        effective_code(self.code)
    }

    /// Whether another response follows.
    pub fn is_provisional(&self) -> bool {
        (100..=199).contains(&self.code)
    }

    /// The first value of `code` as written; `None` when the response does not carry it.
    pub fn get(&self, code: Code) -> Option<&'a [u8]> {
        self.parameters.get(code)
    }

    /// Which codes the response carries.
    pub fn codes(&self) -> CodeSet {
        self.parameters.present()
    }

    /// Every value of `code`, in order: several lines are legal for `Z`, `A` and `I` in audits.
    pub fn values(&self, code: Code) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let message = self.message;
        let mut at = if self.parameters.present().has(code) { self.header_at } else { message.len() };
        std::iter::from_fn(move || {
            while at < message.len() {
                let (line, next) = header_line(message, at);
                at = next;
                match line {
                    HeaderLine::Parameter { code: Some(found), value_at, value_end, .. } if found == code => {
                        return message.get(value_at..value_end);
                    }
                    HeaderLine::Blank => at = message.len(),
                    _ => {}
                }
            }
            None
        })
    }

    /// `I:`, the connection; `None` when absent, empty, malformed or a list.
    pub fn connection(&self) -> Option<HexId> {
        HexId::parse(self.get(Code::I)?)
    }

    /// Every connection of `I:`, in one line or several.
    pub fn connections(&self) -> impl Iterator<Item = HexId> + use<'a> {
        self.values(Code::I).flat_map(|value| Items::new(value, b',')).filter_map(HexId::parse)
    }

    /// `I2:`, the second connection.
    pub fn second_connection(&self) -> Option<HexId> {
        HexId::parse(self.get(Code::I2)?)
    }

    /// `Z:`, the endpoints: the one chosen for `$`, or all that an audit found.
    pub fn endpoints(&self) -> impl Iterator<Item = EndpointName<'a>> + use<'a> {
        self.values(Code::Z).filter_map(|value| EndpointName::parse(value).ok())
    }

    /// `Z2:`, the second endpoint.
    pub fn second_endpoint(&self) -> Option<EndpointName<'a>> {
        EndpointName::parse(self.get(Code::Z2)?).ok()
    }

    /// `N:`, the notified entity to go to instead (G-NET-12).
    pub fn notified_entity(&self) -> Option<NotifiedEntity<'a>> {
        NotifiedEntity::parse(self.get(Code::N)?)
    }

    /// Whether `K:` asks for a `000` (G-ACK).
    pub fn asks_confirmation(&self) -> bool {
        self.parameters.present().has(Code::K)
    }

    /// `P:`, the counters of a connection.
    pub fn connection_parameters(&self) -> Option<ConnectionParameters> {
        ConnectionParameters::parse(self.get(Code::P)?)
    }

    /// `E:`, the reason code of an audited endpoint.
    pub fn reason(&self) -> Option<ReasonCode<'a>> {
        ReasonCode::parse(self.get(Code::E)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Response<'_> {
        Response::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn empty_commentary_is_fine() {
        // Field bug O07
        for text in ["200 1234", "200 1234 ", "200 1234\r\n", "200\t1234 \r\n\r\n"] {
            let response = parse(text);
            assert_eq!((response.code, response.id, response.text, response.package), (200, 1234, &b""[..], None), "{text:?}");
        }
    }

    #[test]
    fn packages_stand_before_the_text() {
        let response = parse("801 5 /BA no such list");
        assert_eq!((response.package, response.text), (Some(&b"BA"[..]), &b"no such list"[..]));
        assert_eq!(parse("510 5 /BA x").package, None);
    }

    #[test]
    fn unknown_and_repeated_parameters_do_no_harm() {
        // G-PAR-05
        let response = parse("200 5 OK\r\nI: 5\r\nZZ: 1\r\nI: 6\r\nnonsense\r\n folded\r\nzz/y: 1\r\nK:\r\n");
        assert_eq!(response.connection(), HexId::parse(b"5"));
        assert!(response.asks_confirmation());
        assert_eq!(response.connections().count(), 2);
    }

    #[test]
    fn audits() {
        let response = parse("200 5\nZ: a/1@gw\nz: a/2@gw\nI: A, B\nA: a:PCMU\nA: a:G729\nP: PS=1\nE: 900 x\nN: ca@x:1\nI2: C\nZ2: b@gw\n");
        assert_eq!(response.endpoints().map(|name| name.local).collect::<Vec<_>>(), [b"a/1", b"a/2"]);
        assert_eq!(response.connections().count(), 2);
        assert_eq!(response.connection(), None);
        assert_eq!(response.values(Code::A).count(), 2);
        assert_eq!(response.values(Code::PL).count(), 0);
        assert_eq!(response.connection_parameters().unwrap().packets_sent, Some(1));
        assert_eq!((response.reason().unwrap().code, response.notified_entity().unwrap().port), (900, 1));
        assert_eq!(response.second_connection(), HexId::parse(b"C"));
        assert_eq!(response.second_endpoint().unwrap().local, b"b");
    }

    #[test]
    fn two_descriptions() {
        // G-SYN-09, G-SDP-06
        let response = parse("200 5 OK\r\n\r\nv=0\r\nc=x\r\n\r\nv=0\r\n");
        assert_eq!(response.descriptions, [Some(&b"v=0\r\nc=x\r\n"[..]), Some(&b"v=0\r\n"[..])]);
        assert_eq!(parse("200 5\n\nv=0\n \nv=0").descriptions, [Some(&b"v=0\n"[..]), Some(&b"v=0"[..])]);
        assert_eq!(parse("200 5\n\n\n").descriptions, [None, None]);
    }
}
