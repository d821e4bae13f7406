//! The two vocabularies of a message: verbs and parameter codes (RFC 3435 3.2.1.1, 3.2.2, appendix B).

/// A command verb.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Verb {
    /// EndpointConfiguration.
    Epcf,
    /// CreateConnection.
    Crcx,
    /// ModifyConnection.
    Mdcx,
    /// DeleteConnection.
    Dlcx,
    /// NotificationRequest.
    Rqnt,
    /// Notify.
    Ntfy,
    /// AuditEndpoint.
    Auep,
    /// AuditConnection.
    Aucx,
    /// RestartInProgress.
    Rsip,
    /// Message (appendix B.3).
    Mesg,
}

impl Verb {
    /// All verbs.
    pub const ALL: [Verb; 10] =
        [Verb::Epcf, Verb::Crcx, Verb::Mdcx, Verb::Dlcx, Verb::Rqnt, Verb::Ntfy, Verb::Auep, Verb::Aucx, Verb::Rsip, Verb::Mesg];

    /// The verb written `text`, in any letter case.
    #[inline]
    pub fn parse(text: &[u8]) -> Option<Verb> {
        let text: [u8; 4] = text.try_into().ok()?;
        // Clearing bit 5 folds letters; no other byte becomes an upper-case letter by it.
        Some(match &(u32::from_be_bytes(text) & 0xdfdf_dfdf).to_be_bytes() {
            b"EPCF" => Verb::Epcf,
            b"CRCX" => Verb::Crcx,
            b"MDCX" => Verb::Mdcx,
            b"DLCX" => Verb::Dlcx,
            b"RQNT" => Verb::Rqnt,
            b"NTFY" => Verb::Ntfy,
            b"AUEP" => Verb::Auep,
            b"AUCX" => Verb::Aucx,
            b"RSIP" => Verb::Rsip,
            b"MESG" => Verb::Mesg,
            _ => return None,
        })
    }

    /// The verb as it is sent.
    pub const fn name(self) -> &'static str {
        match self {
            Verb::Epcf => "EPCF",
            Verb::Crcx => "CRCX",
            Verb::Mdcx => "MDCX",
            Verb::Dlcx => "DLCX",
            Verb::Rqnt => "RQNT",
            Verb::Ntfy => "NTFY",
            Verb::Auep => "AUEP",
            Verb::Aucx => "AUCX",
            Verb::Rsip => "RSIP",
            Verb::Mesg => "MESG",
        }
    }
}

macro_rules! codes {
    ($($(#[doc = $help:literal])+ $variant:ident = $name:literal,)+) => {
        /// A parameter code. The variants bear the codes themselves: they are what everybody in the field says.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[repr(u8)]
        pub enum Code { $($(#[doc = $help])+ $variant,)+ }

        impl Code {
            /// All codes.
            pub const ALL: &'static [Code] = &[$(Code::$variant,)+];

            /// The code as it is sent.
            pub const fn name(self) -> &'static str {
                match self { $(Code::$variant => $name,)+ }
            }

            pub(super) const fn missing(self) -> &'static str {
                match self { $(Code::$variant => concat!("mandatory parameter ", $name, ": is missing"),)+ }
            }

            pub(super) const fn forbidden(self) -> &'static str {
                match self { $(Code::$variant => concat!("parameter ", $name, ": is not allowed in this command"),)+ }
            }

            pub(super) const fn repeated(self) -> &'static str {
                match self { $(Code::$variant => concat!("parameter ", $name, ": occurs twice"),)+ }
            }

            pub(super) const fn empty(self) -> &'static str {
                match self { $(Code::$variant => concat!("parameter ", $name, ": must not be empty"),)+ }
            }

            pub(super) const fn malformed(self) -> &'static str {
                match self { $(Code::$variant => concat!("value of parameter ", $name, ": is malformed"),)+ }
            }
        }
    };
}

codes! {
    /// ResponseAck.
    K = "K",
    /// BearerInformation.
    B = "B",
    /// CallId.
    C = "C",
    /// ConnectionId.
    I = "I",
    /// SecondConnectionId.
    I2 = "I2",
    /// NotifiedEntity.
    N = "N",
    /// RequestIdentifier.
    X = "X",
    /// LocalConnectionOptions.
    L = "L",
    /// ConnectionMode.
    M = "M",
    /// RequestedEvents.
    R = "R",
    /// SignalRequests.
    S = "S",
    /// DigitMap.
    D = "D",
    /// ObservedEvents.
    O = "O",
    /// ConnectionParameters.
    P = "P",
    /// ReasonCode.
    E = "E",
    /// SpecificEndpointId.
    Z = "Z",
    /// SecondEndpointId.
    Z2 = "Z2",
    /// RequestedInfo.
    F = "F",
    /// QuarantineHandling.
    Q = "Q",
    /// DetectEvents.
    T = "T",
    /// RemoteConnectionDescriptor: in `F:` only, and the name of the description that follows a command.
    RC = "RC",
    /// LocalConnectionDescriptor: in `F:` only.
    LC = "LC",
    /// Capabilities.
    A = "A",
    /// EventStates.
    ES = "ES",
    /// RestartMethod.
    RM = "RM",
    /// RestartDelay.
    RD = "RD",
    /// PackageList.
    PL = "PL",
    /// MaxMGCPDatagram.
    MD = "MD",
    /// PersistentEvents of the base package (appendix B.2.1).
    BPr = "B/PR",
    /// NotificationState of the base package (appendix B.2.2).
    BNs = "B/NS",
}

/// How many codes there are.
pub const CODES: usize = Code::ALL.len();

impl Code {
    /// The code written `name`, in any letter case. The whole token counts: `X` is not a prefix of `X-foo`.
    #[inline]
    pub fn parse(name: &[u8]) -> Option<Code> {
        Some(match *name {
            [a] => match a.to_ascii_uppercase() {
                b'K' => Code::K,
                b'B' => Code::B,
                b'C' => Code::C,
                b'I' => Code::I,
                b'N' => Code::N,
                b'X' => Code::X,
                b'L' => Code::L,
                b'M' => Code::M,
                b'R' => Code::R,
                b'S' => Code::S,
                b'D' => Code::D,
                b'O' => Code::O,
                b'P' => Code::P,
                b'E' => Code::E,
                b'Z' => Code::Z,
                b'F' => Code::F,
                b'Q' => Code::Q,
                b'T' => Code::T,
                b'A' => Code::A,
                _ => return None,
            },
            [a, b] => match &[a.to_ascii_uppercase(), b.to_ascii_uppercase()] {
                b"I2" => Code::I2,
                b"Z2" => Code::Z2,
                b"RC" => Code::RC,
                b"LC" => Code::LC,
                b"ES" => Code::ES,
                b"RM" => Code::RM,
                b"RD" => Code::RD,
                b"PL" => Code::PL,
                b"MD" => Code::MD,
                _ => return None,
            },
            [b'B' | b'b', b'/', a, b] => match &[a.to_ascii_uppercase(), b.to_ascii_uppercase()] {
                b"PR" => Code::BPr,
                b"NS" => Code::BNs,
                _ => return None,
            },
            _ => return None,
        })
    }

    /// Whether its value may hold quoted strings, which may hold line ends. Elsewhere a quote is an ordinary character.
    pub const fn holds_quotes(self) -> bool {
        CodeSet::of(&[Code::R, Code::S, Code::O, Code::T, Code::ES, Code::BPr, Code::L, Code::A, Code::B]).has(self)
    }

    /// Whether the grammar allows an empty value (G-PAR-07).
    pub const fn may_be_empty(self) -> bool {
        !CodeSet::of(&[Code::C, Code::M, Code::E, Code::Q, Code::RM, Code::RD, Code::MD, Code::Z2, Code::I2]).has(self)
    }
}

/// A set of codes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CodeSet(u32);

impl CodeSet {
    /// No code.
    pub const EMPTY: CodeSet = CodeSet(0);

    /// These codes.
    pub const fn of(codes: &[Code]) -> CodeSet {
        let mut bits = 0;
        let mut i = 0;
        while i < codes.len() {
            bits |= 1 << codes[i] as u32;
            i += 1;
        }
        CodeSet(bits)
    }

    /// Whether `code` is in the set.
    #[inline(always)]
    pub const fn has(self, code: Code) -> bool {
        self.0 & (1 << code as u32) != 0
    }

    /// Puts `code` into the set.
    #[inline(always)]
    pub const fn insert(&mut self, code: Code) {
        self.0 |= 1 << code as u32;
    }

    /// What is in either.
    pub const fn union(self, other: CodeSet) -> CodeSet {
        CodeSet(self.0 | other.0)
    }

    /// What is in this one and not in `other`.
    pub const fn without(self, other: CodeSet) -> CodeSet {
        CodeSet(self.0 & !other.0)
    }

    /// Whether both share a code.
    pub const fn meets(self, other: CodeSet) -> bool {
        self.0 & other.0 != 0
    }

    /// The first code of the set in the order of [`Code::ALL`].
    pub fn first(self) -> Option<Code> {
        Code::ALL.get(self.0.trailing_zeros() as usize).copied()
    }

    /// The codes of the set in the order of [`Code::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Code> {
        Code::ALL.iter().copied().filter(move |code| self.has(*code))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_reads_back_in_any_case() {
        for verb in Verb::ALL {
            assert_eq!(Verb::parse(verb.name().as_bytes()), Some(verb));
            assert_eq!(Verb::parse(verb.name().to_ascii_lowercase().as_bytes()), Some(verb));
        }
        for &code in Code::ALL {
            assert_eq!(Code::parse(code.name().as_bytes()), Some(code));
            assert_eq!(Code::parse(code.name().to_ascii_lowercase().as_bytes()), Some(code));
        }
    }

    #[test]
    fn only_whole_tokens_are_codes() {
        for name in ["", "X-", "X-foo", "I3", "RX", "PR", "NS", "B/", "B/PRX", "G", "1", "*"] {
            assert_eq!(Code::parse(name.as_bytes()), None, "{name}");
        }
        for text in ["", "CRC", "CRCXX", "XPER", "C\u{12}CX"] {
            assert_eq!(Verb::parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn sets_hold_what_was_put_in() {
        let mut set = CodeSet::of(&[Code::C, Code::BNs]);
        set.insert(Code::K);
        assert_eq!(set.iter().collect::<Vec<_>>(), [Code::K, Code::C, Code::BNs]);
        assert_eq!(set.first(), Some(Code::K));
        assert_eq!(set.without(CodeSet::of(&[Code::K, Code::C])).first(), Some(Code::BNs));
        assert_eq!(CodeSet::EMPTY.first(), None);
        assert!(set.meets(CodeSet::of(&[Code::BNs])) && !set.meets(CodeSet::of(&[Code::M])));
    }
}
