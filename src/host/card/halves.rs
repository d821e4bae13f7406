//! Connections inside the gateway, whose other halves are at RTP ports of this core or another.

use crate::proto::base::EndpointIndex;
use crate::proto::trunk::Media;
use std::net::SocketAddr;

/// By connection: what is known of its other half.
pub(super) struct Halves(Box<[Half]>);

/// The other half of a connection.
#[derive(Clone, Copy, Default)]
struct Half {
    /// Which one it is.
    other: Option<(EndpointIndex, u32)>,
    /// Where it receives, once it is there.
    at: Option<SocketAddr>,
}

impl Halves {
    /// For so many connections.
    pub fn new(connections: u32) -> Halves {
        Halves((0..connections).map(|_| Half::default()).collect())
    }

    /// What an order means to a card to which a connection inside the gateway is like any other. An order without an address leaves the
    /// one there was, but for one that names another half: nothing is sent until that one tells where it is.
    pub fn outward(&mut self, connection: u32, media: &Media) -> Media {
        let Some(half) = self.0.get_mut(connection as usize) else { return *media };
        if !media.inside {
            *half = Half::default();
            return *media;
        }
        let is_another = half.other.is_some() && half.other != media.other;
        let kept = half.at.filter(|_| !is_another);
        *half = Half { other: media.other, at: media.remote.or(kept) };
        Media { inside: false, remote: half.at, ..*media }
    }

    /// The half that received there has gone: whether it is the one that this connection sends to. Then it sends to nobody until it is told
    /// of one again.
    pub fn gone(&mut self, connection: u32, at: SocketAddr) -> bool {
        self.0.get_mut(connection as usize).is_some_and(|half| half.at.take_if(|known| *known == at).is_some())
    }

    /// The connection has ended.
    pub fn forget(&mut self, connection: u32) {
        if let Some(half) = self.0.get_mut(connection as usize) {
            *half = Half::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told_of(half: u32, port: Option<u16>) -> Media {
        let remote = port.map(|port| ([127, 0, 0, 1], port).into());
        Media { inside: true, other: (half > 0).then_some((EndpointIndex(half), half)), remote, ..Media::default() }
    }

    #[test]
    fn a_voice_stays_with_its_half_and_does_not_go_on_to_it_when_another_one_is_named() {
        let mut halves = Halves::new(1);
        let port = |media: Media| media.remote.map(|remote| remote.port());
        assert_eq!(port(halves.outward(0, &told_of(0, None))), None, "made without a description");
        assert_eq!(port(halves.outward(0, &told_of(0, Some(6_000)))), Some(6_000), "it meets the first");
        assert_eq!(port(halves.outward(0, &told_of(1, None))), Some(6_000), "which is who it is told of");
        assert_eq!(port(halves.outward(0, &told_of(1, None))), Some(6_000), "an order of the mode alone");
        assert_eq!(port(halves.outward(0, &told_of(2, None))), None, "pointed elsewhere, where perhaps nobody is");
        assert_eq!(port(halves.outward(0, &told_of(2, Some(6_002)))), Some(6_002), "it meets the second");
        let second = ([127, 0, 0, 1], 6_002).into();
        assert!(!halves.gone(0, ([127, 0, 0, 1], 6_000).into()), "the first is not its any more");
        assert!(halves.gone(0, second) && !halves.gone(0, second) && !halves.gone(9, second));
        assert_eq!(port(halves.outward(0, &told_of(2, None))), None, "the second has gone");
        assert_eq!(port(halves.outward(0, &told_of(2, Some(6_004)))), Some(6_004), "a later one of the same name");
        halves.forget(0);
        assert_eq!(port(halves.outward(0, &told_of(2, None))), None, "a later connection");
        assert!(!halves.outward(0, &told_of(2, None)).inside);
        assert_eq!(port(halves.outward(9, &told_of(2, Some(6_004)))), Some(6_004), "one that is none is left as it is");
    }
}
