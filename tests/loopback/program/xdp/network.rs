//! What networks do: fragments, neighbours, links, IPv6, VLANs, and everything that is the kernel's (issue 3, must hold 1).

use super::super::agent::Agent;
use super::super::gateway::{Addresses, Gateway, SOON, Tuning, eventually};
use super::super::pair::{FAR, NEAR, ip};
use super::{BASE, counter, in_a_pair, tuning, warm_up};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsRawFd;
use std::process::Command;
use std::time::Duration;

/// Where the kernel has VLAN interfaces. That it goes past the kernel by tags and no other is shown frame by frame in vlan.rs: a veth pair
/// carries the tag beside the frame, where only the kernel sees it.
#[test]
fn agents_on_a_vlan_are_served() {
    in_a_pair("agents_on_a_vlan_are_served", |pair| {
        let vlan = |lower: &str, upper: &str, address: &str| -> bool {
            let made =
                Command::new("ip").args(["link", "add", "link", lower, "name", upper, "type", "vlan", "id", "100"]).output().unwrap();
            let made = made.status.success();
            if made {
                ip(&["address", "add", address, "dev", upper]);
                ip(&["link", "set", upper, "up"]);
            }
            made
        };
        if !(vlan(NEAR, "gw0.100", "10.0.1.4/24") && pair.within(|| vlan(FAR, "ca0.100", "10.0.1.6/24"))) {
            return eprintln!("skipped: agents_on_a_vlan_are_served: this kernel has no VLAN interfaces");
        }
        let tuning = Tuning::at(Addresses::from(Ipv4Addr::new(10, 0, 1, 4)));
        let tuning = tuning.set("transport.kind", "\"xdp\"").set("cards.sim.allow_network", "true");
        let gateway = Gateway::start(tuning.set("cards.sim.media_address", "\"10.0.1.4\""));
        assert!(gateway.ready.contains("transport xdp on gw0"), "{}", gateway.ready);
        let mut agent = pair.within(|| Agent::of(&gateway));
        let connection = agent.create("ds/ds3-1/ds1-2/3");
        let deleted = agent.ask("DLCX", "ds/ds3-1/ds1-2/3", &["C: A1", &format!("I: {connection}")]);
        assert_eq!(deleted.code, Some(250));
        gateway.assert_sound();
    });
}

/// More than one packet holds: it comes as fragments by the kernel's socket, and its answer leaves by it.
#[test]
fn a_command_of_many_fragments_is_answered() {
    in_a_pair("a_command_of_many_fragments_is_answered", |pair| {
        let gateway = Gateway::start(tuning());
        let mut agent = pair.within(|| Agent::of(&gateway));
        warm_up(&gateway, &mut agent);
        let received = gateway.counter("bypass_received");
        let long = format!("X-Filler: {}", "x".repeat(3_800));
        let id = agent.command("AUEP", "ds/ds3-1/ds1-1/1", &[&long]);
        let length = Agent::text("AUEP", id, "ds/ds3-1/ds1-1/1", &[&long]).len();
        assert!((3_850..4_000).contains(&length), "{length}");
        assert_eq!(agent.final_of(id, SOON).code, Some(200));
        assert_eq!(counter(&gateway, "bypass_received"), received);
        // A long answer: a wildcard audit of one T1.
        let answer = agent.ask("AUEP", "ds/ds3-1/*", &[]);
        assert!(answer.lines.iter().map(String::len).sum::<usize>() > 0, "{answer:?}");
        gateway.assert_sound();
    });
}

/// Neighbours expire and move: answers go by the kernel until it knows better, and none is lost.
#[test]
fn neighbours_come_and_go() {
    in_a_pair("neighbours_come_and_go", |pair| {
        let gateway = Gateway::start(tuning());
        let mut agent = pair.within(|| Agent::of(&gateway));
        for _ in 0..3 {
            warm_up(&gateway, &mut agent);
            ip(&["neighbour", "flush", "dev", NEAR]);
            agent.ask("AUEP", "ds/ds3-1/ds1-1/1", &[]);
        }
        // The agent has a new card: it asks for us, by which the kernel learns its new address.
        pair.within(|| {
            ip(&["link", "set", FAR, "address", "02:00:00:00:00:77"]);
            ip(&["neighbour", "flush", "dev", FAR]);
        });
        warm_up(&gateway, &mut agent);
        // So have we.
        ip(&["link", "set", NEAR, "address", "02:00:00:00:00:78"]);
        pair.within(|| ip(&["neighbour", "flush", "dev", FAR]));
        warm_up(&gateway, &mut agent);
        let received = gateway.counter("bypass_received");
        agent.ask("AUEP", "ds/ds3-1/ds1-1/1", &[]);
        assert!(counter(&gateway, "bypass_received") > received);
        gateway.assert_sound();
    });
}

#[test]
fn a_link_that_flaps_is_served_again() {
    in_a_pair("a_link_that_flaps_is_served_again", |pair| {
        let gateway = Gateway::start(tuning());
        let mut agent = pair.within(|| Agent::of(&gateway));
        for side in [NEAR, FAR] {
            warm_up(&gateway, &mut agent);
            let set = |state: &str| {
                let order = || ip(&["link", "set", side, state]);
                if side == NEAR { order() } else { pair.within(order) }
            };
            set("down");
            // What is answered meanwhile is lost, as it must be.
            let text = Agent::text("AUEP", Agent::id(), "ds/ds3-1/ds1-1/1", &[]);
            let _ = agent.socket.send_to(text.as_bytes(), agent.gateway);
            agent.listen(Duration::from_millis(100));
            set("up");
        }
        warm_up(&gateway, &mut agent);
        gateway.assert_sound();
    });
}

#[test]
fn agents_over_ipv6_are_served() {
    in_a_pair("agents_over_ipv6_are_served", |pair| {
        let tuning = tuning()
            .set("gateway.listen", "[\"10.0.0.4:2427\", \"[fd00::4]:2427\"]")
            .set("agent.0.addresses", "[\"fd00::6\"]")
            .set("agent.0.notify", "[\"[fd00::6]:2727\"]");
        let gateway = Gateway::start(tuning);
        let addresses: [SocketAddr; 2] = ["[fd00::6]:2727", "[fd00::4]:2427"].map(|text| text.parse().unwrap());
        let mut agent = pair.within(|| Agent::at(addresses[0], addresses[1]));
        agent.answers = true;
        agent.expect_restart("restart", SOON);
        warm_up(&gateway, &mut agent);
        let connection = agent.create("ds/ds3-1/ds1-2/3");
        let deleted = agent.ask("DLCX", "ds/ds3-1/ds1-2/3", &["C: A1", &format!("I: {connection}")]);
        assert_eq!(deleted.code, Some(250));
        let long = format!("X-Filler: {}", "x".repeat(3_800));
        assert_eq!(agent.ask("AUEP", "ds/ds3-1/ds1-1/1", &[&long]).code, Some(200));
        eventually("they came past the kernel", SOON, || (gateway.counter("bypass_received") > 3).then_some(()));
        gateway.assert_sound();
    });
}

/// IP options, ICMP and encrypted packets are the kernel's, as if nobody had put himself in front of it.
#[test]
fn what_is_not_plain_udp_is_the_kernels() {
    in_a_pair("what_is_not_plain_udp_is_the_kernels", |pair| {
        let gateway = Gateway::start(tuning());
        let mut agent = pair.within(|| Agent::of(&gateway));
        warm_up(&gateway, &mut agent);
        let received = counter(&gateway, "bypass_received");
        let options = [1u8, 1, 1, 0];
        // SAFETY: the options live through the call and have the length given.
        let set = unsafe { libc::setsockopt(agent.socket.as_raw_fd(), libc::IPPROTO_IP, libc::IP_OPTIONS, options.as_ptr().cast(), 4) };
        assert_eq!(set, 0);
        assert_eq!(agent.ask("AUEP", "ds/ds3-1/ds1-1/1", &[]).code, Some(200));
        assert_eq!(counter(&gateway, "bypass_received"), received, "IP options");

        let raw = |protocol: i32| {
            let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(protocol))).unwrap();
            socket.set_read_timeout(Some(SOON)).unwrap();
            socket
        };
        let (near, far) = (BASE, Ipv4Addr::new(10, 0, 0, 6));
        let to = SocketAddr::from((near, 0)).into();
        let arrives = |mut at: &Socket, from: Ipv4Addr, bytes: &[u8]| {
            let mut packet = [0; 256];
            let length = at.read(&mut packet).unwrap();
            assert_eq!(&packet[12..16], from.octets());
            assert!(packet[20..length].starts_with(bytes), "{:?}", &packet[20..length]);
        };
        let (esp, out) = (raw(50), pair.within(|| raw(50)));
        out.send_to(b"what only the other end can read", &to).unwrap();
        arrives(&esp, far, b"what only the other end can read");
        // An echo request, and the kernel's answer.
        let ping = pair.within(|| raw(libc::IPPROTO_ICMP));
        ping.send_to(&[8, 0, 0xf7, 0xff, 0, 0, 0, 0], &to).unwrap();
        arrives(&ping, near, &[0, 0]);
        gateway.assert_sound();
    });
}
