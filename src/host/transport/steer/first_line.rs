//! What the steering program reads: the first line of a datagram, position by position.

use super::Passing;
use super::assembly::*;

/// Blanks in a row that are read between the words of a first line.
const BLANKS_MAX: usize = 4;
/// Digits of a transaction identifier (RFC 3435 3.2.1.2).
const ID_DIGITS: u32 = 9;
/// The answer that leaves the choice to the kernel: no socket has this number.
pub const KERNEL: u32 = u32::MAX;

/// Where the network header begins, for loads (SKF_NET_OFF).
pub const NETWORK: u32 = -0x10_0000_i32 as u32;
/// In it: a word of the sender's address, and the ports behind a header without options.
pub const IPV4: (u32, u32) = (12, 20);
pub const IPV6: (u32, u32) = (20, 40);
/// 2^32 divided by the golden ratio, odd: neighbouring ports are spread.
const GOLDEN: u32 = 0x9e37_79b1;

/// Memory of the program: where the name starts (or the id ends), the number being read, what the name goes by, a digit, the length.
const AT: u32 = 0;
const NUMBER: u32 = 1;
const KEY: u32 = 2;
const DIGIT: u32 = 3;
const LENGTH: u32 = 4;

impl Assembly {
    /// The program: see [`super::Program::new`].
    pub fn program(mut self, owners: u32, sockets: u32, name_max: usize, passing: &Passing) -> Vec<Instruction> {
        let (kernel, command, response) = (self.label(), self.label(), self.label());
        let (by_key, by_number) = (self.label(), self.label());
        self.load_byte(0);
        self.digit_or(response, command);

        self.here(command);
        self.letter_or(kernel);
        for place in 1..4 {
            self.load_byte(place);
            let inside = self.label();
            self.unless_far(JGT, b' '.into(), inside, kernel);
        }
        self.set_x(4);
        self.skip_blanks(kernel);
        self.skip_digits(kernel);
        self.skip_blanks(kernel);
        self.name(name_max, by_key, kernel);

        self.here(response);
        // Three digits, but not 000.
        for place in 1..3 {
            self.load_byte(place);
            let digit = self.label();
            self.digit_or(digit, kernel);
            self.here(digit);
        }
        self.put(LD_W_ABS, 0);
        self.put(AND, 0xffff_ff00);
        let (zeros, other) = (self.label(), self.label());
        self.jump(JEQ, u32::from_be_bytes(*b"000\0"), zeros, other);
        self.here(zeros);
        self.go(kernel);
        self.here(other);
        self.set_x(3);
        self.skip_blanks(kernel);
        self.number(by_number, kernel);

        self.here(by_key);
        self.put(LD_MEM, KEY);
        let place = self.label();
        self.go(place);
        self.here(by_number);
        self.put(LD_MEM, NUMBER);
        self.here(place);
        self.put(MOD, owners.max(1));
        if sockets < owners {
            self.put(MOD, sockets.max(1));
        }
        for (silent, other) in passing.pairs() {
            self.answer_when(silent, other);
        }
        self.put(RET_A, 0);
        self.here(kernel);
        if passing.is_nobody() {
            self.put(RET_K, KERNEL);
            return self.resolve();
        }
        self.by_flow(passing)
    }

    /// The rest of the program: the choice among the sockets that are read goes by address and port of the sender.
    pub fn by_flow(mut self, passing: &Passing) -> Vec<Instruction> {
        let (address, ports) = if passing.ipv6 { IPV6 } else { IPV4 };
        self.put(LD_W_ABS, NETWORK.wrapping_add(address));
        self.put(TAX, 0);
        self.put(LD_W_ABS, NETWORK.wrapping_add(ports));
        self.put(ADD_X, 0);
        self.put(MUL, GOLDEN);
        self.put(RSH, 16);
        let live: Vec<u32> = passing.live().collect();
        self.put(MOD, (live.len() as u32).max(1));
        for (place, &member) in live.iter().enumerate() {
            self.answer_when(place as u32, member);
        }
        self.put(RET_K, KERNEL);
        self.resolve()
    }

    /// Ends with `answer` when A is `value`.
    fn answer_when(&mut self, value: u32, answer: u32) {
        let (is, not) = (self.label(), self.label());
        self.jump(JEQ, value, is, not);
        self.here(is);
        self.put(RET_K, answer);
        self.here(not);
    }

    /// The local name at X: two chains of blocks, a pair for each position. In the first the byte before was no digit; in the second it
    /// was, and NUMBER is the number so far.
    fn name(&mut self, name_max: usize, found: Label, kernel: Label) {
        self.put(STX, AT);
        self.put(LD_IMM, 0);
        self.put(ST, KEY);
        let (mut outside, mut inside) = (self.label(), self.label());
        for position in 0..=name_max as u32 {
            let next = (self.label(), self.label());
            for in_number in [false, true] {
                self.here(if in_number { inside } else { outside });
                let (high, low, digit, below, slash, other, at, end) =
                    (self.label(), self.label(), self.label(), self.label(), self.label(), self.label(), self.label(), self.label());
                self.put(LD_B_IND, position);
                self.jump(JGT, b'9'.into(), high, low);
                self.here(low);
                self.jump(JGE, b'0'.into(), digit, below);
                self.here(below);
                self.jump(JEQ, b'/'.into(), slash, other);
                self.here(other);
                self.jump(JGT, b' '.into(), next.0, end);
                self.here(end);
                self.go(kernel);
                self.here(high);
                self.jump(JEQ, b'@'.into(), at, next.0);
                self.here(at);
                self.go(found);
                self.here(digit);
                if in_number {
                    self.append_digit();
                } else {
                    self.put(SUB, b'0'.into());
                    self.put(ST, NUMBER);
                }
                self.go(next.1);
                self.here(slash);
                if in_number {
                    self.put(LD_MEM, NUMBER);
                } else {
                    self.put(LD_IMM, 0);
                }
                self.put(ST, KEY);
                self.go(next.0);
            }
            (outside, inside) = next;
        }
        // Longer than any name there is.
        self.here(outside);
        self.here(inside);
        self.go(kernel);
    }

    /// The digit in A goes behind NUMBER; X comes back from AT.
    fn append_digit(&mut self) {
        self.put(SUB, b'0'.into());
        self.put(ST, DIGIT);
        self.put(LD_MEM, NUMBER);
        self.put(MUL, 10);
        self.put(LDX_MEM, DIGIT);
        self.put(ADD_X, 0);
        self.put(ST, NUMBER);
        self.put(LDX_MEM, AT);
    }

    /// The transaction identifier at X: 1 to 9 digits up to a blank, a line end or the end.
    fn number(&mut self, found: Label, kernel: Label) {
        self.put(LD_LEN, 0);
        self.put(ST, LENGTH);
        self.put(LD_IMM, 0);
        self.put(ST, NUMBER);
        for position in 0..=ID_DIGITS {
            let (more, end, digit, other) = (self.label(), self.label(), self.label(), self.label());
            self.put(LD_MEM, LENGTH);
            self.jump(JGT_X, 0, more, end);
            self.here(end);
            self.go(if position == 0 { kernel } else { found });
            self.here(more);
            self.put(LD_B_IND, 0);
            self.digit_or(digit, other);
            self.here(other);
            if position > 0 {
                for byte in *b" \t\r\n" {
                    let (ends, not) = (self.label(), self.label());
                    self.jump(JEQ, byte.into(), ends, not);
                    self.here(ends);
                    self.go(found);
                    self.here(not);
                }
            }
            self.go(kernel);
            self.here(digit);
            if position == ID_DIGITS {
                self.go(kernel);
            } else {
                self.put(STX, AT);
                self.append_digit();
                self.advance();
            }
        }
    }

    /// X moves behind 1 to [`BLANKS_MAX`] blanks.
    fn skip_blanks(&mut self, kernel: Label) {
        let done = self.label();
        for count in 0..BLANKS_MAX {
            let (no_space, blank, none) = (self.label(), self.label(), self.label());
            self.put(LD_B_IND, 0);
            self.jump(JEQ, b' '.into(), blank, no_space);
            self.here(no_space);
            self.jump(JEQ, b'\t'.into(), blank, none);
            self.here(none);
            self.go(if count == 0 { kernel } else { done });
            self.here(blank);
            self.advance();
        }
        self.here(done);
    }

    /// X moves behind 1 to 9 digits; what follows them must be a blank, which the caller checks.
    fn skip_digits(&mut self, kernel: Label) {
        let done = self.label();
        for position in 0..ID_DIGITS {
            let (digit, other) = (self.label(), self.label());
            self.put(LD_B_IND, 0);
            self.digit_or(digit, other);
            self.here(other);
            self.go(if position == 0 { kernel } else { done });
            self.here(digit);
            self.advance();
        }
        self.here(done);
    }
}
