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
//! - One program per group of sockets (address and port), attached to any of them, and in place of the one before; the sockets count in the order in which they
//!   were bound, which must be the order of the cores.
//! - A socket connected to an agent on the same port would get everything from it, without the program: there must be none.
//! - A train of UDP_SEGMENT that was never cut (loopback, veth) is one datagram here and goes by its first one.

mod assembly;
mod first_line;

use std::fmt;
use std::io;
use std::net::UdpSocket;
use std::os::fd::AsFd;

use self::assembly::Assembly;
use super::sys;

pub use assembly::Instruction;

/// The most instructions the kernel takes.
pub const INSTRUCTIONS_MAX: usize = 4096;
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

/// Which sockets of a group are passed by, because the cores that read them stand still.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Passing {
    /// Sockets of the group.
    pub members: u32,
    /// Those that nobody reads, ascending.
    pub silent: Vec<u32>,
    /// The group's address is one of IPv6.
    pub ipv6: bool,
}

impl Passing {
    /// Whether nobody is, or nobody can be because all stand still.
    pub fn is_nobody(&self) -> bool {
        self.live().count() == self.members as usize || self.live().next().is_none()
    }

    /// Sockets that are read.
    pub fn live(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.members).filter(|member| !self.silent.contains(member))
    }

    /// The one that gets what is meant for `member`: the next that is read.
    pub fn instead_of(&self, member: u32) -> Option<u32> {
        self.live().find(|&live| live >= member).or_else(|| self.live().next())
    }

    /// Each that is passed by, and the one instead.
    fn pairs(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.silent.iter().filter_map(|&silent| Some((silent, self.instead_of(silent)?)))
    }
}

impl Program {
    /// The program for this many cores that own endpoints and sockets per address, for local names of at most `name_max` bytes.
    /// The sockets are the owners' in order or, when there are fewer, those of transport cores, which serve the owners in turn.
    ///
    /// # Errors
    /// When it would be longer than the kernel takes.
    pub fn new(owners: u32, sockets: u32, name_max: usize) -> Result<Program, String> {
        Program::passing_by(&Passing { members: sockets, ..Passing::default() }, owners, name_max)
    }

    /// The same, past the sockets of cores that stand still.
    ///
    /// # Errors
    /// As [`Program::new`].
    pub fn passing_by(passing: &Passing, owners: u32, name_max: usize) -> Result<Program, String> {
        let program = Assembly::default().program(owners, passing.members, name_max, passing);
        match program.len() {
            0..=INSTRUCTIONS_MAX => Ok(Program(program)),
            length => Err(format!("names of {name_max} bytes need {length} instructions, the kernel takes {INSTRUCTIONS_MAX}")),
        }
    }

    /// The program that gives every datagram to this socket of the group.
    pub fn always(member: u32) -> Program {
        Program(vec![Instruction::ret(member)])
    }

    /// The program that does what the kernel does without one, but past the sockets of cores that stand still.
    pub fn by_flow(passing: &Passing) -> Program {
        Program(Assembly::default().by_flow(passing))
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

    /// Leaves the choice in the group `socket` belongs to to the kernel again.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn detach(socket: &UdpSocket) -> io::Result<()> {
        sys::detach_steering(socket.as_fd())
    }
}

#[cfg(test)]
mod tests {
    use super::assembly::*;
    use super::first_line::{IPV4, KERNEL, NETWORK};
    use super::*;
    use crate::proto::codec::peek::{Peek, split};
    use crate::proto::trunk::placement::home;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::path::Path;

    const NAME_MAX: usize = 40;

    /// Classic BPF as the kernel runs it.
    fn run(program: &Program, packet: &[u8]) -> u32 {
        run_from(program, packet, [0; 2])
    }

    /// The same for a packet from this address and port.
    fn run_from(program: &Program, packet: &[u8], [address, port]: [u32; 2]) -> u32 {
        let (mut a, mut x, mut memory, mut at) = (0u32, 0u32, [None; 16], 0);
        loop {
            let Instruction { code, jump_true, jump_false, k } = program.0[at];
            at += 1;
            let mut branch = |holds: bool| at += usize::from(if holds { jump_true } else { jump_false });
            let byte = |place: u32| packet.get(place as usize).map(|&byte| u32::from(byte));
            match code {
                LD_IMM => a = k,
                LDX_IMM => x = k,
                LD_W_ABS if k == NETWORK.wrapping_add(IPV4.0) => a = address,
                LD_W_ABS if k == NETWORK.wrapping_add(IPV4.1) => a = port << 16 | 2427,
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
                RSH => a >>= k,
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

    /// What is for a socket that nobody reads goes to the next, everything else as before; and what is nobody's goes round the others.
    #[test]
    fn what_is_for_a_core_that_stands_still_goes_to_another() {
        let before = Program::new(4, 4, NAME_MAX).unwrap();
        for silent in [vec![0], vec![3], vec![1, 2], vec![0, 3], vec![0, 1, 2], vec![0, 1, 2, 3]] {
            let passing = Passing { members: 4, silent: silent.clone(), ipv6: false };
            let program = Program::passing_by(&passing, 4, NAME_MAX).unwrap();
            for (command, _) in commands() {
                let (was, is) = (run(&before, command.as_bytes()), run(&program, command.as_bytes()));
                let instead = (was..was + 4).map(|n| n % 4).find(|n| !silent.contains(n)).unwrap_or(was);
                assert_eq!(is, instead, "{silent:?}: {command}");
            }
            let flows = [&program, &Program::by_flow(&passing)].map(|program| {
                let chosen = (1000..1200).map(|port| run_from(program, b"000 5\r\n", [0x7f00_0001, port]));
                chosen.collect::<std::collections::BTreeSet<u32>>()
            });
            let live: Vec<u32> = if silent.len() == 4 { vec![KERNEL] } else { (0..4).filter(|n| !silent.contains(n)).collect() };
            assert!(flows.iter().all(|chosen| chosen.iter().copied().eq(live.iter().copied())), "{silent:?}: {flows:?}");
        }
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
