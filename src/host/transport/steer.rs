//! Steering: the kernel program that hands each datagram to the socket of the core that will handle it.
//!
//! An agent sends everything from one address and port, so the kernel's own choice among the sockets of a port (a hash of addresses)
//! would bring it all to one core. [`Program`] is classic BPF for SO_ATTACH_REUSEPORT_CBPF: it needs no privileges and computes what
//! [`home`](crate::proto::trunk::placement::home) says of the first message of a datagram: a command goes by its endpoint name, a response by
//! its transaction identifier. `000`, which carries an id of the agent's, and whatever it cannot read are left to the kernel's choice.
//! A datagram that ends inside its first line goes to the first socket.
//!
//! It is an optimisation only: any core takes any datagram and forwards what is not its own.
//!
//! - One program per group of sockets (address and port), attached once, to any of them; the sockets count in the order in which they
//!   were bound, which must be the order of the cores.
//! - A socket connected to an agent on the same port would get everything from it, without the program: there must be none.
//! - A train of UDP_SEGMENT that was never cut (loopback, veth) is one datagram here and goes by its first one.

use std::fmt;
use std::io;
use std::net::UdpSocket;
use std::os::fd::AsFd;

use super::sys;

/// The most instructions the kernel takes.
pub const INSTRUCTIONS_MAX: usize = 4096;
/// Blanks in a row that are read between the words of a first line.
const BLANKS_MAX: usize = 4;
/// Digits of a transaction identifier (RFC 3435 3.2.1.2).
const ID_DIGITS: u32 = 9;
/// Further than this a conditional jump cannot go.
const JUMP_MAX: usize = 255;
/// The answer that leaves the choice to the kernel: no socket has this number.
const KERNEL: u32 = u32::MAX;

/// Memory of the program: where the name starts (or the id ends), the number being read, what the name goes by, a digit, the length.
const AT: u32 = 0;
const NUMBER: u32 = 1;
const KEY: u32 = 2;
const DIGIT: u32 = 3;
const LENGTH: u32 = 4;

/// One instruction in the kernel's form (`struct sock_filter`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Instruction {
    code: u16,
    jump_true: u8,
    jump_false: u8,
    k: u32,
}

/// A steering program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program(Vec<Instruction>);

/// How datagrams find their core.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Steered {
    /// By a program of so many instructions.
    ByName(usize),
    /// By the kernel's choice, because the settings say so.
    Off,
    /// By the kernel's choice, because the program could not be attached.
    Refused(String),
    /// There is one socket for each address.
    Single,
}

impl Steered {
    /// In one word, for a list.
    pub fn word(&self) -> &'static str {
        match self {
            Steered::ByName(_) => "by name",
            Steered::Off | Steered::Refused(_) => "by hash",
            Steered::Single => "-",
        }
    }
}

impl fmt::Display for Steered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Steered::ByName(instructions) => write!(f, "steered by name ({instructions} instructions)"),
            Steered::Off => write!(f, "not steered"),
            Steered::Refused(reason) => write!(f, "not steered: {reason}"),
            Steered::Single => write!(f, "one socket"),
        }
    }
}

impl Program {
    /// The program for this many cores that own endpoints and sockets per address, for local names of at most `name_max` bytes.
    /// The sockets are the owners' in order or, when there are fewer, those of transport cores, which serve the owners in turn.
    ///
    /// # Errors
    /// When it would be longer than the kernel takes.
    pub fn new(owners: u32, sockets: u32, name_max: usize) -> Result<Program, String> {
        let program = Assembly::default().program(owners, sockets, name_max);
        match program.len() {
            0..=INSTRUCTIONS_MAX => Ok(Program(program)),
            length => Err(format!("names of {name_max} bytes need {length} instructions, the kernel takes {INSTRUCTIONS_MAX}")),
        }
    }

    /// Instructions.
    pub fn instructions(&self) -> &[Instruction] {
        &self.0
    }

    /// Attaches it to the group `socket` belongs to: sockets bound to one address and port with SO_REUSEPORT.
    ///
    /// # Errors
    /// What the kernel says; ENOMEM when `net.core.optmem_max` is too small for it.
    pub fn attach(&self, socket: &UdpSocket) -> io::Result<()> {
        sys::attach_steering(socket.as_fd(), &self.0)
    }
}

/// A place in the program that is jumped to.
#[derive(Clone, Copy)]
struct Label(usize);

/// A program in the making.
#[derive(Default)]
struct Assembly {
    code: Vec<Instruction>,
    /// By label: the instruction it stands before.
    labels: Vec<usize>,
    /// Instructions that jump: where to when true (or always), where to when false.
    jumps: Vec<(usize, Label, Label)>,
}

impl Assembly {
    fn program(mut self, owners: u32, sockets: u32, name_max: usize) -> Vec<Instruction> {
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
        self.put(RET_A, 0);
        self.here(kernel);
        self.put(RET_K, KERNEL);
        self.resolve()
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

    /// Goes on at `digit` when A is one, else at `other`; both may be far.
    fn digit_or(&mut self, digit: Label, other: Label) {
        let (low, not, is) = (self.label(), self.label(), self.label());
        self.jump(JGT, b'9'.into(), not, low);
        self.here(low);
        self.jump(JGE, b'0'.into(), is, not);
        self.here(not);
        self.go(other);
        self.here(is);
        self.go(digit);
    }

    /// Goes on when A is a letter.
    fn letter_or(&mut self, kernel: Label) {
        let (low, high) = (self.label(), self.label());
        self.put(OR, 0x20);
        self.unless_far(JGE, b'a'.into(), low, kernel);
        let past = self.label();
        self.jump(JGT, b'z'.into(), past, high);
        self.here(past);
        self.go(kernel);
        self.here(high);
    }

    /// Goes on at `on`, which is here, when the comparison holds; else to a far place.
    fn unless_far(&mut self, comparison: u16, k: u32, on: Label, far: Label) {
        let not = self.label();
        self.jump(comparison, k, on, not);
        self.here(not);
        self.go(far);
        self.here(on);
    }

    fn load_byte(&mut self, at: u32) {
        self.put(LD_B_ABS, at);
    }

    fn set_x(&mut self, value: u32) {
        self.put(LDX_IMM, value);
    }

    /// X + 1.
    fn advance(&mut self) {
        self.put(TXA, 0);
        self.put(ADD, 1);
        self.put(TAX, 0);
    }

    fn put(&mut self, code: u16, k: u32) {
        self.code.push(Instruction { code, jump_true: 0, jump_false: 0, k });
    }

    fn go(&mut self, to: Label) {
        self.jumps.push((self.code.len(), to, to));
        self.put(JA, 0);
    }

    fn jump(&mut self, comparison: u16, k: u32, when: Label, otherwise: Label) {
        self.jumps.push((self.code.len(), when, otherwise));
        self.put(comparison, k);
    }

    fn label(&mut self) -> Label {
        self.labels.push(0);
        Label(self.labels.len() - 1)
    }

    fn here(&mut self, label: Label) {
        self.labels[label.0] = self.code.len();
    }

    fn resolve(self) -> Vec<Instruction> {
        let Assembly { mut code, labels, jumps } = self;
        for (from, when, otherwise) in jumps {
            let distance = |to: Label| labels[to.0] - from - 1;
            let instruction = &mut code[from];
            if instruction.code == JA {
                instruction.k = distance(when) as u32;
            } else {
                debug_assert!(distance(when) <= JUMP_MAX && distance(otherwise) <= JUMP_MAX, "a conditional jump is short");
                (instruction.jump_true, instruction.jump_false) = (distance(when) as u8, distance(otherwise) as u8);
            }
        }
        code
    }
}

// Operation codes (linux/bpf_common.h).
const LD_IMM: u16 = 0x00;
const LDX_IMM: u16 = 0x01;
const LD_W_ABS: u16 = 0x20;
const LD_B_ABS: u16 = 0x30;
const LD_B_IND: u16 = 0x50;
const LD_MEM: u16 = 0x60;
const LDX_MEM: u16 = 0x61;
const LD_LEN: u16 = 0x80;
const ST: u16 = 0x02;
const STX: u16 = 0x03;
const ADD: u16 = 0x04;
const ADD_X: u16 = 0x0c;
const SUB: u16 = 0x14;
const MUL: u16 = 0x24;
const OR: u16 = 0x44;
const AND: u16 = 0x54;
const MOD: u16 = 0x94;
const JA: u16 = 0x05;
const JEQ: u16 = 0x15;
const JGT: u16 = 0x25;
const JGT_X: u16 = 0x2d;
const JGE: u16 = 0x35;
const RET_K: u16 = 0x06;
const RET_A: u16 = 0x16;
const TAX: u16 = 0x07;
const TXA: u16 = 0x87;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::codec::peek::{Peek, split};
    use crate::proto::trunk::placement::home;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::path::Path;

    const NAME_MAX: usize = 40;

    /// Classic BPF as the kernel runs it.
    fn run(program: &Program, packet: &[u8]) -> u32 {
        let (mut a, mut x, mut memory, mut at) = (0u32, 0u32, [None; 16], 0);
        loop {
            let Instruction { code, jump_true, jump_false, k } = program.0[at];
            at += 1;
            let mut branch = |holds: bool| at += usize::from(if holds { jump_true } else { jump_false });
            let byte = |place: u32| packet.get(place as usize).map(|&byte| u32::from(byte));
            match code {
                LD_IMM => a = k,
                LDX_IMM => x = k,
                // A load beyond the end ends the program with 0.
                LD_W_ABS => match packet.get(k as usize..k as usize + 4) {
                    Some(bytes) => a = u32::from_be_bytes(bytes.try_into().unwrap()),
                    None => return 0,
                },
                LD_B_ABS => match byte(k) {
                    Some(value) => a = value,
                    None => return 0,
                },
                LD_B_IND => match byte(x + k) {
                    Some(value) => a = value,
                    None => return 0,
                },
                LD_MEM => a = memory[k as usize].expect("the kernel refuses to load what was not stored"),
                LDX_MEM => x = memory[k as usize].expect("the kernel refuses to load what was not stored"),
                LD_LEN => a = packet.len() as u32,
                ST => memory[k as usize] = Some(a),
                STX => memory[k as usize] = Some(x),
                ADD => a = a.wrapping_add(k),
                ADD_X => a = a.wrapping_add(x),
                SUB => a = a.wrapping_sub(k),
                MUL => a = a.wrapping_mul(k),
                OR => a |= k,
                AND => a &= k,
                MOD => a %= k,
                JA => at += k as usize,
                JEQ => branch(a == k),
                JGT => branch(a > k),
                JGE => branch(a >= k),
                JGT_X => branch(a > x),
                RET_K => return k,
                RET_A => return a,
                TAX => x = a,
                TXA => a = x,
                _ => unreachable!("{code:#x}"),
            }
        }
    }

    /// What the core says of the first message: its place among `owners`; `None` where any core will do.
    fn wanted(datagram: &[u8], owners: usize) -> Option<usize> {
        match split(datagram).next()?.1 {
            Peek::Unreadable | Peek::Response { code: 0, .. } => None,
            Peek::Response { id, .. } => Some(id as usize % owners),
            Peek::Command(line) => {
                let local = line.endpoint.split(|&byte| byte == b'@').next().unwrap_or_default();
                Some(home(local, owners))
            }
        }
    }

    /// Whether the program may answer so.
    fn agrees(datagram: &[u8], owners: usize, answer: u32) -> bool {
        let cut = !datagram.contains(&b'\n');
        answer == KERNEL || (cut && answer == 0) || wanted(datagram, owners).is_none_or(|place| place == answer as usize)
    }

    fn corpus() -> Vec<Vec<u8>> {
        let mut corpus = Vec::new();
        for directory in ["wire", "dialogues", "field-bugs"] {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(directory);
            for entry in std::fs::read_dir(path).unwrap() {
                let bytes = std::fs::read(entry.unwrap().path()).unwrap();
                // Dialogues hold several datagrams, each line of which may begin one.
                let starts = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
                corpus.extend(starts.map(|at| bytes[at..].to_vec()));
                corpus.push(bytes);
            }
        }
        corpus
    }

    /// Commands as agents write them, with their names.
    fn commands() -> Vec<(String, String)> {
        let mut commands = Vec::new();
        let names = ["*", "$", "ds/*", "ds/ds3-1/*", "ds/ds3-1/ds1-7/*", "DS/DS3-1/ds1-28/24", "ds/e1-300/31", "mg", "aaln/1"];
        let names = names.into_iter().map(str::to_owned);
        let plain = (1..=28).flat_map(|span| [1, 24].map(|channel| format!("ds/ds3-12/ds1-{span}/{channel}")));
        let ranges = ["ds/ds1-[1-4]/*", "ds/ds1-3/[1-12]", "ds/ds3-1/ds1-*/5"].map(str::to_owned);
        for name in names.chain(plain).chain(ranges) {
            for (verb, id) in [("CRCX", "1"), ("auep", "999999999"), ("XPER", "0012")] {
                commands.push((format!("{verb} {id} {name}@tgw.example.net MGCP 1.0\r\nC: 1\r\n"), name.clone()));
            }
            commands.push((format!("DLCX \t 17  {name}@[127.0.0.1] MGCP 1.0\n.\nCRCX 18 ds/ds1-1/1@x MGCP 1.0\n"), name.clone()));
        }
        commands
    }

    #[test]
    fn the_program_sends_every_command_to_the_home_of_its_name() {
        for owners in [2u32, 3, 4, 7, 64] {
            let program = Program::new(owners, owners, NAME_MAX).unwrap();
            for (command, name) in commands() {
                let expected = home(name.as_bytes(), owners as usize) as u32;
                assert_eq!(run(&program, command.as_bytes()), expected, "{owners}: {command}");
                assert_eq!(wanted(command.as_bytes(), owners as usize), Some(expected as usize));
            }
        }
    }

    #[test]
    fn the_program_sends_every_response_to_the_core_of_its_id() {
        let program = Program::new(5, 5, NAME_MAX).unwrap();
        for (response, place) in [
            ("200 7", 2),
            ("200 7\r\n", 2),
            ("200 7\n", 2),
            ("250 999999999 OK\r\n", 4),
            ("100  \t12 in progress\r\n", 2),
            ("401 0 x", 0),
            ("020 3\r\n.\r\nAUEP 1 ds/ds1-2/1@x MGCP 1.0\r\n", 3),
        ] {
            assert_eq!((run(&program, response.as_bytes()), wanted(response.as_bytes(), 5)), (place, Some(place as usize)), "{response}");
        }
    }

    #[test]
    fn what_belongs_to_no_core_is_left_to_the_kernel() {
        let program = Program::new(4, 4, NAME_MAX).unwrap();
        let long = format!("AUEP 1 {}@x MGCP 1.0\r\n", "a".repeat(NAME_MAX + 1));
        for text in [
            "000 1204\r\n",
            "000 5",
            "200 1234567890\r\n",
            "200 x\r\n",
            "2000 5\r\n",
            "20 5 \r\n",
            "200\r\n5\r\n",
            "!/1 <mgc>\r\nT=1{}\r\n",
            "MEGACO/1 [192.0.2.1]:2944 T=1{}\r\n",
            "A 1 ds/ds1-1/1@x MGCP 1.0\r\n",
            "AUEP x ds/ds1-1/1@x MGCP 1.0\r\n",
            "\0\0\0\0\0\0\0\0\0\0",
            "AUEP 1 ds/ds1-1/1 MGCP 1.0\r\n",
            "AUEP 1234567890 ds/ds1-1/1@x MGCP 1.0\r\n",
            "AUEP 1\r\n ds/ds1-1/1@x MGCP 1.0\r\n",
            "@UEP 1 ds/ds1-1/1@x MGCP 1.0\r\n",
            " AUEP 1 ds/ds1-1/1@x MGCP 1.0\r\n",
            &long,
        ] {
            assert_eq!(run(&program, text.as_bytes()), KERNEL, "{text:?}");
        }
    }

    #[test]
    fn the_program_and_the_core_agree_on_the_whole_corpus_however_it_is_cut() {
        let program = Program::new(3, 3, NAME_MAX).unwrap();
        let mut steered = 0;
        for datagram in corpus().into_iter().chain(commands().into_iter().map(|(command, _)| command.into_bytes())) {
            for end in (0..=datagram.len().min(120)).chain([datagram.len()]) {
                let answer = run(&program, &datagram[..end]);
                assert!(agrees(&datagram[..end], 3, answer), "{answer}: {:?}", String::from_utf8_lossy(&datagram[..end]));
                steered += u32::from(answer != KERNEL && answer != 0);
            }
        }
        assert!(steered > 10_000, "{steered}");
    }

    /// With fewer sockets than owners each owner's is that of its transport core, as `boot` deals them out.
    #[test]
    fn shards_are_reached_through_their_transport_core() {
        let program = Program::new(6, 2, NAME_MAX).unwrap();
        for span in 0..12u32 {
            let text = format!("AUEP 1 ds/ds1-{span}/1@x MGCP 1.0\r\n");
            assert_eq!(run(&program, text.as_bytes()), span % 6 % 2);
        }
        assert_eq!(run(&program, b"200 9 OK\r\n"), 1);
    }

    #[test]
    fn the_program_stays_below_the_limits_of_the_kernel() {
        // The longest name there can be, `ds/ds3-65535/ds1-28/24`, with room for a range.
        let longest = Program::new(64, 8, 34).unwrap().instructions().len();
        // With `net.core.optmem_max` at 20,480, its default before Linux 6.7, 2,500 can be attached.
        assert!(longest < 2500, "{longest}");
        assert!(Program::new(2, 2, 1000).is_err_and(|reason| reason.contains("4096")));
        let mut lengths = BTreeMap::new();
        for name_max in [1, 20, 64] {
            lengths.insert(name_max, Program::new(2, 2, name_max).unwrap().instructions().len());
        }
        assert!(lengths.values().is_sorted(), "{lengths:?}");
    }

    proptest! {
        #[test]
        fn no_datagram_makes_program_and_core_disagree(
            text in "([A-Za-z0-9]{3,5}|[0-9]{3}|\\.)[ \t]{0,3}[0-9]{0,10}[ \t\r]{0,3}[dDs/0-9*$@\\[\\]\\-]{0,30}[@ \n]{0,2}[a-z \n@/0-9]{0,12}",
            owners in 2u32..9,
        ) {
            let program = Program::new(owners, owners, NAME_MAX).unwrap();
            let answer = run(&program, text.as_bytes());
            prop_assert!(answer == KERNEL || answer < owners);
            prop_assert!(agrees(text.as_bytes(), owners as usize, answer), "{answer}");
        }

        #[test]
        fn no_junk_breaks_the_program(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let program = Program::new(3, 3, NAME_MAX).unwrap();
            prop_assert!(agrees(&bytes, 3, run(&program, &bytes)));
        }
    }
}
