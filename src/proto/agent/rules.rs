//! The rules of RFC 3435 that an agent keeps, each of which can be broken on purpose: what a gateway does then is worth seeing
//! (docs/conformance/agent.md).

macro_rules! rules {
    ($($(#[doc = $help:literal])+ $variant:ident = $name:literal,)+) => {
        /// A rule.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Rule { $($(#[doc = $help])+ $variant,)+ }

        impl Rule {
            /// Every one.
            pub const ALL: &'static [Rule] = &[$(Rule::$variant,)+];

            /// Its name on a command line.
            pub const fn name(self) -> &'static str {
                match self { $(Rule::$variant => $name,)+ }
            }
        }
    };
}

rules! {
    /// The answer to a Notify and the next NotificationRequest go in one datagram, the answer first (4.4.1).
    Lockstep = "lockstep",
    /// A connection has one command outstanding (4.4.4 rule 3). Broken: each ModifyConnection goes twice at once.
    OneCommand = "one-command",
    /// An endpoint has one NotificationRequest outstanding (4.4.4 rule 4). Broken: each next request goes twice at once.
    OneRequest = "one-request",
    /// No CreateConnection before the DeleteConnection over its endpoint is answered (4.4.4 rule 5).
    WildcardFirst = "wildcard-first",
    /// A CreateConnection with a request in it waits for the request before (4.4.4 rule 6).
    Embedded = "embedded",
    /// An endpoint has one EndpointConfiguration outstanding (4.4.4 rule 10). Broken: each call begins with two at once.
    OneConfiguration = "one-configuration",
    /// A gateway that says 101 or 409 gets fewer new commands (4.4.8).
    LoadControl = "load-control",
    /// When an address does not answer the next one is tried (4.2, 4.3).
    Alternates = "alternates",
}

impl Rule {
    /// The one with this name.
    pub fn by_name(name: &str) -> Option<Rule> {
        Rule::ALL.iter().copied().find(|rule| rule.name() == name)
    }
}

/// The rules that are broken.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Broken(u16);

impl Broken {
    /// Whether this one is.
    pub fn has(self, rule: Rule) -> bool {
        self.0 >> rule as u16 & 1 == 1
    }
}

impl FromIterator<Rule> for Broken {
    fn from_iter<I: IntoIterator<Item = Rule>>(rules: I) -> Broken {
        Broken(rules.into_iter().fold(0, |all, rule| all | 1 << rule as u16))
    }
}
