//! One nftables chain, asked for as `nft` would: that program need not be here.

use std::io::{Read, Write};
use std::time::Duration;

const CREATE: u16 = 0x400;
const ACK: u16 = 4;
const REQUEST: u16 = 1;

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = ((4 + value.len()) as u16).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn message(kind: u16, flags: u16, family: u8, resource: u16, attributes: &[Vec<u8>]) -> Vec<u8> {
    let mut body = vec![family, 0];
    body.extend(resource.to_be_bytes());
    body.extend(attributes.concat());
    let mut bytes = ((16 + body.len()) as u32).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend((flags | REQUEST).to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend(body);
    bytes
}

/// `table ip guard { chain in { type filter hook input priority 0; policy drop; } }`
pub fn drop_everything() -> Result<(), String> {
    const SUBSYSTEM: u16 = 10;
    const IPV4: u8 = 2;
    let hook = [attribute(1, &1u32.to_be_bytes()), attribute(2, &0u32.to_be_bytes())].concat();
    let chain =
        [attribute(1, b"guard\0"), attribute(3, b"in\0"), attribute(4 | 0x8000, &hook), attribute(5, &[0; 4]), attribute(7, b"filter\0")];
    let batch = [
        message(16, 0, 0, SUBSYSTEM, &[]),
        message(SUBSYSTEM << 8, CREATE, IPV4, 0, &[attribute(1, b"guard\0")]),
        message(SUBSYSTEM << 8 | 3, CREATE | ACK, IPV4, 0, &chain),
        message(17, 0, 0, SUBSYSTEM, &[]),
    ];
    let open = || socket2::Socket::new(socket2::Domain::from(libc::AF_NETLINK), socket2::Type::RAW, Some(libc::NETLINK_NETFILTER.into()));
    let mut socket = open().map_err(|error| format!("no nftables here: {error}"))?;
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    socket.write_all(&batch.concat()).map_err(|error| format!("no nftables here: {error}"))?;
    let mut answer = [0; 4096];
    let length = socket.read(&mut answer).map_err(|error| format!("nftables does not answer: {error}"))?;
    let code = i32::from_ne_bytes(answer[16..20].try_into().unwrap());
    if length >= 20 && code == 0 { Ok(()) } else { Err(format!("nftables refuses: {}", std::io::Error::from_raw_os_error(-code))) }
}
