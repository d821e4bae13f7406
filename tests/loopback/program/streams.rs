//! An H.248 gateway over TCP: what a controller may do to a stream, and what it must not be able to.

use super::gateway::{Gateway, SOON, Tuning, Watch, eventually, pause};
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

/// The controller's end of a stream.
struct Stream(TcpStream);

impl Stream {
    /// A message in its TPKT.
    fn packed(body: &str) -> Vec<u8> {
        let message = format!("!/1 [127.0.0.1]:2944 {body}");
        let [high, low] = (message.len() as u16 + 4).to_be_bytes();
        [&[3, 0, high, low], message.as_bytes()].concat()
    }

    fn send(&mut self, body: &str) {
        self.0.write_all(&Stream::packed(body)).unwrap();
    }

    /// The next message.
    fn receive(&mut self) -> String {
        let mut head = [0; 4];
        self.0.read_exact(&mut head).unwrap();
        assert_eq!(head[..2], [3, 0]);
        let mut message = vec![0; usize::from(u16::from_be_bytes([head[2], head[3]])) - 4];
        self.0.read_exact(&mut message).unwrap();
        String::from_utf8(message).unwrap()
    }

    /// Takes the gateway when it registers by this method.
    fn accept(&mut self, method: &str) {
        let text = self.receive();
        assert!(text.contains(&format!("SC=ROOT{{SV{{MT={method},V=1")), "{text}");
        let id = text.split("T=").nth(1).and_then(|rest| rest.split('{').next()).unwrap();
        self.send(&format!("P={id}{{C=-{{SC=ROOT{{SV{{V=1,20260101T00000012}}}}}}}}"));
    }

    fn ask(&mut self, id: u32, actions: &str) -> String {
        self.send(&format!("T={id}{{{actions}}}"));
        self.receive()
    }

    /// The gateway has ended it.
    fn is_ended(&mut self) -> bool {
        loop {
            match self.0.read(&mut [0; 4096]) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) => return error.kind() == ErrorKind::ConnectionReset,
            }
        }
    }
}

/// Where controllers listen, and who comes.
struct Listener(TcpListener);

impl Listener {
    fn bind(tuning: &Tuning) -> Listener {
        Listener(TcpListener::bind((tuning.addresses.agent().ip(), 2944)).unwrap())
    }

    fn stream(&self) -> Stream {
        self.0.set_nonblocking(true).unwrap();
        let (stream, _) = eventually("the gateway opens a stream", SOON, || self.0.accept().ok());
        ready(stream)
    }
}

fn ready(stream: TcpStream) -> Stream {
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    Stream(stream)
}

fn tuning() -> Tuning {
    let tuning = Tuning::new();
    let controllers = [tuning.addresses.agent().ip()];
    with_controllers(tuning, &controllers)
}

/// The ports of gateway and controllers are those of the text encoding (TCP-05).
fn with_controllers(tuning: Tuning, controllers: &[IpAddr]) -> Tuning {
    let gateway = tuning.addresses.gateway().ip();
    let controllers: Vec<String> = controllers.iter().map(|ip| format!("\"{ip}\"")).collect();
    let h248 = format!("transport = \"tcp\", listen = \"{gateway}\", controllers = [{}]", controllers.join(", "));
    let spans = "[{ kind = \"t3\", unit = 1, h248 = \"north\" }, { kind = \"t1\", unit = 7, h248 = \"north\" }]";
    let tuning = tuning.list("span", spans).without("agent");
    tuning.list("h248", &format!("[{{ name = \"north\", {h248} }}]"))
}

const AUDIT: &str = "C=-{AV=ds/ds1_7/1{AT{}}}";

/// TCP-01, TCP-02: by both transports, on one core, on the second of two, and on a core without sockets.
#[test]
fn messages_are_cut_out_of_the_stream_in_each_layout_of_cores() {
    for (kind, both, transport, shard) in [("mio", 1, 0, 0), ("auto", 2, 0, 0), ("auto", 0, 1, 2)] {
        let tuning = tuning().layout(both, transport, shard).set("transport.kind", &format!("{kind:?}"));
        let listener = Listener::bind(&tuning);
        let gateway = Gateway::start(tuning);
        let mut stream = listener.stream();
        stream.accept("RS");
        // Several in one piece, and one in pieces.
        let many: Vec<u8> = (1..=40).flat_map(|id| Stream::packed(&format!("T={id}{{{AUDIT}}}"))).collect();
        stream.0.write_all(&many).unwrap();
        for id in 1..=40 {
            assert!(stream.receive().contains(&format!("P={id}{{C=-{{AV=ds/ds1_7/1}}}}")));
        }
        for piece in Stream::packed(&format!("T=41{{{AUDIT}}}")).chunks(7) {
            stream.0.write_all(piece).unwrap();
            pause(Duration::from_millis(3));
        }
        assert!(stream.receive().contains("P=41{"));
        // The same request again is the same transaction (TCP-02).
        assert!(stream.ask(41, AUDIT).contains("P=41{"));
        assert_eq!(gateway.counter("commands_repeated"), 1);
        counts(&gateway, "streams_opened", 1);
        // A datagram is none of its business.
        let socket = UdpSocket::bind((gateway.tuning.addresses.agent().ip(), 2944)).unwrap();
        socket.send_to(b"!/1 [127.0.0.1]:2944 T=42{C=-{AV=ROOT{AT{}}}}", (gateway.tuning.addresses.gateway().ip(), 2944)).unwrap();
        counts(&gateway, "dropped_other_transport", 1);
        gateway.assert_sound();
    }
}

/// ASC-10: a stream that ends is the association lost: the gateway comes back, calls stay. Controllers may open streams, others may not.
#[test]
fn a_stream_that_ends_is_opened_again_and_controllers_open_their_own() {
    let tuning = tuning();
    let (at, controller, stranger) = (tuning.addresses.gateway().ip(), tuning.addresses.agent().ip(), tuning.addresses.stranger().ip());
    let listener = Listener::bind(&tuning);
    let gateway = Gateway::start(tuning);
    let mut stream = listener.stream();
    stream.accept("RS");
    stream.ask(1, "C=${A=ds/ds1_7/3}");
    drop(stream);
    let mut stream = listener.stream();
    stream.accept("DC");
    assert!(stream.ask(2, "C=*{AV=ds/ds1_7/*{AT{}}}").contains("AV=ds/ds1_7/3"));
    // One that the controller opens; replies go to where requests come from.
    let mut own = ready(from(controller, (at, 2944).into()));
    assert!(own.ask(3, AUDIT).contains("P=3{"));
    let mut others = ready(from(stranger, (at, 2944).into()));
    assert!(others.is_ended());
    counts(&gateway, "streams_refused", 1);
    // While one of two is left nothing is lost.
    drop(stream);
    counts(&gateway, "streams_ended", 2);
    assert!(own.ask(4, AUDIT).contains("P=4{"));
    assert_eq!(gateway.counter("h248_controllers_lost"), 1);
    // There is room for so many and no more.
    let more: Vec<Stream> = (0..20).map(|_| ready(from(controller, (at, 2944).into()))).collect();
    counts(&gateway, "streams_refused", 6);
    drop(more);
    gateway.assert_sound();
}

/// A counter reaches this; what transports count is known a little later.
fn counts(gateway: &Gateway, name: &str, wanted: u64) {
    let looks = || (gateway.counter(name) >= wanted).then_some(());
    eventually(name, SOON, looks);
    assert_eq!(gateway.counter(name), wanted, "{name}");
}

/// A stream from this address.
fn from(ip: IpAddr, to: SocketAddr) -> TcpStream {
    let socket = socket2::Socket::new(socket2::Domain::for_address(to), socket2::Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::new(ip, 0).into()).unwrap();
    socket.connect(&to.into()).unwrap();
    socket.into()
}

/// TCP-01: garbage ends a stream, half a message waits, and who does not read holds up nobody and takes bounded memory.
#[test]
fn what_is_wrong_with_one_stream_is_no_harm_to_another() {
    let tuning = tuning();
    let (at, controller) = (tuning.addresses.gateway().ip(), tuning.addresses.agent().ip());
    let listener = Listener::bind(&tuning);
    let gateway = Gateway::start(tuning);
    let mut stream = listener.stream();
    stream.accept("RS");
    let open = || ready(from(controller, (at, 2944).into()));
    for garbage in [&b"MEGACO/1 [127.0.0.1]:2944"[..], &[3, 0, 0, 3], &[3, 0, 255, 255], &[0; 64]] {
        let mut other = open();
        other.0.write_all(garbage).unwrap();
        assert!(other.is_ended(), "{garbage:?}");
    }
    counts(&gateway, "streams_malformed", 4);
    // An empty message is one: unreadable, and the stream goes on.
    let mut half = open();
    half.0.write_all(&[3, 0, 0, 4]).unwrap();
    assert!(half.ask(1, AUDIT).contains("P=1{"));
    half.0.write_all(&[3, 0, 0]).unwrap();
    // Asks for long replies and reads none of them.
    let mut deaf = open();
    socket2::SockRef::from(&deaf.0).set_recv_buffer_size(4096).unwrap();
    let watch = Watch::start();
    let mut id = 100;
    while gateway.counter("streams_full") == 0 {
        assert!(watch.elapsed() < SOON);
        let many: Vec<u8> = (id..id + 300).flat_map(|id| Stream::packed(&format!("T={id}{{C=-{{AV=ds/ds1_7/*{{AT{{PG}}}}}}}}"))).collect();
        id += 300;
        deaf.0.write_all(&many).unwrap();
    }
    assert!(stream.ask(2, AUDIT).contains("P=2{"));
    gateway.assert_sound();
}

/// ASC-03: a controller that leaves streams behind has its own places, and the next controller has others.
#[test]
fn streams_that_one_controller_leaves_behind_lock_out_no_other() {
    let tuning = Tuning::new();
    let (at, first, second) = (tuning.addresses.gateway().ip(), tuning.addresses.agent().ip(), tuning.addresses.stranger().ip());
    let tuning = with_controllers(tuning, &[first, second]);
    let listener = Listener::bind(&tuning);
    let backup = Listener(TcpListener::bind((second, 2944)).unwrap());
    let gateway = Gateway::start(tuning);
    let mut stream = listener.stream();
    stream.accept("RS");
    let left: Vec<Stream> = (0..16).map(|_| ready(from(first, (at, 2944).into()))).collect();
    counts(&gateway, "streams_refused", 9);
    // The other one comes by itself, and is reached when the first one is gone.
    let mut own = ready(from(second, (at, 2944).into()));
    assert!(own.ask(1, AUDIT).contains("ER=504{"));
    drop(own);
    counts(&gateway, "streams_ended", 1);
    stream.ask(2, &format!("C=-{{SC=ROOT{{SV{{MT=HO,RE=\"903 MGC Directed Change\",MG=[{second}]:2944}}}}}}"));
    backup.stream().accept("HO");
    drop(left);
    gateway.assert_sound();
}

/// ASC-03: what is to be said to a controller that does not answer our stream, and has opened its own, leaves on that.
#[test]
fn a_stream_that_nobody_answers_is_not_waited_for_when_there_is_another() {
    let tuning = tuning();
    let (at, controller) = (tuning.addresses.gateway().ip(), tuning.addresses.agent().ip());
    let silent = Silent::bind((controller, 2944).into());
    let gateway = Gateway::start(tuning);
    counts(&gateway, "streams_opened", 1);
    let mut own = ready(from(controller, (at, 2944).into()));
    own.accept("RS");
    assert!(own.ask(1, AUDIT).contains("P=1{"));
    counts(&gateway, "streams_opened", 2);
    assert_eq!(gateway.counter("streams_ended"), 0, "the first one still waits for its answer");
    drop(silent);
    gateway.assert_sound();
}

/// A listener that is full: the kernel does not answer who comes now.
struct Silent {
    _listener: socket2::Socket,
    _full: Vec<TcpStream>,
}

impl Silent {
    fn bind(at: SocketAddr) -> Silent {
        let listener = socket2::Socket::new(socket2::Domain::for_address(at), socket2::Type::STREAM, None).unwrap();
        listener.bind(&at.into()).unwrap();
        listener.listen(0).unwrap();
        let wait = Duration::from_millis(100);
        let full = std::iter::from_fn(|| TcpStream::connect_timeout(&at, wait).ok()).take(8).collect();
        Silent { _listener: listener, _full: full }
    }
}
