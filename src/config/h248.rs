//! What `[[h248]]` tables must be to each other and to the rest.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use super::check::unfit;
use super::file::{Findings, Raw};
use super::types::{Bearer, Card, Encoding, Signalling, Srtp, TransportKind};
use super::value::Auto;

/// The shortest messages of a gateway that speaks binary, in octets.
const BINARY_MIN: u32 = 2000;

/// Every `[[h248]]` table, and the spans that name one.
pub(super) fn check(raw: &Raw, findings: &mut Findings<'_>) {
    let mut names = BTreeMap::new();
    let mut listens: Vec<SocketAddr> = raw.gateway.listen.clone();
    for (path, entry) in &raw.h248 {
        let key = |setting: &str| format!("{path}.{setting}");
        if let Some(first) = names.insert(entry.name.to_ascii_lowercase(), path) {
            findings.cross(&key("name"), &[], &entry.name, format!("must differ from the name of {first}"));
        }
        let simulated = raw.spans.iter().any(|(_, span)| span.card == Card::Sim);
        if let Some(problem) = unfit(entry.listen.ip()) {
            findings.cross(&key("listen"), &[], &entry.listen, problem);
        } else if simulated && !raw.sim.allow_network && !entry.listen.ip().is_loopback() {
            let problem = "must be a loopback address (127.0.0.0/8 or ::1) with simulated cards, unless cards.sim.allow_network = true";
            findings.cross(&key("listen"), &["cards.sim.allow_network"], &entry.listen, problem);
        } else if listens.contains(&entry.listen) {
            let problem = "must be an address of its own: MGCP or another [[h248]] is served there";
            findings.cross(&key("listen"), &["gateway.listen"], &entry.listen, problem);
        }
        listens.push(entry.listen);
        for (i, controller) in entry.controllers.iter().enumerate() {
            let item = key(&format!("controllers[{}]", i + 1));
            if let Some(problem) = unfit(controller.ip()) {
                findings.cross(&item, &[], controller, problem);
            } else if controller.is_ipv4() != entry.listen.is_ipv4() {
                findings.cross(&item, &[&key("listen")], controller, "must be of the family of listen");
            } else if *controller == entry.listen {
                findings.cross(&item, &[&key("listen")], controller, "must not be the gateway itself");
            } else if entry.controllers.iter().take(i).any(|other| other.ip() == controller.ip()) {
                findings.cross(
                    &item,
                    &[],
                    controller,
                    "must have another address than those before it: a controller is known by its address",
                );
            }
        }
        if entry.transport == Bearer::Sctp {
            let problem = "must be \"udp\" or \"tcp\": there is no SCTP (H.248.4) in this gateway";
            findings.cross(&key("transport"), &[], &entry.transport, problem);
        }
        if entry.transport == Bearer::Tcp && raw.metrics.address == Some(entry.listen) {
            findings.cross(
                &key("listen"),
                &["metrics.address"],
                &entry.listen,
                "must differ from metrics.address: both listen for streams",
            );
        }
        if entry.encoding == Encoding::Binary && entry.max_message < BINARY_MIN {
            let problem = format!("must be at least {BINARY_MIN} with encoding = \"binary\": half of it is for the text of a reply");
            findings.cross(&key("max_message"), &[&key("encoding")], &entry.max_message, problem);
        }
        if entry.max_message > raw.transport.send_frame_bytes {
            let problem = format!("must be at most transport.send_frame_bytes = {}", raw.transport.send_frame_bytes);
            findings.cross(&key("max_message"), &["transport.send_frame_bytes"], &entry.max_message, problem);
        }
        let has_spans = raw.spans.iter().any(|(_, span)| span.h248.fixed().is_some_and(|name| name.eq_ignore_ascii_case(&entry.name)));
        if !has_spans {
            findings.cross(&key("name"), &["span"], &entry.name, "must be the h248 of a [[span]]: a gateway without spans serves nothing");
        }
    }
    spans(raw, findings);
    if raw.h248.is_empty() {
        return;
    }
    let overload = &raw.overload;
    if overload.refuse <= overload.enter {
        let problem = "must be above overload.enter with [[h248]]: controllers are told before calls are refused";
        findings.cross("overload.refuse", &["overload.enter"], &overload.refuse, problem);
    }
    if raw.h248.iter().any(|(_, entry)| entry.spread) {
        let problem = "must be \"off\" with spread in [[h248]]: keys do not go from core to core";
        for (key, srtp) in [("cards.sim.srtp", &raw.sim.srtp), ("cards.cesopsn.srtp", &raw.cesopsn.srtp)] {
            if *srtp != Srtp::Off {
                findings.cross(key, &[], srtp, problem);
            }
        }
    }
    if raw.transport.kind == TransportKind::Xdp {
        findings.cross("transport.kind", &[], &raw.transport.kind, "must be another one with [[h248]]: AF_XDP takes MGCP only");
    }
}

/// The spans of H.248 gateways.
fn spans(raw: &Raw, findings: &mut Findings<'_>) {
    for (path, span) in &raw.spans {
        let Some(name) = span.h248.fixed() else { continue };
        if !raw.h248.iter().any(|(_, entry)| entry.name.eq_ignore_ascii_case(name)) && !findings.any_fault_below("h248[") {
            findings.cross(&format!("{path}.h248"), &["h248"], name, "must be the name of an [[h248]]");
        }
        if span.agent != Auto::Auto {
            findings.cross(&format!("{path}.agent"), &[], &span.agent, "must be \"auto\" with h248: controllers have the span, no agent");
        }
        if span.signalling != Signalling::Clear {
            let problem = "must be \"clear\" with h248: channel associated signalling is MGCP's only";
            findings.cross(&format!("{path}.signalling"), &[], &span.signalling, problem);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{Config, EMBEDDED};

    fn read(h248: &str, span: &str) -> Result<Config, String> {
        let text = format!("{EMBEDDED}\n[[h248]]\nname = \"a\"\n{h248}\n[[span]]\nkind = \"t1\"\nunit = 7\nh248 = \"a\"\n{span}\n");
        Config::parse(&text, "f").map_err(|errors| errors.to_string())
    }

    const GOOD: &str = "listen = \"127.0.0.1\"\ncontrollers = [\"127.0.0.1:3944\", \"127.0.0.2\"]";

    #[test]
    fn a_gateway_has_a_name_an_address_controllers_and_spans() {
        let config = read(GOOD, "").unwrap();
        let entry = &config.h248[0];
        assert_eq!((entry.listen.port(), entry.controllers[1].port(), entry.max_message), (2944, 2944, 4000));
        assert_eq!(config.message_id(entry), "[127.0.0.1]:2944");
        assert!(config.lines().any(|line| line.gateway == Some(0)) && config.lines().any(|line| line.gateway.is_none()));
    }

    #[test]
    fn what_does_not_go_together_is_refused_with_its_key() {
        for (h248, span, wanted) in [
            ("listen = \"127.0.0.1\"", "", "controllers: is missing"),
            (&GOOD.replace("127.0.0.1\"\n", "127.0.0.1:2427\"\n"), "", "must be an address of its own"),
            (&GOOD.replace("127.0.0.1\"\n", "192.0.2.1\"\n"), "", "must be a loopback address"),
            (&GOOD.replace("127.0.0.2", "::1"), "", "controllers[2] = \"::1\": must be of the family"),
            (&GOOD.replace("127.0.0.2", "127.0.0.1:2944"), "", "must not be the gateway itself"),
            (&format!("{GOOD}\nmax_message = 60000"), "", "must be at most transport.send_frame_bytes"),
            (&format!("{GOOD}\nmessage_id = \"a b\""), "", "message_id"),
            (&format!("{GOOD}\ntransport = \"sctp\""), "", "must be \"udp\" or \"tcp\": there is no SCTP"),
            (
                &GOOD.replace("listen = \"127.0.0.1\"", "transport = \"tcp\"\nlisten = \"127.0.0.1:9427\""),
                "",
                "must differ from metrics.address: both listen for streams",
            ),
            (&format!("{GOOD}\nencoding = \"binary\"\nmax_message = 1000"), "", "must be at least 2000 with encoding = \"binary\""),
            (GOOD, "agent = \"ca\"", "must be \"auto\" with h248"),
            (GOOD, "signalling = \"mf-wink\"", "must be \"clear\" with h248"),
            (GOOD, "[[span]]\nkind = \"t1\"\nunit = 8\nh248 = \"b\"", "must be the name of an [[h248]]"),
            (&GOOD.replace("\"127.0.0.2\"", "\"127.0.0.1:3945\""), "", "must have another address"),
            (GOOD, "[[h248]]\nname = \"b\"\nlisten = \"127.0.0.3\"\ncontrollers = [\"127.0.0.1\"]", "must be the h248 of a [[span]]"),
        ] {
            let found = read(h248, span).unwrap_err();
            assert!(found.contains(wanted), "{wanted}\n{found}");
        }
    }

    #[test]
    fn channels_on_other_cores_are_not_protected() {
        let text = format!("{EMBEDDED}\n[[h248]]\nname = \"a\"\nspread = true\n{GOOD}\n[[span]]\nkind = \"t1\"\nunit = 7\nh248 = \"a\"\n");
        assert!(Config::parse(&text, "f").is_ok());
        for (place, key) in [(0, "cards.sim.srtp"), (1, "cards.cesopsn.srtp")] {
            let at = text.match_indices("srtp = \"off\"").nth(place).unwrap().0;
            let text = format!("{}{}", &text[..at], text[at..].replacen("off", "require", 1));
            let found = Config::parse(&text, "f").unwrap_err().to_string();
            assert!(found.contains(&format!("{key} = \"require\": must be \"off\" with spread")), "{found}");
        }
    }

    #[test]
    fn controllers_are_told_before_calls_are_refused() {
        let text = EMBEDDED.replace("refuse = \"200ms\"", "refuse = \"50ms\"");
        assert!(Config::parse(&text, "f").is_ok(), "without a gateway it means nothing");
        let text = format!("{text}\n[[h248]]\nname = \"a\"\n{GOOD}\n[[span]]\nkind = \"t1\"\nunit = 7\nh248 = \"a\"\n");
        assert!(Config::parse(&text, "f").unwrap_err().to_string().contains("must be above overload.enter"));
        // What is refused by name is no advice.
        let error = read(&format!("{GOOD}\ntransport = \"tls\""), "").unwrap_err();
        assert!(error.contains("must be \"udp\" or \"tcp\"") && !error.contains("sctp"), "{error}");
    }
}
