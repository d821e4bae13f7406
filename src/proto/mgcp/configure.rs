//! EndpointConfiguration, alone or encapsulated (RFC 3435 2.3.2).

use super::{Calls, PACKAGE_UNKNOWN, Refused};
use crate::proto::base::EndpointIndex;
use crate::proto::codec::mgcp::{Command, Encoding as LawText};
use crate::proto::endpoint::Law;

/// What to configure: the line coding, when given (G-EPC-02, G-EPC-03).
pub type ConfigurePlan = Option<Law>;

/// Reads `B:` of `command`.
#[inline]
pub fn validate(_calls: &Calls, command: &Command<'_>) -> Result<ConfigurePlan, Refused> {
    let Some(bearer) = command.bearer()? else { return Ok(None) };
    if bearer.packages().next().is_some() {
        return Err(PACKAGE_UNKNOWN);
    }
    Ok(bearer.encoding.map(|law| match law {
        LawText::ALaw => Law::A,
        LawText::MuLaw => Law::Mu,
    }))
}

/// Does it.
pub fn apply(calls: &mut Calls, endpoint: EndpointIndex, plan: ConfigurePlan) {
    if let (Some(law), Some(state)) = (plan, calls.endpoints.get_mut(endpoint)) {
        state.law = law;
        state.law_given = true;
    }
}
