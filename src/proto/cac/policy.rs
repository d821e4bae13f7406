//! What a node does with new calls while nobody decides for it (R13, R40).

/// The rule of one scope.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Policy {
    /// All are taken: the rule of the source text, and the default.
    #[default]
    Open,
    /// As many as there were when the contact was lost: a call that ends may be replaced. The central node goes on counting the calls
    /// of a node that it has lost, so the limit holds whatever happens.
    HoldLast,
    /// As many as an equal part of the limit among the nodes.
    Share,
    /// None.
    Closed,
}

impl Policy {
    /// All of them.
    pub const ALL: [Policy; 4] = [Policy::Open, Policy::HoldLast, Policy::Share, Policy::Closed];

    /// As operators write it.
    pub const fn name(self) -> &'static str {
        match self {
            Policy::Open => "open",
            Policy::HoldLast => "hold-last",
            Policy::Share => "share",
            Policy::Closed => "closed",
        }
    }

    /// Whether the calls of a lost node go on counting until it is known to be dead (R41); otherwise it is forgotten after 30 s (R9).
    pub const fn keeps_counting(self) -> bool {
        matches!(self, Policy::HoldLast)
    }
}
