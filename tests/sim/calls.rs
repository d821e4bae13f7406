//! Calls over every layout.

use tollgate::sim::{Layout, Setup, World};

pub fn world(layout: Layout) -> World {
    World::new(Setup::new(layout, 1), |_, _| {})
}

#[test]
fn a_call_is_created_modified_and_deleted() {
    for layout in Layout::ALL {
        let mut w = world(layout);
        let made = w.ask("CRCX", "ds/ds1-3/7", &["C: A1", "M: recvonly"]);
        assert_eq!(made.code, Some(200), "{made:?}");
        let id = made.get("I").unwrap().to_owned();
        assert!(made.description.contains("m=audio"));
        let sdp = ["v=0", "c=IN IP4 192.0.2.50", "m=audio 40000 RTP/AVP 0"];
        let changed = w.ask("MDCX", "ds/ds1-3/7", &[&["C: A1", &format!("I: {id}"), "M: sendrecv", ""], &sdp[..]].concat());
        assert_eq!(changed.code, Some(200), "{changed:?}");
        let deleted = w.ask("DLCX", "ds/ds1-3/7", &["C: A1", &format!("I: {id}")]);
        assert_eq!(deleted.code, Some(250), "{deleted:?}");
        assert!(deleted.get("P").is_some());
        w.run_for(std::time::Duration::from_secs(1));
        w.check_quiet();
    }
}
