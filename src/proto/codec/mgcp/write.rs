//! Writing messages: strict, into the caller's buffer (RFC 3435 3.1, 3.2, 3.3).
//!
//! Every line ends in CR LF, codes and verbs have their canonical spelling, words are one space apart. What does not fit sets a flag
//! instead of panicking, and [`Writer::finish`] then gives nothing: a message is sent whole or not at all.
//!
//! The order of parameters is the order of the calls; descriptions come last. Values are written as they are, so whoever passes text
//! on from outside passes on only what a parser has checked.

use super::code::{Code, Verb};
use super::digits::{OCTETS, ZEROS, digits, two_digits};
use super::value::{COUNTER_MAX, ConnectionParameters};
use crate::proto::base::{HexId, TransactionId};
use std::net::Ipv4Addr;
use std::ops::Range;

/// The longest commentary of a response, in bytes; what is longer is cut.
pub const TEXT_MAX: usize = 200;

/// Padded messages are a multiple of this long, in bytes: responses that differ in the digits of a number become equally long.
pub const PADDED_TO: usize = 16;

/// Puts blanks behind the first line of the message of `length` bytes at the start of `room`, so that it becomes a multiple of
/// [`PADDED_TO`] long: its new length. Unchanged without room for that, or without a line end.
pub fn pad_first_line(room: &mut [u8], length: usize) -> usize {
    let padded = length.next_multiple_of(PADDED_TO);
    let end = room.get(..length).and_then(|message| memchr::memmem::find(message, b"\r\n"));
    match (end, room.get_mut(..padded)) {
        (Some(end), Some(message)) => {
            message.copy_within(end..length, end + padded - length);
            message.iter_mut().skip(end).take(padded - length).for_each(|byte| *byte = b' ');
            padded
        }
        _ => length,
    }
}

/// Writes one datagram: one message, or several with [`Writer::separator`] between.
#[derive(Debug)]
pub struct Writer<'a> {
    buffer: &'a mut [u8],
    /// Bytes written; [`OVERFLOWED`], where there is no room for anything, once something is missing: nothing that follows may make the
    /// datagram look whole.
    length: usize,
}

/// A place beyond every buffer.
const OVERFLOWED: usize = usize::MAX / 2;

/// A place in a datagram to which [`Writer::rewind`] goes back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mark(usize);

impl<'a> Writer<'a> {
    /// Nothing written yet; the limit is the length of `buffer`.
    pub fn new(buffer: &'a mut [u8]) -> Writer<'a> {
        Writer { buffer, length: 0 }
    }

    /// The number of bytes written, or `None` when not everything fitted.
    pub fn finish(self) -> Option<usize> {
        (!self.overflowed()).then_some(self.length)
    }

    /// What was written so far; nothing when not everything fitted.
    pub fn written(&self) -> &[u8] {
        self.buffer.get(..self.length).unwrap_or_default()
    }

    /// Whether something did not fit.
    pub fn overflowed(&self) -> bool {
        self.length > self.buffer.len()
    }

    /// The present place.
    pub fn mark(&self) -> Mark {
        Mark(self.length)
    }

    /// Forgets everything written since `mark`, an overflow included.
    pub fn rewind(&mut self, mark: Mark) {
        self.length = mark.0.min(self.length);
    }

    /// Room for the next `length` bytes, which the caller fills.
    #[inline]
    fn room(&mut self, length: usize) -> Option<&mut [u8]> {
        let end = self.length + length;
        let room = self.buffer.get_mut(self.length..end);
        self.length = if room.is_some() { end } else { OVERFLOWED };
        room
    }

    /// Bytes as they are.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) {
        if let Some(room) = self.room(bytes.len()) {
            room.copy_from_slice(bytes);
        }
    }

    /// The bytes of this part of what was written, once more.
    pub fn again(&mut self, part: Range<usize>) {
        let start = self.length;
        if part.end <= start && self.room(part.len()).is_some() {
            self.buffer.copy_within(part, start);
        }
    }

    /// Text as it is.
    #[inline]
    pub fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    /// One byte.
    #[inline]
    pub fn byte(&mut self, byte: u8) {
        self.bytes(&[byte]);
    }

    /// A number in decimal, without leading zeros.
    #[inline]
    pub fn number(&mut self, value: u64) {
        const LOW: u64 = 100_000_000;
        match value {
            // Most numbers are this short: payload types, versions, octets, counters of a young call.
            0..10 => self.word(u64::from(b'0') + value, 1),
            10..100 => self.word(two_digits(value), 2),
            100..LOW => {
                let digits = digits(value);
                let zeros = (digits ^ ZEROS).trailing_zeros() / 8;
                self.word(digits >> (8 * zeros), 8 - zeros as usize);
            }
            LOW.. => {
                self.number(value / LOW);
                self.word(digits(value % LOW), 8);
            }
        }
    }

    /// The first `length` bytes, at most 8, of a word.
    #[inline]
    fn word(&mut self, text: u64, length: usize) {
        let text = text.to_le_bytes();
        match self.buffer.get_mut(self.length..).and_then(|rest| rest.first_chunk_mut()) {
            // What stands behind the text is written over, or not sent.
            Some(place) => {
                *place = text;
                self.length += length;
            }
            None => self.bytes(text.get(..length).unwrap_or_default()),
        }
    }

    /// An IPv4 address.
    pub fn ip4(&mut self, address: Ipv4Addr) {
        let [first @ .., last] = address.octets();
        for octet in first {
            let (text, digits) = OCTETS[usize::from(octet)];
            self.word(text.into(), usize::from(digits) + 1);
        }
        self.octet(last);
    }

    /// A number below 256 in decimal.
    #[inline]
    pub fn octet(&mut self, value: u8) {
        let (text, digits) = OCTETS[usize::from(value)];
        self.word(text.into(), digits.into());
    }

    /// A code of exactly three digits; 0..=999.
    #[inline]
    fn three_digits(&mut self, code: u16) {
        let (hundreds, rest) = (u64::from(code / 100 % 10), u64::from(code % 100));
        self.word((u64::from(b'0') + hundreds) | (two_digits(rest) << 8), 3);
    }

    /// An identifier, in upper case.
    pub fn hex_id(&mut self, id: HexId) {
        match id.short_text() {
            Some(text) => self.word(text, id.width()),
            None => id.write(self.room(id.width()).unwrap_or_default()),
        }
    }

    /// The end of a line.
    #[inline]
    pub fn end_line(&mut self) {
        self.bytes(b"\r\n");
    }

    /// The first line of a response. `package` only goes with 8xx codes; of `text`, what is not printable becomes `?`.
    pub fn response(&mut self, code: u16, id: TransactionId, package: Option<&[u8]>, text: &str) {
        self.three_digits(code);
        self.byte(b' ');
        self.number(u64::from(id));
        if let (800..=899, Some(package)) = (code, package) {
            self.bytes(b" /");
            self.bytes(package);
        }
        if !text.is_empty() {
            self.byte(b' ');
            self.printable(text.as_bytes());
        }
        self.end_line();
    }

    /// The first line of a command; `local` and `domain` are the halves of the endpoint name.
    pub fn command(&mut self, verb: Verb, id: TransactionId, local: &[u8], domain: &[u8]) {
        self.text(verb.name());
        self.byte(b' ');
        self.number(u64::from(id));
        self.byte(b' ');
        self.bytes(local);
        self.byte(b'@');
        self.bytes(domain);
        self.bytes(b" MGCP 1.0\r\n");
    }

    /// The same, with the name of a profile behind the version; empty for none.
    pub fn command_of(&mut self, verb: Verb, id: TransactionId, (local, domain): (&[u8], &[u8]), profile: &str) {
        self.command(verb, id, local, domain);
        if !profile.is_empty() {
            self.length = self.length.saturating_sub(b"\r\n".len());
            self.byte(b' ');
            self.text(profile);
            self.end_line();
        }
    }

    /// At most [`TEXT_MAX`] bytes, what is not printable as `?`.
    pub fn printable(&mut self, text: &[u8]) {
        let text = text.get(..TEXT_MAX).unwrap_or(text);
        for (to, &from) in self.room(text.len()).unwrap_or_default().iter_mut().zip(text) {
            *to = if (b' '..=b'~').contains(&from) { from } else { b'?' };
        }
    }

    /// Begins a parameter whose value is written piece by piece; [`Writer::end_line`] ends it.
    #[inline]
    pub fn begin(&mut self, code: Code) {
        self.text(code.name());
        self.bytes(b": ");
    }

    /// A parameter with this value; an empty one is `code:` alone.
    #[inline]
    pub fn parameter(&mut self, code: Code, value: &[u8]) {
        self.text(code.name());
        self.byte(b':');
        if !value.is_empty() {
            self.byte(b' ');
            self.bytes(value);
        }
        self.end_line();
    }

    /// A parameter whose value is a number.
    pub fn parameter_number(&mut self, code: Code, value: u64) {
        self.begin(code);
        self.number(value);
        self.end_line();
    }

    /// A parameter whose value is an identifier; empty for [`HexId::NONE`].
    pub fn parameter_hex_id(&mut self, code: Code, id: HexId) {
        if id.is_none() {
            return self.parameter(code, b"");
        }
        self.begin(code);
        self.hex_id(id);
        self.end_line();
    }

    /// A parameter whose value is an endpoint name.
    pub fn parameter_endpoint(&mut self, code: Code, local: &[u8], domain: &[u8]) {
        self.begin(code);
        self.bytes(local);
        self.byte(b'@');
        self.bytes(domain);
        self.end_line();
    }

    /// `E:`, a reason; `package` only goes with 8xx codes.
    pub fn parameter_reason(&mut self, code: u16, package: Option<&[u8]>, text: &str) {
        self.begin(Code::E);
        self.three_digits(code);
        if let (800..=899, Some(package)) = (code, package) {
            self.bytes(b" /");
            self.bytes(package);
        }
        if !text.is_empty() {
            self.byte(b' ');
            self.printable(text.as_bytes());
        }
        self.end_line();
    }

    /// `K:` with ranges of confirmed transactions; what is a range of one is written as a number (G-ACK).
    pub fn parameter_confirmed(&mut self, ranges: impl IntoIterator<Item = (TransactionId, TransactionId)>) {
        self.text("K:");
        for (n, (low, high)) in ranges.into_iter().enumerate() {
            self.text(if n == 0 { " " } else { ", " });
            self.number(u64::from(low));
            if high != low {
                self.byte(b'-');
                self.number(u64::from(high));
            }
        }
        self.end_line();
    }

    /// `P:` with the counters that are known, none beyond [`COUNTER_MAX`] (G-STA-01).
    pub fn parameter_counters(&mut self, counters: &ConnectionParameters) {
        let all = [
            (b", PS=\0\0\0", counters.packets_sent),
            (b", OS=\0\0\0", counters.octets_sent),
            (b", PR=\0\0\0", counters.packets_received),
            (b", OR=\0\0\0", counters.octets_received),
            (b", PL=\0\0\0", counters.packets_lost),
            (b", JI=\0\0\0", counters.jitter_ms),
            (b", LA=\0\0\0", counters.latency_ms),
        ];
        self.text("P:");
        // The first one needs no comma.
        let mut comma = 0;
        for (name, value) in all {
            if let Some(value) = value {
                let (name, length) = (u64::from_le_bytes(*name) >> (8 * (1 - comma)), 4 + comma);
                comma = 1;
                match u64::from(value.min(COUNTER_MAX)) {
                    digit @ 0..10 => self.word(name | (u64::from(b'0') + digit) << (8 * length), length + 1),
                    value => {
                        self.word(name, length);
                        self.number(value);
                    }
                }
            }
        }
        self.end_line();
    }

    /// A parameter of a package or a vendor: `name: value`.
    pub fn extension(&mut self, name: &[u8], value: &[u8]) {
        self.bytes(name);
        self.byte(b':');
        if !value.is_empty() {
            self.byte(b' ');
            self.bytes(value);
        }
        self.end_line();
    }

    /// The empty line before a session description.
    pub fn begin_description(&mut self) {
        self.end_line();
    }

    /// A session description somebody else wrote: every line ends in CRLF, empty ones are left out.
    pub fn description<'p>(&mut self, pieces: impl Iterator<Item = &'p [u8]>) {
        let mut in_line = false;
        for &byte in pieces.flatten() {
            match byte {
                b'\r' => {}
                b'\n' if in_line => {
                    self.end_line();
                    in_line = false;
                }
                b'\n' => {}
                byte => {
                    self.byte(byte);
                    in_line = true;
                }
            }
        }
        if in_line {
            self.end_line();
        }
    }

    /// The line between two messages of a datagram.
    pub fn separator(&mut self) {
        self.bytes(b".\r\n");
    }

    /// A value of an event parameter: quoted only where it must be (G-EVT-12).
    pub fn event_value(&mut self, value: &[u8]) {
        let plain = |b: u8| b.is_ascii_graphic() && !matches!(b, b'"' | b'(' | b')' | b',' | b'=');
        if !value.is_empty() && value.iter().all(|&b| plain(b)) {
            return self.bytes(value);
        }
        self.byte(b'"');
        for (n, part) in value.split(|&b| b == b'"').enumerate() {
            if n > 0 {
                self.bytes(b"\"\"");
            }
            self.bytes(part);
        }
        self.byte(b'"');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(write: impl FnOnce(&mut Writer<'_>)) -> String {
        let mut buffer = [0; 4000];
        let mut writer = Writer::new(&mut buffer);
        write(&mut writer);
        let length = writer.finish().unwrap();
        String::from_utf8(buffer[..length].to_vec()).unwrap()
    }

    #[test]
    fn a_padded_message_is_a_multiple_long_and_only_its_comment_grew() {
        for (message, padded) in [
            (&b"200 1207 OK\r\nI: 1\r\n"[..], Some(&b"200 1207 OK             \r\nI: 1\r\n"[..])),
            (b"250 1234567 OK\r\n", Some(b"250 1234567 OK\r\n")),
            (b"no line end", None),
        ] {
            let mut room = [b'x'; 64];
            room[..message.len()].copy_from_slice(message);
            let length = pad_first_line(&mut room, message.len());
            assert_eq!(&room[..length], padded.unwrap_or(message));
            // Without room it stays as it is.
            let mut tight = message.to_vec();
            assert_eq!((pad_first_line(&mut tight, message.len()), &tight[..]), (message.len(), message));
        }
    }

    #[test]
    fn first_lines() {
        assert_eq!(written(|w| w.response(200, 12, None, "OK")), "200 12 OK\r\n");
        assert_eq!(written(|w| w.response(0, 999_999_999, None, "")), "000 999999999\r\n");
        assert_eq!(written(|w| w.response(801, 5, Some(b"BA"), "no")), "801 5 /BA no\r\n");
        assert_eq!(written(|w| w.response(510, 5, Some(b"BA"), "a\r\nb\u{e9}")), "510 5 a??b??\r\n");
        assert_eq!(written(|w| w.command(Verb::Rsip, 7, b"ds/ds1-1/*", b"tgw")), "RSIP 7 ds/ds1-1/*@tgw MGCP 1.0\r\n");
        assert_eq!(written(|w| w.response(400, 5, None, &"x".repeat(1000))).len(), 8 + TEXT_MAX);
    }

    #[test]
    fn parameters() {
        assert_eq!(written(|w| w.parameter(Code::L, b"")), "L:\r\n");
        assert_eq!(written(|w| w.parameter(Code::BNs, b"ns")), "B/NS: ns\r\n");
        assert_eq!(written(|w| w.parameter_hex_id(Code::I, HexId::parse(b"ab").unwrap())), "I: AB\r\n");
        assert_eq!(written(|w| w.parameter_hex_id(Code::I, HexId::NONE)), "I:\r\n");
        assert_eq!(written(|w| w.parameter_confirmed([(1, 3), (7, 7)])), "K: 1-3, 7\r\n");
        assert_eq!(written(|w| w.parameter_confirmed([])), "K:\r\n");
        assert_eq!(written(|w| w.parameter_reason(0, None, "")), "E: 000\r\n");
        assert_eq!(written(|w| w.parameter_endpoint(Code::Z, b"a/1", b"gw")), "Z: a/1@gw\r\n");
        assert_eq!(written(|w| w.extension(b"X-a", b"")), "X-a:\r\n");
        let counters = ConnectionParameters { packets_sent: Some(1), jitter_ms: Some(u32::MAX), ..Default::default() };
        assert_eq!(written(|w| w.parameter_counters(&counters)), "P: PS=1, JI=999999999\r\n");
    }

    #[test]
    fn rewinding_forgets_an_overflow() {
        let mut buffer = [0; 8];
        let mut writer = Writer::new(&mut buffer);
        writer.text("1234");
        let mark = writer.mark();
        writer.text("56789");
        writer.text("x");
        assert!(writer.overflowed() && writer.written().is_empty());
        writer.rewind(mark);
        writer.text("5678");
        assert_eq!(writer.finish(), Some(8));
    }

    proptest! {
        #[test]
        fn what_does_not_fit_is_not_sent(size in 0usize..60) {
            let mut buffer = vec![0; size];
            let mut writer = Writer::new(&mut buffer);
            writer.response(200, 1234, None, "OK");
            writer.parameter(Code::I, b"ABCDEF");
            writer.begin_description();
            let whole = b"200 1234 OK\r\nI: ABCDEF\r\n\r\n";
            prop_assert_eq!(writer.finish(), (size >= whole.len()).then_some(whole.len()));
            prop_assert!(size < whole.len() || buffer.starts_with(whole));
        }

        #[test]
        fn numbers_agree_with_the_library(value: u64, shift in 0u32..64) {
            for value in [value, value >> shift, 10u64.pow(shift % 20), 10u64.pow(shift % 20) - 1] {
                prop_assert_eq!(written(|w| w.number(value)), value.to_string());
            }
            prop_assert_eq!(written(|w| w.octet(value as u8)), (value as u8).to_string());
        }
    }
}
