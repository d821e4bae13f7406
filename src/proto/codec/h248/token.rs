//! The keywords of the text encoding, long and short (B.2). A keyword is one only where the grammar has it (TXT-02): whoever reads an
//! item asks here, and names elsewhere may be spelled the same.

/// Whether keywords are written long with white space, or short without (TXT-01: both are read).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Style {
    /// Long keywords, a line for each item.
    Pretty,
    /// Short keywords, no white space: what a gateway sends unless configured otherwise.
    #[default]
    Compact,
}

macro_rules! tokens {
    ($($(#[doc = $help:literal])* $token:ident $long:literal $short:literal,)+) => {
        /// A keyword.
        #[allow(missing_docs)]
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[repr(u8)]
        pub enum Token {
            $($token,)+
        }

        impl Token {
            /// Every keyword.
            pub const ALL: &'static [Token] = &[$(Token::$token,)+];

            /// The keyword as it is written.
            pub const fn name(self, style: Style) -> &'static str {
                match (self, style) {
                    $((Token::$token, Style::Pretty) => $long, (Token::$token, Style::Compact) => $short,)+
                }
            }
        }
    };
}

tokens! {
    Add "Add" "A",
    Audit "Audit" "AT",
    AuditCapability "AuditCapability" "AC",
    AuditValue "AuditValue" "AV",
    Authentication "Authentication" "AU",
    Bothway "Bothway" "BW",
    Brief "Brief" "BR",
    Buffer "Buffer" "BF",
    Context "Context" "C",
    ContextAudit "ContextAudit" "CA",
    Delay "Delay" "DL",
    DigitMap "DigitMap" "DM",
    Disconnected "Disconnected" "DC",
    Duration "Duration" "DR",
    Embed "Embed" "EM",
    Emergency "Emergency" "EG",
    Error "Error" "ER",
    EventBuffer "EventBuffer" "EB",
    Events "Events" "E",
    Failover "Failover" "FL",
    Forced "Forced" "FO",
    Graceful "Graceful" "GR",
    HandOff "HandOff" "HO",
    ImmAckRequired "ImmAckRequired" "IA",
    InService "InService" "IV",
    Inactive "Inactive" "IN",
    IntByEvent "IntByEvent" "IBE",
    IntBySigDescr "IntBySigDescr" "IBS",
    Isolate "Isolate" "IS",
    KeepActive "KeepActive" "KA",
    Local "Local" "L",
    LocalControl "LocalControl" "O",
    LockStep "LockStep" "SP",
    Loopback "Loopback" "LB",
    Media "Media" "M",
    Megaco "MEGACO" "!",
    Method "Method" "MT",
    MgcIdToTry "MgcIdToTry" "MG",
    Mode "Mode" "MO",
    Modem "Modem" "MD",
    Modify "Modify" "MF",
    Move "Move" "MV",
    Mtp "MTP" "MTP",
    Mux "Mux" "MX",
    Notify "Notify" "N",
    NotifyCompletion "NotifyCompletion" "NC",
    ObservedEvents "ObservedEvents" "OE",
    Off "OFF" "OFF",
    On "ON" "ON",
    OnOff "OnOff" "OO",
    Oneway "Oneway" "OW",
    OtherReason "OtherReason" "OR",
    OutOfService "OutOfService" "OS",
    Packages "Packages" "PG",
    Pending "Pending" "PN",
    Priority "Priority" "PR",
    Profile "Profile" "PF",
    Reason "Reason" "RE",
    ReceiveOnly "ReceiveOnly" "RC",
    Remote "Remote" "R",
    Reply "Reply" "P",
    ReservedGroup "ReservedGroup" "RG",
    ReservedValue "ReservedValue" "RV",
    Restart "Restart" "RS",
    SendOnly "SendOnly" "SO",
    SendReceive "SendReceive" "SR",
    ServiceChange "ServiceChange" "SC",
    ServiceChangeAddress "ServiceChangeAddress" "AD",
    ServiceStates "ServiceStates" "SI",
    Services "Services" "SV",
    SignalList "SignalList" "SL",
    SignalType "SignalType" "SY",
    Signals "Signals" "SG",
    Statistics "Statistics" "SA",
    Stream "Stream" "ST",
    Subtract "Subtract" "S",
    TerminationState "TerminationState" "TS",
    Test "Test" "TE",
    TimeOut "TimeOut" "TO",
    Topology "Topology" "TP",
    Transaction "Transaction" "T",
    TransactionResponseAck "TransactionResponseAck" "K",
    Version "Version" "V",
}

/// Keywords of versions 2 and 3 (as the public OTP megaco application lists them) where version 1 has none: answered 501.
const LATER: &[&str] = &[
    "ContextAttr",
    "CT",
    "ContextList",
    "CLT",
    "EmergencyOff",
    "EGO",
    "EmergencyValue",
    "EGV",
    "IEPSCall",
    "IEPS",
    "Segment",
    "SM",
    "ServiceChangeInc",
    "SIC",
    "OnewayBoth",
    "OWB",
    "OnewayExternal",
    "OWE",
    "ResetEventsDescriptor",
    "RSE",
    "NeverNotify",
    "NBNN",
    "ImmediateNotify",
    "NBIN",
    "RegulatedNotify",
    "NBRN",
];

/// Whether `name` is a keyword of version 2 or 3 only.
pub(super) fn is_later(name: &[u8]) -> bool {
    LATER.iter().any(|later| later.as_bytes().eq_ignore_ascii_case(name))
}

const SLOTS: usize = 512;
/// A slot without a keyword.
const EMPTY: u8 = u8::MAX;

/// Where the search for a word begins: its length, first two and last letters, letter case folded.
#[inline(always)]
const fn slot(first: u8, second: u8, last: u8, length: usize) -> usize {
    let hash = (first & 0x1f) as usize * 37 + (second & 0x1f) as usize * 113 + (last & 0x1f) as usize * 11 + length * 71;
    (hash ^ (hash >> 7)) % SLOTS
}

const fn slot_of(name: &[u8]) -> usize {
    slot(name[0], name[if name.len() > 1 { 1 } else { 0 }], name[name.len() - 1], name.len())
}

/// Each keyword twice, by its two spellings: an open hash table.
static TABLE: [u8; SLOTS] = {
    let mut table = [EMPTY; SLOTS];
    let mut i = 0;
    while i < Token::ALL.len() {
        let token = Token::ALL[i];
        let names = [token.name(Style::Pretty).as_bytes(), token.name(Style::Compact).as_bytes()];
        let mut n = 0;
        while n < 2 {
            let mut at = slot_of(names[n]);
            while table[at] != EMPTY && table[at] != token as u8 {
                at = (at + 1) % SLOTS;
            }
            table[at] = token as u8;
            n += 1;
        }
        i += 1;
    }
    table
};

impl Token {
    /// The keyword that `word` is, in either spelling, letter case ignored.
    #[inline]
    pub fn parse(word: &[u8]) -> Option<Token> {
        let (&first, &last) = (word.first()?, word.last()?);
        let mut at = slot(first, word.get(1).copied().unwrap_or(first), last, word.len());
        // As many steps as there are keywords in a row, which a test bounds.
        loop {
            let token = *Token::ALL.get(usize::from(*TABLE.get(at)?))?;
            let spelled = |style| token.name(style).as_bytes().eq_ignore_ascii_case(word);
            if spelled(Style::Compact) || spelled(Style::Pretty) {
                return Some(token);
            }
            at = (at + 1) % SLOTS;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_are_read_in_any_case_and_nothing_else_is() {
        // TXT-01
        for &token in Token::ALL {
            for style in [Style::Pretty, Style::Compact] {
                let name = token.name(style);
                for spelled in [name.to_owned(), name.to_lowercase(), name.to_uppercase()] {
                    assert_eq!(Token::parse(spelled.as_bytes()), Some(token), "{spelled}");
                }
                assert_eq!(Token::parse(format!("{name}_").as_bytes()), None);
            }
        }
        for none in ["", "AuditCapabilities", "X", "\u{1}", "ds/ds1", "CT"] {
            assert_eq!(Token::parse(none.as_bytes()), None, "{none}");
        }
        assert!(is_later(b"ct") && !is_later(b"PR"));
    }

    #[test]
    fn a_search_is_short() {
        let (mut run, mut longest) = (0, 0);
        for at in 0..2 * SLOTS {
            run = if TABLE[at % SLOTS] == EMPTY { 0 } else { run + 1 };
            longest = longest.max(run);
        }
        assert!(longest <= 12, "{longest} slots in a row");
    }
}
