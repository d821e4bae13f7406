//! LocalConnectionOptions as they are kept with a connection (RFC 3435 2.3.5, 3.2.2.10).

use super::encoding::Encodings;
use crate::proto::trunk::TelephoneEvents;

/// Gain control in dB, or automatic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Gain {
    /// The gateway decides.
    Auto,
    /// Added towards the line and subtracted from it, -9999..=9999 dB.
    Db(i16),
}

/// A network a connection can be made over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Network {
    /// IP.
    Internet,
    /// Inside the gateway, endpoint to endpoint.
    Local,
}

/// What the agent has asked for. `None`: never given, so the default holds and an audit does not list it (G-AUC-03).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// `a:` the encodings it named that the program knows, in its order.
    pub encodings: Option<Encodings>,
    /// The telephone events (RFC 4733) among them.
    pub telephone_events: TelephoneEvents,
    /// `p:` packetization period in ms, lowest and highest wanted.
    pub period_ms: Option<(u16, u16)>,
    /// `b:` bandwidth in kbit/s, lowest and highest.
    pub bandwidth_kbits: Option<(u16, u16)>,
    /// `e:` echo cancellation.
    pub echo_cancellation: Option<bool>,
    /// `gc:` gain control.
    pub gain: Option<Gain>,
    /// `s:` silence suppression.
    pub silence_suppression: Option<bool>,
    /// `t:` type of service octet.
    pub type_of_service: Option<u8>,
    /// `r:be` was given; guaranteed and controlled load are refused (532).
    pub best_effort: bool,
    /// `nt:` IN or LOCAL; other networks are refused (532).
    pub network: Option<Network>,
}

impl Options {
    /// These options where given, else those `kept` from before (G-LCO-13, G-MDX-02).
    #[must_use]
    pub fn over(self, kept: Options) -> Options {
        Options {
            encodings: self.encodings.or(kept.encodings),
            telephone_events: if self.encodings.is_some() { self.telephone_events } else { kept.telephone_events },
            period_ms: self.period_ms.or(kept.period_ms),
            bandwidth_kbits: self.bandwidth_kbits.or(kept.bandwidth_kbits),
            echo_cancellation: self.echo_cancellation.or(kept.echo_cancellation),
            gain: self.gain.or(kept.gain),
            silence_suppression: self.silence_suppression.or(kept.silence_suppression),
            type_of_service: self.type_of_service.or(kept.type_of_service),
            best_effort: self.best_effort || kept.best_effort,
            network: self.network.or(kept.network),
        }
    }
}
