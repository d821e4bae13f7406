//! The ZeroMQ sockets of a cluster, set up so that a link only ever loses messages: nothing is queued for a peer that is not there
//! (IMMEDIATE, ROUTER_MANDATORY), queues are bounded, and nothing lingers.

use super::keys::Keys;
use crate::proto::cac::wire::MESSAGE_MAX;
use anyhow::{Context, Result};
use std::net::SocketAddr;

/// Messages in one direction's queue: a sync's chunks and the requests of a second.
const QUEUE: i32 = 20_000;

/// How long an end waits for its last words to be sent, in milliseconds.
const LINGER: i32 = 200;

fn prepare(socket: &zmq::Socket) -> zmq::Result<()> {
    // What a process says last is given a moment to go.
    socket.set_linger(LINGER)?;
    socket.set_sndhwm(QUEUE)?;
    socket.set_rcvhwm(QUEUE)?;
    socket.set_maxmsgsize(MESSAGE_MAX as i64)?;
    // A cut that no packet tells of ends the connection before the kernel would; sessions end sooner, by heartbeats of their own.
    socket.set_heartbeat_ivl(1_000)?;
    socket.set_heartbeat_timeout(3_000)
}

fn address(address: SocketAddr) -> String {
    format!("tcp://{address}")
}

/// A gateway's socket, connecting to the central node. `server`: its public key.
pub fn dealer(context: &zmq::Context, to: SocketAddr, keys: Option<&(Keys, Vec<u8>)>) -> zmq::Result<zmq::Socket> {
    let socket = context.socket(zmq::DEALER)?;
    prepare(&socket)?;
    socket.set_immediate(true)?;
    socket.set_ipv6(to.is_ipv6())?;
    socket.set_connect_timeout(1_000)?;
    if let Some((keys, server)) = keys {
        socket.set_curve_serverkey(server)?;
        socket.set_curve_publickey(&keys.public)?;
        socket.set_curve_secretkey(&keys.secret)?;
    }
    socket.connect(&address(to))?;
    Ok(socket)
}

/// The central node's socket, listening.
///
/// # Errors
/// What the system refused.
pub fn router(context: &zmq::Context, listen: &[SocketAddr], keys: Option<&Keys>) -> Result<zmq::Socket> {
    let socket = context.socket(zmq::ROUTER)?;
    prepare(&socket)?;
    socket.set_router_mandatory(true)?;
    socket.set_ipv6(listen.iter().any(SocketAddr::is_ipv6))?;
    if let Some(keys) = keys {
        socket.set_curve_server(true)?;
        socket.set_curve_secretkey(&keys.secret)?;
        socket.set_zap_domain(super::zap::DOMAIN)?;
    }
    for &one in listen {
        socket.bind(&address(one)).with_context(|| format!("cac.listen {one}"))?;
    }
    Ok(socket)
}
