//! Protected media allocates nothing per packet.

use super::counting::allocations;
use std::net::SocketAddr;
use tollgate::proto::base::srtp::{Crypto, LIFETIME, MasterKey, MediaKeys, Suite};
use tollgate::proto::base::{Mode, Time};
use tollgate::proto::trunk::{Coding, Media, Payloads};
use tollgate::proto::voice::{Ds0, Kind, Settings};

#[test]
fn protected_packets_allocate_nothing() {
    let far = SocketAddr::from(([192, 0, 2, 1], 6_000));
    let payloads = Payloads { sent: Some((Coding::Mu, 0)), received: [Some(0), None, None], ..Payloads::default() };
    let media = Media { mode: Mode::SendRecv, packet_bytes: 160, period_ms: 20, remote: Some(far), payloads, ..Media::default() };
    let crypto = |octet| Crypto { tag: 1, suite: Suite::Tag80, key: MasterKey::new([octet; MasterKey::OCTETS]), lifetime: LIFETIME };
    let mut pair = [(1, 2), (2, 1)].map(|(local, remote)| {
        let mut ds0 = Ds0::new(Settings::default());
        assert!(ds0.open(Time::ZERO, 0, &media, local.into()));
        ds0.protect(0, &MediaKeys { local: Some(crypto(local)), remote: Some(crypto(remote)) });
        ds0
    });
    let before = allocations();
    for step in 0..400 {
        let now = Time::from_millis(step * 20);
        for side in 0..2 {
            let [one, two] = &mut pair;
            let (from, to) = if side == 0 { (one, two) } else { (two, one) };
            from.exchange(now, &mut [0x42; 160], &mut |_, _, kind, packet| {
                // One that was changed, as it was, and a replay.
                to.packet(now, 0, far, Kind::Rtp, &packet[..packet.len() - 1]);
                to.packet(now, 0, far, kind, packet);
                to.packet(now, 0, far, kind, packet);
            });
            while from.poll().is_some() {}
        }
    }
    assert_eq!(allocations() - before, 0);
    let report = pair[1].report(0);
    assert!(report.packets_received >= 395 && report.replayed >= 395 && report.unauthentic >= 395, "{report:?}");
}
