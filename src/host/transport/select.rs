//! Which transport: the register of them, and the choice by trying at run time.

use std::fmt;
use std::io;
use std::net::UdpSocket;
use std::str::FromStr;

use super::mmsg::Mmsg;
use super::uring::Uring;
use super::xdp::Xdp;
use super::{Sleeper, Transport, TransportSettings};
use crate::host::clock::Clock;
use crate::host::frame::FramePool;

macro_rules! transports {
    ($($(#[doc = $help:literal])+ $name:literal = $kind:ident,)+) => {
        /// The transports there are, the preferred first.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Kind { $($(#[doc = $help])+ $kind,)+ }

        impl Kind {
            /// Every transport, in order of preference.
            pub const ALL: &'static [Kind] = &[$(Kind::$kind,)+];

            /// The word for it in the tuning file.
            pub const fn name(self) -> &'static str {
                match self { $(Kind::$kind => $name,)+ }
            }

            /// Tries whether this machine allows it.
            ///
            /// # Errors
            /// The reason why not, for the operator.
            pub fn probe(self) -> Result<(), String> {
                match self { $(Kind::$kind => $kind::probe(),)+ }
            }

            /// Opens it for one core, on that core's own thread.
            ///
            /// # Errors
            /// What the kernel refused.
            pub fn open(
                self,
                sockets: Vec<UdpSocket>,
                pool: FramePool,
                sleeper: Sleeper,
                clock: Clock,
                settings: &TransportSettings,
            ) -> io::Result<Box<dyn Transport>> {
                Ok(match self { $(Kind::$kind => Box::new($kind::open(sockets, pool, sleeper, clock, settings)?),)+ })
            }
        }
    };
}

impl Kind {
    /// The ones that are tried when none is named, in order.
    pub const AUTO: &'static [Kind] = &[Kind::Uring, Kind::Mmsg];
}

transports! {
    /// io_uring: one system call per batch for both directions, none while spinning.
    "uring" = Uring,
    /// `recvmmsg` and `sendmmsg`, sleeping in epoll by mio.
    "mio" = Mmsg,
    /// AF_XDP: past the kernel's network stack. Only by name: it needs privileges and an interface that suits it.
    "xdp" = Xdp,
}

/// What the tuning file asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Wanted {
    /// The first one that works.
    #[default]
    Auto,
    /// This one or none.
    Only(Kind),
}

impl FromStr for Wanted {
    type Err = String;

    fn from_str(word: &str) -> Result<Wanted, String> {
        if word == "auto" {
            return Ok(Wanted::Auto);
        }
        let kind = Kind::ALL.iter().find(|kind| kind.name() == word);
        kind.map(|&kind| Wanted::Only(kind)).ok_or_else(|| {
            let names: Vec<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
            format!("\"{word}\" is no transport; allowed: auto, {}", names.join(", "))
        })
    }
}

/// The transport chosen, and why not a preferred one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Choice {
    /// The one to open.
    pub kind: Kind,
    /// The preferred ones that do not work here, each with its reason.
    pub refused: Vec<(Kind, String)>,
}

impl Choice {
    /// Tries what is wanted.
    ///
    /// # Errors
    /// Why nothing that is wanted works.
    pub fn make(wanted: Wanted) -> Result<Choice, String> {
        Choice::make_with(wanted, Kind::probe)
    }

    fn make_with(wanted: Wanted, probe: impl Fn(Kind) -> Result<(), String>) -> Result<Choice, String> {
        let candidates = match &wanted {
            Wanted::Auto => Kind::AUTO,
            Wanted::Only(kind) => std::slice::from_ref(kind),
        };
        let mut refused = Vec::new();
        for &kind in candidates {
            match probe(kind) {
                Ok(()) => return Ok(Choice { kind, refused }),
                Err(reason) => refused.push((kind, reason)),
            }
        }
        let reasons: Vec<String> = refused.iter().map(|(kind, reason)| format!("{}: {reason}", kind.name())).collect();
        Err(format!("no transport works here: {}", reasons.join("; ")))
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "transport {}", self.kind.name())?;
        self.refused.iter().try_for_each(|(kind, reason)| write!(f, " (not {}: {reason})", kind.name()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read() {
        assert_eq!("auto".parse(), Ok(Wanted::Auto));
        for &kind in Kind::ALL {
            assert_eq!(kind.name().parse(), Ok(Wanted::Only(kind)));
        }
        assert!("dpdk".parse::<Wanted>().is_err_and(|e| e.contains("auto, uring, mio, xdp")));
    }

    #[test]
    fn auto_falls_back_with_a_reason_and_a_named_one_does_not() {
        let denied = |kind| if kind == Kind::Uring { Err("forbidden".to_string()) } else { Ok(()) };
        let choice = Choice::make_with(Wanted::Auto, denied).expect("mio");
        assert_eq!(choice.kind, Kind::Mmsg);
        assert_eq!(choice.to_string(), "transport mio (not uring: forbidden)");
        assert!(Choice::make_with(Wanted::Only(Kind::Uring), denied).is_err_and(|e| e.contains("uring: forbidden")));
        assert_eq!(Choice::make_with(Wanted::Auto, |_| Ok(())).expect("any").to_string(), "transport uring");
    }
}
