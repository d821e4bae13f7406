//! What can be wrong with a message: one table from the fault to the return code and the commentary that is sent (G-RSL-05).
//!
//! RFC 3435 2.4 and RFC 3661 decide the codes; where they name none (open point O-1) this table is the decision.

use super::code::Code;

/// A message that must be refused: what is wrong, and where.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// What is wrong.
    pub fault: Fault,
    /// Where, in bytes from the start of what was parsed (the message, or the value given to a typed parser).
    pub offset: usize,
}

impl Refusal {
    /// `fault` at `offset`.
    pub const fn new(fault: Fault, offset: usize) -> Refusal {
        Refusal { fault, offset }
    }

    /// The return code to answer with.
    pub const fn code(self) -> u16 {
        self.fault.code()
    }

    /// The commentary to answer with.
    pub const fn text(self) -> &'static str {
        self.fault.text()
    }

    /// The same, seen from `offset` bytes further left.
    pub(crate) const fn behind(self, offset: usize) -> Refusal {
        Refusal { fault: self.fault, offset: self.offset + offset }
    }
}

macro_rules! faults {
    (
        of_a_parameter { $($(#[doc = $code_help:literal])+ $code_fault:ident = $code_number:literal $method:ident,)+ }
        fixed { $($(#[doc = $help:literal])+ $fault:ident = $number:literal $text:literal,)+ }
    ) => {
        /// Everything the codec refuses.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Fault {
            $($(#[doc = $code_help])+ $code_fault(Code),)+
            $($(#[doc = $help])+ $fault,)+
        }

        impl Fault {
            /// The return code to answer with.
            pub const fn code(self) -> u16 {
                match self {
                    $(Fault::$code_fault(_) => $code_number,)+
                    $(Fault::$fault => $number,)+
                }
            }

            /// The commentary to answer with.
            pub const fn text(self) -> &'static str {
                match self {
                    $(Fault::$code_fault(code) => code.$method(),)+
                    $(Fault::$fault => $text,)+
                }
            }

            /// Every fault that is not about one parameter code.
            pub const FIXED: &'static [Fault] = &[$(Fault::$fault,)+];
        }
    };
}

faults! {
    of_a_parameter {
        /// A mandatory parameter is missing (G-PAR-01).
        Missing = 510 missing,
        /// A parameter the command must not carry (G-PAR-01).
        Forbidden = 539 forbidden,
        /// A parameter occurs twice (G-PAR-02).
        Repeated = 510 repeated,
        /// A parameter whose value must not be empty (G-PAR-07).
        Empty = 510 empty,
        /// A value that does not follow the grammar.
        Malformed = 510 malformed,
    }
    fixed {
        /// The command line has no readable verb and transaction identifier.
        CommandLine = 510 "command line is malformed",
        /// The response line has no readable code and transaction identifier.
        ResponseLine = 510 "response line is malformed",
        /// No such verb, or not one that is received on this side (G-MSG-03).
        VerbUnknown = 504 "verb is unknown or not supported here",
        /// The endpoint name or the version is missing.
        VersionMissing = 510 "endpoint name or protocol version is missing",
        /// Any version but 1.0 (G-SYN-05).
        VersionUnsupported = 528 "only MGCP 1.0 is supported",
        /// No `@domain`.
        EndpointIncomplete = 510 "endpoint name lacks its domain",
        /// An empty term, an embedded wildcard or a character no name holds (G-EPN-02, G-EPN-06).
        EndpointMalformed = 500 "endpoint name is malformed",
        /// More than 255 characters on either side of the `@` (G-EPN-03).
        EndpointTooLong = 500 "endpoint name is longer than 255 characters",
        /// A domain that is none of the four forms (G-EPN-04).
        DomainMalformed = 500 "domain of the endpoint name is malformed",
        /// More bytes than a UDP datagram holds.
        MessageTooLong = 510 "message is longer than a datagram",
        /// A header line without a colon.
        HeaderLine = 510 "header line has no parameter name",
        /// A header line that begins with a blank (G-SYN-08).
        HeaderFolded = 510 "header lines must not be folded",
        /// A parameter name with characters or a length no name has (G-SYN-10).
        ParameterName = 510 "parameter name is malformed",
        /// `X+…` (G-PAR-03).
        CriticalExtension = 511 "critical vendor parameter X+ is unknown",
        /// A name neither of the base protocol, a vendor nor a package (G-PAR-04).
        ParameterUnknown = 539 "parameter is unknown",
        /// More package parameters than are kept.
        TooManyExtensions = 510 "too many package parameters",
        /// The same package parameter twice (G-PAR-02).
        ExtensionRepeated = 510 "package parameter occurs twice",
        /// R, S, D, Q or T in a connection command without X (note b of table M-1).
        RequestIdMissing = 510 "encapsulated notification request lacks X:",
        /// I without C (open point O-12).
        CallIdMissing = 510 "I: without C: in DLCX",
        /// Two session descriptions in a command (G-SYN-09).
        TwoDescriptions = 510 "more than one session description",
        /// Not a mode of the base protocol (G-CRX-05).
        ModeUnknown = 517 "connection mode is unknown",
        /// A mode of a package (G-CRX-05).
        ModePackage = 518 "connection mode belongs to an unsupported package",
        /// The same option twice (G-LCO-01).
        OptionRepeated = 524 "option occurs twice in L:",
        /// A range that ends before it starts.
        OptionRange = 524 "range in L: ends before it starts",
        /// `x+…` in L (G-LCO-12).
        OptionCritical = 525 "critical vendor option x+ in L: is unknown",
        /// An option neither of the base protocol, a vendor nor a package (G-LCO-12).
        OptionUnknown = 541 "option in L: is unknown",
        /// `fmtp:` or `o-fmtp:` that is no list of quoted strings with the name of an encoding in front.
        OptionFormat = 532 "value of fmtp: in L: is malformed",
        /// An option without a name, or with a name no option has.
        OptionMalformed = 510 "option in L: is malformed",
        /// More package options than are kept.
        TooManyOptions = 510 "too many package options in L:",
        /// `a:`
        OptionCodecs = 532 "codec list a: in L: is malformed",
        /// `p:`
        OptionPeriod = 532 "packetization period p: in L: is malformed",
        /// `b:`
        OptionBandwidth = 532 "bandwidth b: in L: is malformed",
        /// `e:`
        OptionEcho = 532 "echo cancellation e: in L: is neither on nor off",
        /// `s:`
        OptionSilence = 532 "silence suppression s: in L: is neither on nor off",
        /// `gc:` (G-LCO-08)
        OptionGain = 532 "gain control gc: in L: is malformed",
        /// `t:` (G-LCO-05)
        OptionService = 532 "type of service t: in L: is not two hexadecimal digits",
        /// `r:`
        OptionReservation = 532 "resource reservation r: in L: is none of g, cl, be",
        /// `k:` (G-LCO-11)
        OptionEncryption = 532 "encryption key k: in L: is malformed or unusable",
        /// `nt:`
        OptionNetwork = 532 "network type nt: in L: is malformed",
        /// `e:` of BearerInformation that is neither A nor mu (G-EPC-04).
        BearerEncoding = 510 "bearer encoding is neither A nor mu",
        /// A bearer attribute neither of the base protocol nor of a package.
        BearerUnknown = 539 "bearer attribute is unknown",
        /// The same bearer attribute twice.
        BearerRepeated = 510 "bearer attribute occurs twice",
        /// More bearer attributes of packages than are kept.
        TooManyBearers = 510 "too many bearer attributes of packages",
        /// An event or signal that does not follow the grammar.
        EventMalformed = 510 "event or signal is malformed",
        /// A range outside R and T (G-EVT-04).
        EventRange = 510 "event range is not allowed in this list",
        /// `@` followed by no connection identifier, `$` or `*`.
        EventConnection = 510 "connection identifier of an event is malformed",
        /// A quote without its partner.
        QuoteOpen = 510 "quoted string is not closed",
        /// Parameters of an event that do not follow the grammar (G-EVT-12).
        EventParameters = 510 "parameters of an event are malformed",
        /// Deeper parentheses or `=` chains than are read (G-SYN-13).
        NestingTooDeep = 510 "parentheses are nested too deeply",
        /// Not an action (G-REQ-04, G-REQ-16).
        ActionUnknown = 523 "action is unknown",
        /// Actions that do not go together (table M-4).
        ActionCombination = 523 "actions cannot be combined",
        /// An embedded request inside an embedded request (G-REQ-12).
        EmbeddedDepth = 523 "embedded requests are nested too deeply",
        /// An embedded request that does not follow the grammar.
        EmbeddedMalformed = 510 "embedded request is malformed",
        /// A digit map that does not follow the grammar (G-DMP-04).
        DigitMap = 510 "digit map is malformed",
        /// Not a quarantine keyword, or one twice (G-QUA-11).
        Quarantine = 508 "quarantine keyword is unknown",
        /// Not a restart method.
        RestartMethod = 536 "restart method is unknown",
        /// A line of a description that is not `letter=value` (G-SDP-03).
        SdpLine = 509 "session description has a malformed line",
        /// No `v=` in front.
        SdpVersionMissing = 509 "session description does not begin with v=",
        /// `v=` other than 0.
        SdpVersion = 505 "session description version is not 0",
        /// A `c=` line that does not follow the grammar.
        SdpConnection = 509 "c= of the session description is malformed",
        /// No `c=` that covers the audio medium (G-LCO-18).
        SdpConnectionMissing = 509 "session description lacks c=",
        /// A network or address type we cannot reach.
        SdpAddress = 505 "address type of the session description is not supported",
        /// An `m=` line that does not follow the grammar.
        SdpMedia = 509 "m= of the session description is malformed",
        /// No `m=` at all.
        SdpMediaMissing = 509 "session description lacks m=",
        /// Media, but none of it audio.
        SdpAudioMissing = 505 "session description has no audio medium",
        /// A transport other than RTP/AVP, RTP/SAVP and LOCAL.
        SdpTransport = 505 "transport of the audio medium is not supported",
        /// RTP/SAVP without an `a=crypto` that can be used (RFC 4568).
        SdpCrypto = 505 "no a=crypto of the audio medium can be used",
        /// `a=MGCPlocalcx` without a connection identifier.
        SdpLocalConnection = 509 "a=MGCPlocalcx of the session description is malformed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_has_an_error_code_and_printable_commentary() {
        let of_codes = Code::ALL.iter().flat_map(|&code| {
            [Fault::Missing(code), Fault::Forbidden(code), Fault::Repeated(code), Fault::Empty(code), Fault::Malformed(code)]
        });
        let mut texts = std::collections::HashSet::new();
        for fault in of_codes.chain(Fault::FIXED.iter().copied()) {
            assert!((500..=541).contains(&fault.code()), "{fault:?}");
            assert!(fault.text().bytes().all(|b| (b' '..=b'~').contains(&b)) && fault.text().len() < 80, "{fault:?}");
            assert!(texts.insert(fault.text()), "{fault:?} shares its text");
        }
    }
}
