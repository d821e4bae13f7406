//! B (RFC 3435 appendix B) and BA (RFC 3624).

use super::{Item, Package};

pub(super) static B: Package = Package { name: "B", version: 0, items: &[Item::event("enf"), Item::event("oef"), Item::event("qbo")] };

/// Parameters of audits; no event.
pub(super) static BA: Package = Package { name: "BA", version: 0, items: &[] };
