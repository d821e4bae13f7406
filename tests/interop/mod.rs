//! The reference peer: a controller out of Erlang/OTP's megaco (Debian's erlang-base and erlang-megaco) controls a gateway of the running
//! program (issue 6, must hold 1). Where there is no Erlang the tests say so and pass.

#[path = "../wire/h248/messages.rs"]
mod messages;
mod otp;

use crate::gateway::{Gateway, SOON, Tuning, eventually, pause};
use otp::Otp;
use std::time::Duration;
use tollgate::proto::codec::h248::{Shape, binary};

/// One T1, controlled from the agent's address in text.
fn tuning(transport: &str) -> Tuning {
    speaking(transport, "compact")
}

fn speaking(transport: &str, encoding: &str) -> Tuning {
    let tuning = Tuning::new();
    let (gateway, controller) = (tuning.addresses.gateway().ip(), tuning.addresses.agent().ip());
    let h248 = format!(
        "[{{ name = \"north\", transport = \"{transport}\", encoding = \"{encoding}\", listen = \"{gateway}:2944\", controllers = [\"{controller}:2944\"] }}]"
    );
    tuning
        .list("span", "[{ kind = \"t1\", unit = 7, h248 = \"north\" }]")
        .list("h248", &h248)
        .without("agent")
        .set("overload.enter", "\"50ms\"")
        .set("overload.enter_after", "\"0s\"")
}

/// PRF-13, PRF-02, PRF-10, OVL-02: it registers, audits, asks for events and makes 1,000 calls, half of them pretty; each request is sent twice and
/// some again when they are long acknowledged, and each is executed once. What the gateway tells of an overload arrives once for each Add.
#[test]
fn megaco_registers_audits_and_makes_calls_over_udp() {
    let tuning = tuning("udp");
    let Some(mut otp) = Otp::start(&tuning, "udp", "pretty") else { return };
    let gateway = Gateway::start(tuning);
    otp.hears("registered");
    audits(&mut otp);
    otp.tells("calls ds/ds1_7 496", "496 went well, 0 did not: []");
    otp.tells("encoding compact", "encoding");
    otp.tells("double on", "doubling");
    otp.tells("calls ds/ds1_7 504", "504 went well, 0 did not: []");
    otp.tells("double off", "doubling");
    let late = || gateway.counter("commands_repeated_confirmed") > 40;
    eventually("late copies come and are dropped", SOON, || late().then_some(()));
    // Each Add and Subtract once, whatever came how often.
    assert_eq!((gateway.counter("h248_adds"), gateway.counter("h248_subtracts")), (2000, 2000));
    assert!(gateway.counter("commands_repeated") > 1000);
    overload(&mut otp, &gateway);
    otp.reads_all();
    gateway.assert_sound();
}

/// PRF-13, TCP-01, TCP-02, TCP-05: the same over TCP with TPKT, where nothing is sent twice by itself, and the gateway opens the stream.
#[test]
fn megaco_registers_audits_and_makes_calls_over_tcp() {
    let tuning = tuning("tcp");
    let Some(mut otp) = Otp::start(&tuning, "tcp", "pretty") else { return };
    let gateway = Gateway::start(tuning);
    otp.hears("registered");
    audits(&mut otp);
    otp.tells("calls ds/ds1_7 496", "496 went well, 0 did not: []");
    otp.tells("encoding compact", "encoding");
    otp.tells("calls ds/ds1_7 504", "504 went well, 0 did not: []");
    assert_eq!((gateway.counter("h248_adds"), gateway.counter("h248_subtracts")), (2000, 2000));
    assert_eq!((gateway.counter("commands_repeated"), gateway.counter("own_repeats")), (0, 0));
    overload(&mut otp, &gateway);
    assert_eq!((gateway.counter("streams_opened"), gateway.counter("streams_ended")), (1, 0));
    otp.reads_all();
    gateway.assert_sound();
}

/// TRM-13, BIN-01 to BIN-15: in binary, over UDP and over TCP: it registers, audits, makes calls, each request twice, and hears of an overload.
#[test]
fn megaco_makes_calls_in_binary() {
    for transport in ["udp", "tcp"] {
        let tuning = speaking(transport, "binary");
        let Some(mut otp) = Otp::start(&tuning, transport, "ber") else { return };
        let gateway = Gateway::start(tuning);
        assert!(gateway.ready.contains(":2427, H.248 on 127.") && gateway.ready.contains(":2944, "), "{}", gateway.ready);
        otp.hears("registered");
        audits(&mut otp);
        if transport == "udp" {
            otp.tells("double on", "doubling");
        }
        otp.tells("calls ds/ds1_7 104", "104 went well, 0 did not: []");
        otp.tells("double off", "doubling");
        assert_eq!((gateway.counter("h248_adds"), gateway.counter("h248_subtracts")), (208, 208));
        if transport == "udp" {
            overload(&mut otp, &gateway);
        }
        otp.reads_all();
        assert_eq!((gateway.counter("h248_unreadable"), gateway.counter("h248_unwritable")), (0, 0));
        gateway.assert_sound();
    }
}

/// Must hold 3: every kind of message that a gateway writes in octets is read by megaco's decoder.
#[test]
fn megaco_reads_our_octets() {
    let tuning = speaking("udp", "binary");
    let Some(mut otp) = Otp::start(&tuning, "udp", "ber") else { return };
    let _gateway = Gateway::start(tuning);
    otp.hears("registered");
    // A request without the number of its events is a controller's, and not for this decoder.
    for (name, body) in messages::MESSAGES.iter().filter(|(name, _)| *name != "stopped and emptied") {
        let (mut octets, text) = (vec![0; 4000], format!("!/1 [192.0.2.1]:2945\n{body}"));
        let length = binary::from_text(text.as_bytes(), &mut Shape::new(), &mut octets).unwrap();
        let hex: String = octets[..length].iter().map(|octet| format!("{octet:02x}")).collect();
        assert_eq!(otp.asks(&format!("decode {hex}")), "good", "{name}: {text}");
    }
    assert!(otp.asks("decode 300aa108800101a203a10100").contains("error"));
}

/// What ROOT and all channels are.
fn audits(otp: &mut Otp) {
    let audit = otp.asks("ask C=-{AV=ROOT{AT{PG}}}");
    for package in ["ocp", "chp", "root", "it"] {
        assert!(audit.contains(&format!("\"{package}\"")), "{package}: {audit}");
    }
    let audit = otp.asks("ask C=-{AV=ds/ds1_7/*{AT{PG}}}");
    assert_eq!(audit.matches("auditValueReply").count(), 24, "{audit}");
    let audit = otp.asks("ask C=-{AV=ds/ds1_7/5{AT{M,E,SG,EB,OE,SA,DM}}}");
    assert!(audit.contains("mediaDescriptor") && audit.contains("inSvc") && !audit.contains("error"), "{audit}");
}

/// OVL-02, OVL-04: a gateway that stands still for a while finds 24 calls waiting, and tells of each Add that it does meanwhile.
fn overload(otp: &mut Otp, gateway: &Gateway) {
    otp.asks("ask C=-{MF=ROOT{E=7{ocp/mg_overload}}}");
    let burst = |otp: &mut Otp| {
        gateway.signal(libc::SIGSTOP);
        otp.tells("burst ds/ds1_7", "sent");
        pause(Duration::from_millis(150));
        gateway.signal(libc::SIGCONT);
        otp.tells("await 24", "all answered");
        gateway.counter("h248_overload_notified")
    };
    // A controller without a CPU may send only when the gateway goes on again: then once more.
    let mut told = burst(otp);
    for _ in 0..2 {
        if told < 24 {
            otp.asks("ask C=*{W-S=*{AT{}}}");
            told = burst(otp);
        }
    }
    assert!(told >= 24, "{told}: half of the Adds at least were done while overloaded");
    let counted = || (otp.asks("count overloads") == told.to_string()).then_some(());
    eventually("each is received, and counted once", SOON, counted);
    assert_eq!((gateway.counter("h248_overload_dropped"), gateway.counter("own_lost")), (0, 0));
    otp.asks("ask C=*{W-S=*{AT{}}}");
}
