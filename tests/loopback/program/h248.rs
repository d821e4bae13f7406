//! An H.248 gateway of the running program and a controller over UDP.

use super::agent::Agent;
use super::gateway::{Gateway, SOON, Tuning, eventually};
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

/// The controller of the gateway, which it takes.
pub struct Controller {
    socket: UdpSocket,
    gateway: SocketAddr,
    next: u32,
}

impl Controller {
    /// Binds where the gateway of `tuning` will register.
    pub fn bind(tuning: &Tuning) -> Controller {
        let socket = UdpSocket::bind((tuning.addresses.agent().ip(), 2944)).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        Controller { socket, gateway: (tuning.addresses.gateway().ip(), 2944).into(), next: 0 }
    }

    fn send(&self, body: &str) {
        self.socket.send_to(format!("!/1 [127.0.0.1]:2944 {body}").as_bytes(), self.gateway).unwrap();
    }

    /// The next message that holds this.
    fn receive(&self, wanted: &str) -> String {
        eventually(wanted, SOON, || {
            let mut buffer = [0; 8000];
            let (length, from) = self.socket.recv_from(&mut buffer).ok()?;
            assert_eq!(from, self.gateway);
            let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
            Some(text).filter(|text| text.contains(wanted))
        })
    }

    /// Takes the gateway when it registers.
    pub fn accept(&self, method: &str) {
        let text = self.receive(&format!("SC=ROOT{{SV{{MT={method},V=1"));
        let id = text.split("T=").nth(1).and_then(|rest| rest.split('{').next()).unwrap();
        self.send(&format!("P={id}{{C=-{{SC=ROOT{{SV{{V=1,20260101T00000012}}}}}}}}"));
    }

    /// A transaction: what stands in the braces of its reply.
    pub fn ask(&mut self, actions: &str) -> String {
        self.next += 1;
        let head = format!("P={}{{", self.next);
        self.send(&format!("T={}{{{actions}}}", self.next));
        let text = self.receive(&head);
        text.split_once(&head).unwrap().1.strip_suffix('}').unwrap().to_owned()
    }
}

/// Spans 1 to 28 of a T3 are MGCP's; a T1 beside it is a controller's.
fn tuning(both: u8, transport: u8, shard: u8) -> Tuning {
    let tuning = Tuning::new();
    let (gateway, controller) = (tuning.addresses.gateway().ip(), tuning.addresses.agent().ip());
    let h248 = format!("[{{ name = \"north\", listen = \"{gateway}:2944\", controllers = [\"{controller}:2944\"] }}]");
    let spans = "[{ kind = \"t3\", unit = 1 }, { kind = \"t1\", unit = 7, h248 = \"north\" }]";
    tuning.layout(both, transport, shard).list("span", spans).list("h248", &h248)
}

/// TRP-01, ASC-01, ADD-01, SUB-01: registration, a call, an alarm, what operators see, and the end, on one core and on several.
#[test]
fn a_controller_runs_calls_beside_an_agent() {
    for (both, transport, shard) in [(1, 0, 0), (2, 0, 0), (0, 1, 2)] {
        let tuning = tuning(both, transport, shard);
        let mut controller = Controller::bind(&tuning);
        let gateway = Gateway::start(tuning);
        controller.accept("RS");
        let mut agent = Agent::silent(&gateway);
        agent.answers = true;
        agent.expect("RSIP", SOON);
        let local = "M{O{MO=SR},L{\nv=0\nc=IN IP4 $\nm=audio $ RTP/AVP 0\n}}";
        let reply = controller.ask(&format!("C=${{A=ds/ds1_7/3{{M{{O{{MO=SR}}}}}},A=${{{local}}}}}"));
        assert!(reply.contains("A=ds/ds1_7/3,A=rtp/") && reply.contains("m=audio "), "{reply}");
        let rows = gateway.rows(&["endpoints", "--state", "busy"]);
        assert!(rows.len() == 1 && rows[0]["name"] == "ds/ds1-7/3", "{rows:?}");
        assert_eq!(agent.ask("CRCX", "ds/ds1-7/4", &["C: A1", "M: recvonly"]).code, Some(500));
        assert_eq!(agent.ask("CRCX", "ds/ds3-1/ds1-1/4", &["C: A1", "M: recvonly"]).code, Some(200));
        gateway.order(&["sim", "alarm", "ds/ds1-7", "los", "--now"]);
        // All that the gateway has.
        let text = controller.receive("SC=*{SV{MT=FO");
        let id = text.split("T=").nth(1).and_then(|rest| rest.split('{').next()).unwrap().to_owned();
        controller.send(&format!("P={id}{{C=-{{SC=*}}}}"));
        let reply = controller.ask("C=*{W-S=*}");
        assert_eq!(reply, "C=*{S=*}");
        assert_eq!((gateway.counter("h248_adds"), gateway.counter("h248_subtracts")), (2, 2));
        gateway.assert_sound();
    }
}

/// CTX-10, SC-05: with `spread` a context has channels of several cores, and operators see which core carries what.
#[test]
fn a_context_has_channels_of_several_cores() {
    for (both, transport, shard) in [(2, 0, 0), (0, 1, 2)] {
        let tuning = tuning(both, transport, shard);
        let (gateway, controller) = (tuning.addresses.gateway().ip(), tuning.addresses.agent().ip());
        let h248 = format!("[{{ name = \"north\", spread = true, listen = \"{gateway}:2944\", controllers = [\"{controller}:2944\"] }}]");
        let tuning = tuning.list("h248", &h248).list("span", "[{ kind = \"t1\", unit = \"7-8\", h248 = \"north\" }]").without("agent");
        let mut controller = Controller::bind(&tuning);
        let gateway = Gateway::start(tuning);
        controller.accept("RS");
        let local = "M{O{MO=SR},L{\nv=0\nc=IN IP4 $\nm=audio $ RTP/AVP 0\n}}";
        let reply = controller.ask(&format!("C=${{A=ds/ds1_7/3,A=ds/ds1_8/3,A=${{{local}}}}}"));
        assert!(reply.contains("A=ds/ds1_7/3,A=ds/ds1_8/3,A=rtp/") && reply.contains("m=audio "), "{reply}");
        let cores: Vec<u64> = gateway.rows(&["spans"]).iter().map(|row| row["core"].as_u64().unwrap()).collect();
        assert!(cores.len() == 2 && cores[0] != cores[1], "{cores:?}");
        for unit in [7, 8] {
            gateway.order(&["sim", "alarm", &format!("ds/ds1-{unit}"), "los", "--now"]);
            let text = controller.receive("MT=FO");
            let id = text.split("T=").nth(1).and_then(|rest| rest.split('{').next()).unwrap().to_owned();
            controller.send(&format!("P={id}{{C=-{{SC=ds/ds1_{unit}/*}}}}"));
        }
        let reply = controller.ask("C=*{S=*}");
        assert!(reply.matches("S=").count() == 3 && reply.contains("rtp/ps="), "{reply}");
        gateway.assert_sound();
    }
}

/// A file with nothing of MGCP needs no agent. ASC-07: a gateway that ends says so.
#[test]
fn a_gateway_may_have_controllers_only() {
    let tuning = tuning(1, 0, 0).list("span", "[{ kind = \"t1\", unit = 7, h248 = \"north\" }]").without("agent");
    let mut controller = Controller::bind(&tuning);
    let mut gateway = Gateway::start(tuning);
    controller.accept("RS");
    assert_eq!(controller.ask("C=-{AV=ds/ds1_7/*{AT{}}}").matches("AV=").count(), 24);
    gateway.assert_sound();
    // Gracefully first, forced when the grace is over (ASC-07).
    gateway.signal(libc::SIGTERM);
    controller.receive("SC=*{SV{MT=GR");
    controller.receive("SC=ROOT{SV{MT=FO,V=1,RE=\"908 MG Impending Failure\"");
    gateway.wait(SOON);
}
