//! The gateway over AF_XDP, in two network namespaces joined by a veth pair. Agents have ordinary sockets, so the kernel on their side
//! checks every header and checksum we write.

use super::agent::{Agent, Message};
use super::gateway::{Addresses, Gateway, Kept, PROGRAM, SOON, Tuning, Watch, eventually, pause, signal_to};
use super::load::{LAYOUTS, load, no_check_fails, report};
use super::pair::{FAR, NEAR, Pair, complete_checksums, ip};
use serde_json::Value;
use socket2::{Domain, Protocol, Socket, Type};
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsRawFd;
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use tollgate::host::transport::Kind;

/// The first address on the gateway's side; the others follow.
const BASE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 4);

/// Runs a test in a pair of namespaces, on a thread of its own. Where that, or AF_XDP, is not allowed the test is skipped and says so.
fn in_a_pair(test: &str, body: impl FnOnce(&Pair) + Send) {
    in_a_pair_of(test, "1", body);
}

/// The same with so many queues each way.
fn in_a_pair_of(test: &str, queues: &str, body: impl FnOnce(&Pair) + Send) {
    let allowed = Kind::Xdp.probe();
    let result = std::thread::scope(|scope| {
        let run = || match allowed.and_then(|()| Pair::new(queues)) {
            Ok(pair) => body(&pair),
            Err(reason) => eprintln!("skipped: {test}: {reason}"),
        };
        scope.spawn(run).join()
    });
    if let Err(panic) = result {
        std::panic::resume_unwind(panic);
    }
}

/// A tuning file for the pair.
fn tuning() -> Tuning {
    Tuning::at(Addresses::from(BASE))
        .set("transport.kind", "\"xdp\"")
        .set("cards.sim.allow_network", "true")
        .set("cards.sim.media_address", "\"10.0.0.4\"")
}

/// The gateway's side refuses to start; what it says.
fn refused(tuning: &Tuning) -> String {
    tuning.write();
    let mut command = Command::new(PROGRAM);
    command.arg("run").arg("--config").arg(tuning.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = Kept(command.spawn().unwrap());
    let status = eventually("it refuses to start", SOON, || child.0.try_wait().unwrap());
    let mut said = String::new();
    child.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(!status.success() && !said.is_empty(), "{status}: {said}");
    let _ = std::fs::remove_dir_all(&tuning.directory);
    said
}

/// Asks so long that the path to the agent is known, so that answers go past the kernel. Repeats what gets no answer: while a neighbour
/// moves or a link comes up datagrams are lost.
fn warm_up(gateway: &Gateway, agent: &mut Agent) {
    let sent = gateway.counter("bypass_sent");
    eventually("an answer goes past the kernel", SOON, || {
        let text = Agent::text("AUEP", Agent::id(), "ds/ds3-1/ds1-1/1", &[]);
        let before = agent.mail.len();
        eventually("an answer", SOON, || {
            agent.send(&text);
            agent.listen(Duration::from_millis(50));
            (agent.mail.len() > before).then_some(())
        });
        (counter(gateway, "bypass_sent") > sent).then_some(())
    });
}

/// A counter of the transport, which is published a few times a second.
fn counter(gateway: &Gateway, name: &str) -> u64 {
    pause(Duration::from_millis(300));
    gateway.counter(name)
}

/// Calls as `load` plays them: all answered, none lost, and past the kernel both ways.
fn calls(pair: &Pair, tuning: Tuning, expected: &str) {
    let gateway = Gateway::start(tuning.set("limits.history_rate", "5000"));
    assert!(gateway.ready.contains(expected), "{}", gateway.ready);
    let output = pair.within(|| load(&gateway, "--scenario call --rate 1500 --duration 1 --standing 20 --seed 7").output().unwrap());
    let report: Value = report(&output, &gateway);
    let commands: u64 = ["CRCX", "MDCX", "DLCX"].iter().map(|verb| answered(&report, verb)).sum();
    assert!(commands > 1000, "{report}");
    let (received, sent) = (counter(&gateway, "bypass_received"), gateway.counter("bypass_sent"));
    assert!(received >= commands && sent > commands / 2, "{received} received, {sent} sent past the kernel of {commands}");
    // Nothing was lost on either side of the wire, and nothing had to wait for want of room.
    assert_eq!(report["lost"], 0, "{report}");
    for lost in ["dropped_kernel", "dropped_bypass_invalid", "receive_starved", "send_errors", "transmit_full"] {
        assert_eq!(gateway.counter(lost), 0, "{lost}: {report}");
    }
    gateway.assert_sound();
}

fn answered(report: &Value, verb: &str) -> u64 {
    report["verbs"][verb]["codes"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum()
}

#[test]
fn calls_pass_in_the_driver() {
    in_a_pair("calls_pass_in_the_driver", |pair| {
        calls(pair, tuning().set("xdp.mode", "\"native\""), "transport xdp on gw0 native 1 queue");
    });
}

#[test]
fn calls_pass_behind_the_driver() {
    in_a_pair("calls_pass_behind_the_driver", |pair| {
        pair.within(|| complete_checksums(FAR));
        calls(pair, tuning().set("xdp.mode", "\"generic\"").set("xdp.need_wakeup", "false"), "transport xdp on gw0 generic 1 queue");
    });
}

/// Behind the driver several datagrams in one packet can come (the load sends such): they are left to the kernel, which takes them
/// apart. Taken as one they would be nonsense.
#[test]
fn datagrams_in_one_packet_are_taken_apart() {
    in_a_pair("datagrams_in_one_packet_are_taken_apart", |pair| {
        let gateway = Gateway::start(tuning().set("xdp.mode", "\"generic\"").set("limits.history_rate", "5000"));
        let output = pair.within(|| load(&gateway, "--scenario call --window 32 --duration 1 --seed 7").output().unwrap());
        let report = report(&output, &gateway);
        assert!(report["sent_by"] == "UDP_SEGMENT" && answered(&report, "CRCX") > 100, "{report}");
        assert_eq!(counter(&gateway, "dropped_unreadable") + gateway.counter("dropped_bypass_invalid"), 0);
        gateway.assert_sound();
    });
}

/// Must hold 1: losses and doubles both ways, in each layout of cores. Of several cores with sockets one has the only queue; the others
/// answer by the kernel.
#[test]
fn no_check_fails_in_any_layout() {
    for layout in LAYOUTS {
        in_a_pair("no_check_fails_in_any_layout", |pair| {
            let tuning = tuning().layout(layout.0, layout.1, layout.2);
            let gateway = no_check_fails(tuning, |load| pair.within(|| load.output().unwrap()));
            assert!(counter(&gateway, "bypass_received") > 0 && gateway.ready.contains("transport xdp"), "{}", gateway.ready);
        });
    }
}

/// Flows of agents are spread over the queues, and each core has one of them.
#[test]
fn several_queues_serve_several_cores() {
    in_a_pair_of("several_queues_serve_several_cores", "2", |pair| {
        let gateway = Gateway::start(tuning().layout(2, 0, 0));
        assert!(gateway.ready.contains("transport xdp on gw0 native 2 queues"), "{}", gateway.ready);
        let addresses = gateway.tuning.addresses;
        for port in 2727..2743 {
            let mut agent = pair.within(|| Agent::at((addresses.agent().ip(), port).into(), addresses.gateway()));
            agent.answers = true;
            for span in 1..=4 {
                assert_eq!(agent.ask("AUEP", &format!("ds/ds3-1/ds1-{span}/1"), &[]).code, Some(200), "{port}");
            }
        }
        pause(Duration::from_millis(300));
        let (received, sent) = (gateway.counter_by_core("bypass_received"), gateway.counter_by_core("bypass_sent"));
        assert!(received.iter().chain(&sent).all(|&count| count > 0), "{received:?} received, {sent:?} sent past the kernel, by core");
        gateway.assert_sound();
    });
}

/// One core can have all queues.
#[test]
fn one_core_serves_all_queues() {
    in_a_pair_of("one_core_serves_all_queues", "4", |pair| {
        let gateway = Gateway::start(tuning().layout(0, 1, 1));
        assert!(gateway.ready.contains("4 queues"), "{}", gateway.ready);
        let addresses = gateway.tuning.addresses;
        for port in 2727..2735 {
            let mut agent = pair.within(|| Agent::at((addresses.agent().ip(), port).into(), addresses.gateway()));
            agent.answers = true;
            assert_eq!(agent.ask("AUEP", "ds/ds3-1/ds1-1/1", &[]).code, Some(200), "{port}");
        }
        assert!(counter(&gateway, "bypass_received") >= 8);
        gateway.assert_sound();
    });
}

/// The load generator goes past the kernel too, and keeps pace.
#[test]
fn the_load_goes_past_the_kernel_too() {
    in_a_pair("the_load_goes_past_the_kernel_too", |pair| {
        let gateway = Gateway::start(tuning().set("limits.history_rate", "20000").set("cores.busy_poll", "\"50us\""));
        let run = |arguments: &str| pair.within(|| load(&gateway, arguments).output().unwrap());
        let line = format!("--xdp {FAR} --scenario call --rate 2000 --duration 1 --standing 20 --seed 7");
        let report = report(&run(&line), &gateway);
        let by = report["sent_by"].as_str().unwrap().to_owned();
        assert!(by.starts_with("AF_XDP on ca0 native 1 queue, past the kernel 9") || by.contains("100.0% out"), "{by}");
        assert!(report["lost"] == 0 && report["completed"] == report["sent"] && answered(&report, "CRCX") > 300, "{report}");
        // What cannot be is said in the words of the gateway.
        let wrong = run("--xdp lo --scenario call --rate 10 --duration 1");
        let said = String::from_utf8_lossy(&wrong.stderr).into_owned();
        assert!(wrong.status.code() == Some(1) && said.contains("--xdp lo") && said.contains("lo is the loopback"), "{said}");
        gateway.assert_sound();
    });
}

/// `tollgate nic` tells which ways a card has, and echoes what `tollgate nic --ask` sends.
#[test]
fn a_card_is_brought_up_and_echoes() {
    in_a_pair("a_card_is_brought_up_and_echoes", |pair| {
        let nic = |arguments: &[&str]| {
            let mut command = Command::new(PROGRAM);
            command.arg("nic").args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            command.spawn().unwrap()
        };
        let echo = nic(&[NEAR, "--seconds", "4"]);
        let asking = pair.within(|| nic(&["--ask", "10.0.0.4:12427", "--seconds", "4"]));
        let (echo, asking) = (echo.wait_with_output().unwrap(), asking.wait_with_output().unwrap());
        let (told, asked) = (String::from_utf8_lossy(&echo.stdout), String::from_utf8_lossy(&asking.stdout));
        assert!(echo.status.success() && asking.status.success(), "{echo:?} {asking:?}");
        for line in [
            "AF_XDP native, zero-copy: no: gw0 queue 0: bind: its driver cannot do without copies",
            "AF_XDP native, copy: works on gw0 native 1 queue",
            "AF_XDP generic, copy: works on gw0 generic 1 queue",
            "echo at 10.0.0.4:12427 for 4 s, native, copy",
            "dropped by the kernel 0, wrong headers or checksums 0, send errors 0",
        ] {
            assert!(told.contains(line), "{line}: {told}");
        }
        assert!(!told.contains("(0 past the kernel)") && !told.contains("nobody asked"), "{told}");
        assert!(asked.contains("round trip us: p50") && !asked.contains("answered 0"), "{asked}");
        let wrong = nic(&["eth9"]).wait_with_output().unwrap();
        assert!(!wrong.status.success() && String::from_utf8_lossy(&wrong.stderr).contains("there is no interface eth9"), "{wrong:?}");
    });
}

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
        assert_eq!(agent.expect("RSIP", SOON).get("RM"), Some("restart"));
        warm_up(&gateway, &mut agent);
        let connection = agent.create("ds/ds3-1/ds1-2/3");
        let deleted = agent.ask("DLCX", "ds/ds3-1/ds1-2/3", &["C: A1", &format!("I: {connection}")]);
        assert_eq!(deleted.code, Some(250));
        let long = format!("X-Filler: {}", "x".repeat(3_800));
        assert_eq!(agent.ask("AUEP", "ds/ds3-1/ds1-1/1", &[&long]).code, Some(200));
        assert!(counter(&gateway, "bypass_received") > 3);
        gateway.assert_sound();
    });
}

/// The list of agents holds in the XDP program too, and follows a reload.
#[test]
fn strangers_are_left_to_the_kernel() {
    in_a_pair("strangers_are_left_to_the_kernel", |pair| {
        let mut gateway = Gateway::start(tuning());
        let mut agent = pair.within(|| Agent::of(&gateway));
        warm_up(&gateway, &mut agent);
        let addresses = gateway.tuning.addresses;
        let mut stranger = pair.within(|| Agent::at(addresses.stranger(), addresses.gateway()));
        let received = counter(&gateway, "bypass_received");
        stranger.command("AUEP", "ds/ds3-1/ds1-2/3", &[]);
        eventually("it is dropped", SOON, || (gateway.counter("dropped_unlisted_source") == 1).then_some(()));
        assert_eq!(counter(&gateway, "bypass_received"), received);
        let set = |gateway: &mut Gateway, value: &str| {
            let tuning = gateway.tuning.copy();
            gateway.tuning = tuning.set("agent.0.addresses", value);
            gateway.tuning.write();
            gateway.order(&["reload"]);
        };
        set(&mut gateway, "[\"10.0.0.6\", \"10.0.0.7\"]");
        assert_eq!(stranger.ask("AUEP", "ds/ds3-1/ds1-2/3", &[]).code, Some(200));
        assert_eq!(counter(&gateway, "bypass_received"), received + 1);
        set(&mut gateway, "[\"10.0.0.6\"]");
        stranger.command("AUEP", "ds/ds3-1/ds1-2/3", &[]);
        eventually("it is dropped", SOON, || (gateway.counter("dropped_unlisted_source") == 2).then_some(()));
        assert_eq!(counter(&gateway, "bypass_received"), received + 1);
        set(&mut gateway, "\"any\"");
        assert_eq!(stranger.ask("AUEP", "ds/ds3-1/ds1-2/3", &[]).code, Some(200));
        assert_eq!(counter(&gateway, "bypass_received"), received + 2);
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

const POLICY: [&str; 14] =
    ["dir", "in", "src", "0.0.0.0/0", "dst", "10.0.0.4/32", "proto", "udp", "tmpl", "proto", "esp", "mode", "tunnel", "src"];

fn policy(order: &str) -> Output {
    let rest = ["10.0.0.6", "dst", "10.0.0.4"];
    let tmpl = POLICY.iter().position(|word| *word == "tmpl").unwrap();
    let (selector, template) = POLICY.split_at(tmpl);
    let mut command = Command::new("ip");
    command.args(["xfrm", "policy", order]);
    match order {
        "add" => command.args(&selector[..2]).args(&selector[2..]).args(template).args(rest),
        _ => command.args(selector),
    };
    command.output().unwrap()
}

/// Must hold 2: with an IPsec policy over the listen address AF_XDP is refused, and clear text gets no answer by any other transport.
#[test]
fn an_ipsec_policy_is_no_hole() {
    in_a_pair("an_ipsec_policy_is_no_hole", |pair| {
        let added = policy("add");
        if !added.status.success() {
            return eprintln!("skipped: an_ipsec_policy_is_no_hole: this kernel takes no IPsec policies: {added:?}");
        }
        let said = refused(&tuning());
        assert!(said.contains("IPsec policy covers what comes in to 10.0.0.4:2427"), "{said}");
        for kind in ["\"uring\"", "\"mio\""] {
            let gateway = Gateway::start(tuning().set("transport.kind", kind));
            let agent = pair.within(|| Agent::silent(&gateway));
            no_answer(agent);
        }
        assert!(policy("delete").status.success());
        // One that comes later: everything goes by the kernel, which lets nothing in, until it is gone again.
        let gateway = Gateway::start(tuning());
        let mut agent = pair.within(|| Agent::of(&gateway));
        warm_up(&gateway, &mut agent);
        assert!(policy("add").status.success());
        eventually("the log says it", SOON, || gateway.log().contains("IPsec policy covers").then_some(()));
        let agent = no_answer(agent);
        assert!(policy("delete").status.success());
        eventually("the log says it", SOON, || gateway.log().contains("served by AF_XDP again").then_some(()));
        let mut agent = agent;
        warm_up(&gateway, &mut agent);
    });
}

/// Nothing but what the gateway sends of itself comes.
fn no_answer(mut agent: Agent) -> Agent {
    agent.mail.clear();
    let id = agent.command("AUEP", "ds/ds3-1/ds1-1/1", &[]);
    agent.listen(Duration::from_millis(300));
    let answers: Vec<&Message> = agent.mail.iter().filter(|message| message.id == id && message.code.is_some()).collect();
    assert!(answers.is_empty(), "{answers:?}");
    agent
}

/// A packet filter that could match must be passed by knowingly.
#[test]
fn packet_filters_must_be_passed_by_knowingly() {
    in_a_pair("packet_filters_must_be_passed_by_knowingly", |pair| {
        if let Err(reason) = nftables::drop_everything() {
            return eprintln!("skipped: packet_filters_must_be_passed_by_knowingly: {reason}");
        }
        let said = refused(&tuning());
        assert!(said.contains("nftables chain guard in may match") && said.contains("xdp.bypass_firewall"), "{said}");
        let gateway = Gateway::start(tuning().set("xdp.bypass_firewall", "true"));
        assert!(gateway.log().contains("packet filters do not see"), "{}", gateway.log());
        let addresses = gateway.tuning.addresses;
        // The filter drops what the kernel gets: the answer shows the way the command came.
        let mut agent = pair.within(|| Agent::at(addresses.agent(), addresses.gateway()));
        agent.answers = true;
        assert_eq!(agent.ask("AUEP", "ds/ds3-1/ds1-1/1", &[]).code, Some(200));
        assert!(counter(&gateway, "bypass_received") > 0);
        gateway.assert_sound();
    });
}

/// One nftables chain, asked for as `nft` would: that program need not be here.
mod nftables {
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
        let chain = [
            attribute(1, b"guard\0"),
            attribute(3, b"in\0"),
            attribute(4 | 0x8000, &hook),
            attribute(5, &[0; 4]),
            attribute(7, b"filter\0"),
        ];
        let batch = [
            message(16, 0, 0, SUBSYSTEM, &[]),
            message(SUBSYSTEM << 8, CREATE, IPV4, 0, &[attribute(1, b"guard\0")]),
            message(SUBSYSTEM << 8 | 3, CREATE | ACK, IPV4, 0, &chain),
            message(17, 0, 0, SUBSYSTEM, &[]),
        ];
        let open =
            || socket2::Socket::new(socket2::Domain::from(libc::AF_NETLINK), socket2::Type::RAW, Some(libc::NETLINK_NETFILTER.into()));
        let mut socket = open().map_err(|error| format!("no nftables here: {error}"))?;
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        socket.write_all(&batch.concat()).map_err(|error| format!("no nftables here: {error}"))?;
        let mut answer = [0; 4096];
        let length = socket.read(&mut answer).map_err(|error| format!("nftables does not answer: {error}"))?;
        let code = i32::from_ne_bytes(answer[16..20].try_into().unwrap());
        if length >= 20 && code == 0 { Ok(()) } else { Err(format!("nftables refuses: {}", std::io::Error::from_raw_os_error(-code))) }
    }
}

/// Where it cannot run the gateway says which interface it is and why.
#[test]
fn what_cannot_be_is_refused_with_the_reason() {
    in_a_pair("what_cannot_be_is_refused_with_the_reason", |pair| {
        let says = |tuning: Tuning, wanted: &str| {
            let said = refused(&tuning);
            assert!(said.contains("transport.kind = \"xdp\"") && said.contains(wanted), "{wanted}: {said}");
        };
        let loopback = tuning().set("gateway.listen", "[\"127.0.0.1:2427\"]").set("metrics.address", "\"off\"");
        says(loopback, "lo is the loopback");
        says(tuning().set("xdp.interface", "\"eth9\""), "there is no interface eth9");
        says(tuning().set("xdp.queues", "2"), "gw0 has 1");
        ip(&["link", "add", "br0", "type", "bridge"]);
        says(tuning().set("xdp.interface", "\"br0\""), "br0 is a bridge");
        ip(&["link", "set", NEAR, "master", "br0"]);
        says(tuning(), "gw0 is a port of the bridge br0");
        ip(&["link", "set", NEAR, "nomaster"]);
        // Other interfaces on top of cards, as far as this kernel has them.
        for kind in ["bond", "macvlan", "ipvlan", "dummy"] {
            let on: &[&str] = if kind == "macvlan" || kind == "ipvlan" { &["link", NEAR] } else { &[] };
            let order = [&["link", "add"], on, &["name", "upper", "type", kind]].concat();
            if Command::new("ip").args(order).output().unwrap().status.success() {
                says(tuning().set("xdp.interface", "\"upper\""), &format!("upper is a {kind}"));
                ip(&["link", "delete", "upper"]);
            }
        }
        // The driver takes no program when what comes may be longer than a page.
        pair.within(|| ip(&["link", "set", FAR, "mtu", "9000"]));
        says(tuning().set("xdp.mode", "\"native\""), "gw0 takes no XDP program: native");
        pair.within(|| ip(&["link", "set", FAR, "mtu", "1500"]));
        let said = refused(&tuning().set("xdp.copy", "\"zero-copy\""));
        assert!(said.contains("gw0 queue 0: bind: its driver cannot do without copies"), "{said}");
    });
}

/// The program is gone with the process, however it ends; while it lives nobody else gets the interface.
#[test]
fn the_interface_is_free_again_after_a_crash() {
    in_a_pair("the_interface_is_free_again_after_a_crash", |pair| {
        let mut gateway = Gateway::start(tuning());
        let other = tuning().set("gateway.listen", "[\"10.0.0.5:2427\"]").set("metrics.address", "\"off\"");
        let said = refused(&other);
        assert!(said.contains("gw0 carries another XDP program"), "{said}");
        signal_to(gateway.pid(), libc::SIGKILL);
        gateway.wait(SOON);
        let watch = Watch::start();
        let gateway = Gateway::start(tuning());
        assert!(watch.elapsed() < SOON);
        let mut agent = pair.within(|| Agent::of(&gateway));
        warm_up(&gateway, &mut agent);
        let mut gateway = gateway;
        gateway.signal(libc::SIGTERM);
        agent.listen(Duration::from_millis(300));
        let (status, _) = gateway.wait(SOON);
        assert!(status.success());
        let shown = Command::new("ip").args(["-details", "link", "show", NEAR]).output().unwrap();
        assert!(!String::from_utf8_lossy(&shown.stdout).contains("prog/xdp"), "{shown:?}");
    });
}
