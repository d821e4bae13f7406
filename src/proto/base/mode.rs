//! Connection modes (RFC 3435 3.2.2.6).

/// What a connection does with media.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Mode {
    /// Sends only.
    SendOnly,
    /// Receives only.
    RecvOnly,
    /// Sends and receives.
    SendRecv,
    /// Sends, receives, and is forwarded to the endpoint's other conference connections.
    Conference,
    /// Neither sends nor receives.
    #[default]
    Inactive,
    /// The circuit hears itself.
    Loopback,
    /// The circuit meets a dual-tone transponder.
    ContinuityTest,
    /// The network side hears itself.
    NetworkLoop,
    /// The network side meets a transponder (kept for compatibility).
    NetworkTest,
}

impl Mode {
    /// Every mode, in the order of the RFC.
    pub const ALL: [Mode; 9] = [
        Mode::SendOnly,
        Mode::RecvOnly,
        Mode::SendRecv,
        Mode::Conference,
        Mode::Inactive,
        Mode::Loopback,
        Mode::ContinuityTest,
        Mode::NetworkLoop,
        Mode::NetworkTest,
    ];

    /// The keyword in `M:` and `m:`.
    pub const fn keyword(self) -> &'static str {
        match self {
            Mode::SendOnly => "sendonly",
            Mode::RecvOnly => "recvonly",
            Mode::SendRecv => "sendrecv",
            Mode::Conference => "confrnce",
            Mode::Inactive => "inactive",
            Mode::Loopback => "loopback",
            Mode::ContinuityTest => "conttest",
            Mode::NetworkLoop => "netwloop",
            Mode::NetworkTest => "netwtest",
        }
    }

    /// The mode with this keyword, letter case ignored.
    pub fn parse(text: &[u8]) -> Option<Mode> {
        // Every keyword has eight letters, and setting bit 5 folds letters; no other byte becomes a lower-case letter by it.
        let text: [u8; 8] = text.try_into().ok()?;
        let folded = (u64::from_ne_bytes(text) | 0x2020_2020_2020_2020).to_ne_bytes();
        Mode::ALL.into_iter().find(|mode| mode.keyword().as_bytes() == folded)
    }

    /// Whether a connection cannot be in this mode before it has a remote description (G-CRX-06, code 527).
    pub const fn needs_remote(self) -> bool {
        matches!(self, Mode::SendOnly | Mode::SendRecv | Mode::Conference | Mode::NetworkLoop | Mode::NetworkTest)
    }

    /// Whether media of the endpoint or of the connection itself is sent to the far end.
    pub const fn sends(self) -> bool {
        self.needs_remote()
    }

    /// Whether media that arrives is used.
    pub const fn receives(self) -> bool {
        matches!(self, Mode::RecvOnly | Mode::SendRecv | Mode::Conference | Mode::NetworkLoop | Mode::NetworkTest)
    }
}
