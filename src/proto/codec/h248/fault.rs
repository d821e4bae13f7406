//! What can be wrong with a message: one table from the fault to the error code and the words that are sent (H.248.8 codes as RFC 3525
//! and the public registry give them).
//!
//! Where a fault stands says how much of the message is lost (8.2.2, TXN-09 to TXN-12): 400 the message, 403 the transaction, 422 the
//! action, everything else the command.

/// A part of a message that must be refused: what is wrong, and where.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// What is wrong.
    pub fault: Fault,
    /// Where, in bytes from the start of the message.
    pub offset: usize,
}

impl Refusal {
    /// `fault` at `offset`.
    pub const fn new(fault: Fault, offset: usize) -> Refusal {
        Refusal { fault, offset }
    }

    /// The error code to answer with.
    pub const fn code(self) -> u16 {
        self.fault.code()
    }

    /// The text to answer with.
    pub const fn text(self) -> &'static str {
        self.fault.text()
    }
}

macro_rules! faults {
    ($($(#[doc = $help:literal])+ $fault:ident = $number:literal $text:literal,)+) => {
        /// Everything the codec refuses.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Fault {
            $($(#[doc = $help])+ $fault,)+
        }

        impl Fault {
            /// Every fault.
            pub const ALL: &'static [Fault] = &[$(Fault::$fault,)+];

            /// The error code to answer with.
            pub const fn code(self) -> u16 {
                match self {
                    $(Fault::$fault => $number,)+
                }
            }

            /// The text to answer with; it holds no double quote.
            pub const fn text(self) -> &'static str {
                match self {
                    $(Fault::$fault => $text,)+
                }
            }
        }
    };
}

faults! {
    /// More bytes than a UDP datagram or a TPKT holds.
    TooLong = 400 "message is too long",
    /// More pairs of braces than the table holds.
    TooManyBlocks = 400 "message has too many parts",
    /// Braces nested deeper than the grammar can.
    TooDeep = 400 "message is nested too deeply",
    /// A closing brace without an opening one.
    StrayBrace = 400 "closing brace without an opening one",
    /// A quoted string without an end.
    OpenQuote = 400 "quoted string without an end",
    /// Neither MEGACO/ nor !/ stands in front.
    Header = 400 "message header is malformed",
    /// An authentication header that is none (SEC-02).
    Authentication = 400 "authentication header is malformed",
    /// The sender names itself in none of the five forms (TXT-14).
    MessageId = 400 "message identifier is malformed",
    /// Neither transactions nor an error follow the header.
    Body = 400 "message body is malformed",
    /// A version that is not 1, 2 or 3 (MSG-05).
    Version = 406 "version is not supported",
    /// What stands where a transaction should (TXN-11).
    Transaction = 403 "transaction is malformed",
    /// No number of 32 bits where the transaction identifier should be (TXN-07).
    TransactionId = 403 "transaction identifier is malformed",
    /// The transaction has no closing brace (TXN-11).
    TransactionOpen = 403 "transaction has no end",
    /// What stands where an action should (TXN-10).
    Action = 422 "action is malformed",
    /// A context identifier that is none: reserved, partly wildcarded, too large (CTX-06, CTX-08).
    ContextId = 422 "context identifier is malformed",
    /// An action without commands and properties (TXN-08).
    ActionEmpty = 422 "action is empty",
    /// The action has no closing brace (TXN-10).
    ActionOpen = 422 "action has no end",
    /// Context properties behind a command (CA-02).
    PropertyOrder = 422 "context properties must come before commands",
    /// A context property twice.
    PropertyRepeated = 422 "context property is repeated",
    /// What stands where a command should (TXN-12).
    Command = 442 "command is malformed",
    /// A termination identifier that is none (TRM-11, TXN-12).
    TerminationId = 442 "termination identifier is malformed",
    /// The command has no closing brace (TXN-12).
    CommandOpen = 442 "command has no end",
    /// No such command (CMD-01).
    CommandUnknown = 443 "command is unknown",
    /// No such descriptor (TXT-27).
    DescriptorUnknown = 444 "descriptor is unknown",
    /// A descriptor that this command must not carry.
    DescriptorIllegal = 447 "descriptor is not legal in this command",
    /// A descriptor twice (PAR-06).
    DescriptorRepeated = 448 "descriptor appears twice",
    /// A descriptor that must be there and is not.
    DescriptorMissing = 442 "descriptor is missing",
    /// A descriptor whose inside does not follow the grammar.
    Descriptor = 442 "descriptor is malformed",
    /// Streams and parameters of stream 1 in one Media descriptor (MED-01).
    StreamsMixed = 442 "media mixes streams with parameters of stream 1",
    /// A stream twice in one Media descriptor.
    StreamRepeated = 448 "stream appears twice",
    /// A word where a keyword of the descriptor should be.
    ParameterUnknown = 446 "parameter is unknown",
    /// A property, signal, event or statistic without its package, or with a name that is none.
    PackageName = 442 "name with package is malformed",
    /// A package name as a wildcard where none may be (SIG-05).
    Wildcard = 442 "wildcard is not legal here",
    /// A value that does not follow the grammar, or is out of range.
    Value = 442 "value is malformed",
    /// A parameter twice.
    ParameterRepeated = 456 "parameter appears twice",
    /// A mode that is none.
    Mode = 517 "mode is unknown",
    /// Events embedded in embedded events (EVT-06).
    EmbeddedTooDeep = 442 "events are embedded too deeply",
    /// KeepActive beside embedded signals (EVT-07).
    KeepActiveWithSignals = 442 "KeepActive and embedded signals exclude each other",
    /// Events without a request identifier (EVT-01).
    RequestIdMissing = 442 "request identifier is missing",
    /// A digit map that is none (DM-07).
    DigitMap = 442 "digit map is malformed",
    /// A service change without a method or a reason (SC-01).
    ServiceChangeIncomplete = 442 "service change has no method or no reason",
    /// A service change with an address and another controller (SC-01).
    ServiceChangeContradicts = 442 "address and MgcIdToTry exclude each other",
    /// An item of version 2 or 3 that is not done here.
    LaterVersion = 501 "item of a version that is not supported",
}
