//! A T1 or E1 on a card that Linux's own telephony driver (DAHDI) drives, as the machine that decides: what the driver's alarms, events,
//! counters and signalling bits mean, and what is done about them (DAH-01..14).
//!
//! [`abi`] is the driver's interface in octets: requests, the structures they take and give, events. A [`Span`] has the channels of a span;
//! whoever holds the driver's files tells it what came from them and carries out what it says. It does no IO and knows no file.
//!
//! How: the driver is used as a source of octets and bits. Digits, tones, winks, hooks, continuity and echo are the gateway's own, as on spans
//! in pseudowires; so channels with signalling are configured `cas` (raw bits) in the driver, and others `clear`.

pub mod abi;
mod alarms;
mod span;

pub use span::{Span, SpanSettings, Wants};

#[cfg(test)]
mod tests;
