//! Who a connection to the central node is from: ZeroMQ asks for each (ZAP, ZeroMQ RFC 27), and a node is who its key says (R34).

use std::collections::BTreeMap;

/// What the central node's socket says of itself.
pub const DOMAIN: &str = "tollgate-cac";
/// Where ZeroMQ asks, inside the process.
const ADDRESS: &str = "inproc://zeromq.zap.01";

/// Answers ZeroMQ.
pub struct Doorman {
    socket: zmq::Socket,
    /// The node of each public key.
    nodes: BTreeMap<Vec<u8>, u32>,
    refused: u64,
}

impl Doorman {
    /// The doorman for these nodes; before the socket that listens.
    pub fn new(context: &zmq::Context, nodes: BTreeMap<Vec<u8>, u32>) -> zmq::Result<Doorman> {
        let socket = context.socket(zmq::REP)?;
        socket.set_linger(0)?;
        socket.bind(ADDRESS)?;
        Ok(Doorman { socket, nodes, refused: 0 })
    }

    /// What to wait for.
    pub fn item(&self) -> zmq::PollItem<'_> {
        self.socket.as_poll_item(zmq::POLLIN)
    }

    /// Connections refused so far.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Answers all that was asked.
    pub fn serve(&mut self) {
        while let Ok(frames) = self.socket.recv_multipart(zmq::DONTWAIT) {
            let frame = |place: usize| frames.get(place).map_or(&[][..], Vec::as_slice);
            let node = (frame(5) == b"CURVE").then(|| self.nodes.get(frame(6))).flatten();
            let (status, text, user) = match node {
                Some(node) => ("200", "", node.to_string()),
                None => ("400", "unknown key", String::new()),
            };
            self.refused += u64::from(node.is_none());
            let answer = [frame(0), frame(1), status.as_bytes(), text.as_bytes(), user.as_bytes(), b""];
            // Who asked may have gone.
            let _ = self.socket.send_multipart(answer, zmq::DONTWAIT);
        }
    }
}
