//! Answers as text: a line on the gateway, then tables, or one page on one endpoint.

use super::table::Table;
use super::{cluster, span};
use std::fmt::Write;
use tollgate::host::control::protocol::Response;
use tollgate::host::control::view::{
    AgentRow, AlarmRow, Body, ConnectionRow, CoreRow, CounterRow, Counters, EndpointRow, EventRow, GatewayRow, InteropRow, List, Quantiles,
    Reload, RestartRow, SpanRow, Transactions,
};

/// The answer as text; `history`: with all past intervals of a facility.
pub fn text(response: &Response, history: bool) -> String {
    let body = match &response.body {
        Body::Cores(list) => list_text(list, "core", &cores(&list.rows)) + &times(&list.rows),
        Body::Spans(list) => list_text(list, "facility", &spans(&list.rows)),
        Body::Span(page) => span::text(page, history),
        Body::Alarms(list) if list.rows.is_empty() => "no alarms\n".into(),
        Body::Alarms(list) => list_text(list, "alarm", &alarms(&list.rows)),
        Body::History(list) if list.rows.is_empty() => "no alarms yet\n".into(),
        Body::History(list) => list_text(list, "event", &past(&list.rows)),
        Body::Endpoints(list) => list_text(list, "endpoint", &endpoints(&list.rows)),
        Body::Endpoint(row) => endpoint(row),
        Body::Connections(list) => list_text(list, "connection", &connections(&list.rows)),
        Body::Agents(list) => list_text(list, "agent", &agents(&list.rows)),
        Body::Gateways(list) => list_text(list, "gateway", &gateways(&list.rows)),
        Body::Transactions(transactions) => self::transactions(transactions),
        Body::Cac(admission) => super::admission::text(admission),
        Body::Cluster(view) => cluster::central(view),
        Body::Calls(page) => cluster::ccbs(&page.rows),
        Body::Ccbs(list) => list_text(list, "leg", &cluster::ccbs(&list.rows)),
        Body::Counters(counters) => self::counters(counters),
        Body::Done(words) => return format!("{words}\n"),
        Body::Reload(reload) => return self::reload(reload),
        Body::Error(failure) => return format!("{}\n", failure.message),
    };
    let gateway = &response.gateway;
    let cards = match (gateway.simulated, gateway.mixed) {
        (true, false) => ", simulated cards (no voice)",
        (true, true) => ", some cards simulated (no voice)",
        (false, _) => "",
    };
    format!("{} up {}{cards}, tollgate {}\n{body}", gateway.domain, age(gateway.uptime_s), gateway.version)
}

/// A table with how many rows it has.
fn list_text<R>(list: &List<R>, one: &str, table: &str) -> String {
    let plural = match one {
        "facility" => "facilities".to_owned(),
        one => format!("{one}s"),
    };
    let word = if list.rows.len() == 1 { one } else { &plural };
    match list.left_out {
        0 => format!("{table}{} {word}\n", list.rows.len()),
        more => format!("{table}{} {word}; {more} more are left out: name fewer\n", list.rows.len()),
    }
}

fn cores(rows: &[CoreRow]) -> String {
    let head = [
        "CORE",
        "ROLE",
        "CPU",
        "NODE",
        "STEERING",
        "STATE",
        "ENDPOINTS",
        "CONNECTIONS",
        "SOJOURN",
        "BUSY",
        "WAITING",
        "NEW CALLS",
        "LAST BEAT",
    ];
    let mut table = Table::new(&head);
    for row in rows {
        let load = |of: fn(&tollgate::host::control::view::CoreLoad) -> String| row.load.as_ref().map(of).unwrap_or_default();
        table.row([
            row.core.clone(),
            row.role.clone(),
            row.cpu.to_string(),
            row.node.to_string(),
            row.steering.clone(),
            row.state.clone(),
            load(|load| load.endpoints.to_string()),
            load(|load| load.connections.to_string()),
            load(|load| format!("{} us", load.sojourn_us)),
            load(|load| format!("{} %", load.busy_per_mille / 10)),
            load(|load| load.waiting.to_string()),
            load(|load| {
                match (load.draining, load.overloaded) {
                    (true, _) => "refused: draining",
                    (_, true) => "refused: overload",
                    _ => "taken",
                }
                .into()
            }),
            format!("{} ms ago", row.beat_age_ms),
        ]);
    }
    table.to_string()
}

/// How long messages waited and took, in us: median, 99 of 100, longest; nothing before there was one.
fn times(rows: &[CoreRow]) -> String {
    let head = ["CORE", "MESSAGES", "COUNT", "WAITING p50", "p99", "max us", "HOP p50", "p99", "max us", "SERVICE p50", "p99", "max us"];
    let mut table = Table::new(&head);
    for (core, row) in rows.iter().flat_map(|row| row.times.iter().map(|times| (&row.core, times))) {
        let us = |part: Option<Quantiles>, ns: fn(&Quantiles) -> u64| {
            part.as_ref().map_or(String::new(), |part| format!("{:.1}", ns(part) as f64 / 1e3))
        };
        let each = |part| [us(part, |part| part.p50_ns), us(part, |part| part.p99_ns), us(part, |part| part.max_ns)];
        let ([w50, w99, w], [h50, h99, h], [s50, s99, s]) = (each(row.waiting), each(row.hop), each(row.service));
        let count = row.service.map_or(0, |service| service.count).to_string();
        table.row([core.clone(), row.work.clone(), count, w50, w99, w, h50, h99, h, s50, s99, s]);
    }
    if rows.iter().any(|row| !row.times.is_empty()) { format!("\n{table}") } else { String::new() }
}

fn spans(rows: &[SpanRow]) -> String {
    let head = ["NAME", "KIND", "CORE", "ADMIN", "OPER", "FAILURE", "ENDPOINTS", "IN SERVICE", "BUSY", "CONNECTIONS"];
    let mut table = Table::new(&head);
    for row in rows {
        let usage = |of: fn(&tollgate::host::control::view::SpanUsage) -> u32| row.usage.as_ref().map(of).map(number).unwrap_or_default();
        table.row([
            row.name.clone(),
            row.kind.clone(),
            row.core.map(number).unwrap_or_default(),
            row.administrative.clone(),
            row.operational.clone(),
            row.failure.clone().unwrap_or_default(),
            row.endpoints.to_string(),
            usage(|usage| usage.in_service),
            usage(|usage| usage.busy),
            usage(|usage| usage.connections),
        ]);
    }
    table.to_string()
}

fn alarms(rows: &[AlarmRow]) -> String {
    let mut table = Table::new(&["NAME", "SEVERITY", "WHAT", "SINCE"]);
    for row in rows {
        table.row([row.name.clone(), row.severity.clone(), row.what.clone(), row.age_s.map(age).unwrap_or_default()]);
    }
    table.to_string()
}

fn past(rows: &[EventRow]) -> String {
    let mut table = Table::new(&["TIME (UTC)", "NAME", "SEVERITY", "STATE", "WHAT"]);
    for row in rows {
        table.row([
            utc(row.at_us),
            row.name.clone(),
            row.severity.clone(),
            if row.over { "over".into() } else { "begun".into() },
            row.what.clone(),
        ]);
    }
    table.to_string()
}

/// A time as the log writes it, without parts of a second. (The calendar repeats every 400 years of 146,097 days.)
fn utc(at_us: u64) -> String {
    let seconds = at_us / 1_000_000;
    let days = seconds / 86_400 + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    // Months from March on.
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (year, month) = (era * 400 + year + u64::from(month > 9), if month > 9 { month - 9 } else { month + 3 });
    format!("{year}-{month:02}-{day:02}T{:02}:{:02}:{:02}", seconds / 3600 % 24, seconds / 60 % 60, seconds % 60)
}

/// One line each: who holds the channel, and whether packets move.
fn endpoints(rows: &[EndpointRow]) -> String {
    // What the signalling waits for, where there is any.
    let lines = rows.iter().any(|row| row.line.is_some());
    let mut head = vec!["NAME", "ADMIN", "OPER", "SERVICE", "TOLD", "CALL", "CONNECTION", "MODE", "PEER", "AGE", "SENT", "RECEIVED"];
    if lines {
        head.insert(5, "LINE");
    }
    let mut table = Table::new(&head);
    for row in rows {
        let first = row.connections.first();
        let more = match row.connections.len() {
            0 | 1 => String::new(),
            count => format!(" +{}", count - 1),
        };
        let of = |cell: fn(&ConnectionRow) -> String| first.map(cell).unwrap_or_default();
        let mut cells = vec![
            row.name.clone(),
            row.administrative.clone(),
            row.failure.clone().unwrap_or_else(|| row.operational.clone()),
            if row.in_service { "in".into() } else { "out".into() },
            row.announcement.clone(),
            of(|connection| connection.call.clone()),
            of(|connection| connection.connection.clone()) + &more,
            of(mode),
            of(|connection| connection.remote.clone()),
            of(|connection| age(connection.age_s)),
            of(|connection| connection.packets_sent.to_string()),
            of(|connection| connection.packets_received.to_string()),
        ];
        if lines {
            cells.insert(5, row.line.clone().unwrap_or_default());
        }
        table.row(cells);
    }
    table.to_string()
}

fn connections(rows: &[ConnectionRow]) -> String {
    let head = ["ENDPOINT", "CALL", "CONNECTION", "MODE", "LOCAL", "PEER", "ENCODING", "AGE", "SENT", "RECEIVED", "LOST", "JITTER"];
    let mut table = Table::new(&head);
    for row in rows {
        table.row([
            row.endpoint.clone(),
            row.call.clone(),
            row.connection.clone(),
            mode(row),
            row.local.clone(),
            row.remote.clone(),
            encoding(row),
            age(row.age_s),
            row.packets_sent.to_string(),
            row.packets_received.to_string(),
            row.packets_lost.to_string(),
            format!("{} ms", row.jitter_ms),
        ]);
    }
    table.to_string()
}

/// Everything known of one endpoint on one page.
fn endpoint(row: &EndpointRow) -> String {
    let mut lines: Vec<(&str, String)> = Vec::new();
    let mut line = |what, value: String| lines.push((what, value));
    line("endpoint", format!("{} (number {}, on core {})", row.name, row.index, row.core));
    line("administrative", row.administrative.clone());
    line("operational", with(&row.operational, row.failure.as_deref()));
    let refusal = row.refusal.map(|code| format!("commands are refused with {code}"));
    line("service", with(if row.in_service { "in service" } else { "out of service" }, refusal.as_deref()));
    line("restart method", format!("{}, reason {}", row.method, row.reason));
    line("agent knows", row.announcement.clone());
    line("last RSIP", row.restart.as_ref().map(restart).unwrap_or_default());
    line("notified entity", if row.entity.is_empty() { "where commands come from".into() } else { row.entity.clone() });
    line("request", row.request.clone());
    line("card", row.card.clone().unwrap_or_default());
    line("law", row.law.clone());
    let left = row.line_left_ms.map(|ms| format!("{} s at most", ms.div_ceil(1000)));
    line("line", with(row.line.as_deref().unwrap_or_default(), left.as_deref()));
    if let Some(events) = &row.events {
        let counts = format!("{} in quarantine, {} Notify unanswered", events.quarantined, events.unanswered);
        line("events", with(&events.state, Some(&counts)));
        events.audit.iter().for_each(|(code, value)| line(code, value.clone()));
    }
    line("connections", row.connections.len().to_string());
    for connection in &row.connections {
        line("  connection", connection.connection.clone());
        line("  call", connection.call.clone());
        line("  mode", mode(connection));
        line("  age", age(connection.age_s));
        line("  local", connection.local.clone());
        line("  remote", connection.remote.clone());
        line("  encodings", format!("{}, {} ms", connection.encodings.join(" "), connection.period_ms));
        line("  sent", format!("{} packets, {} octets", connection.packets_sent, connection.octets_sent));
        line("  received", format!("{} packets, {} octets", connection.packets_received, connection.octets_received));
        line("  lost", format!("{} packets", connection.packets_lost));
        line("  jitter", format!("{} ms", connection.jitter_ms));
        line("  latency", format!("{} ms", connection.latency_ms));
        line(
            "  playout",
            format!("{} packets late, {} octets made up, {} slips", connection.late, connection.concealed_octets, connection.slips),
        );
        if connection.protected {
            line("  SRTP", format!("dropped {} replayed, {} not authentic", connection.replayed, connection.unauthentic));
        }
    }
    page(lines)
}

/// A page: what, and its value.
pub fn page<'a>(lines: impl IntoIterator<Item = (&'a str, String)>) -> String {
    lines.into_iter().map(|(what, value)| format!("{what:<16}{}\n", if value.is_empty() { "-" } else { &value })).collect()
}

fn gateways(rows: &[GatewayRow]) -> String {
    let mut table = Table::new(&[
        "NAME",
        "MESSAGE ID",
        "LISTEN",
        "CORE",
        "STATE",
        "SINCE",
        "CONTROLLER",
        "HEARD",
        "CHANNELS",
        "CONTEXTS",
        "STREAMS",
        "UNANSWERED",
        "LOAD",
    ]);
    for row in rows {
        let load = match (row.overloaded, row.reduction) {
            (false, 0) => String::new(),
            (true, 0) => "overloaded".into(),
            (overloaded, percent) => format!("{}asks for {percent} % less", if overloaded { "overloaded, " } else { "" }),
        };
        table.row([
            row.name.clone(),
            row.message_id.clone(),
            row.listen.clone(),
            row.core.to_string(),
            row.state.clone(),
            age(row.age_s),
            row.controller.clone().unwrap_or_default(),
            row.heard_ms.map_or("never".into(), |ms| format!("{} s ago", ms / 1000)),
            row.channels.to_string(),
            row.contexts.to_string(),
            row.connections.to_string(),
            row.unanswered.to_string(),
            load,
        ]);
    }
    table.to_string()
}

fn agents(rows: &[AgentRow]) -> String {
    let mut table = Table::new(&[
        "NAME",
        "COMMANDS FROM",
        "NOTIFIED AT",
        "PROFILE",
        "REPEATS BY",
        "RANGES",
        "UNANSWERED",
        "COPIES",
        "OLDEST",
        "RESPONSE",
        "LOSS",
        "RATE",
    ]);
    let mut traffic = Table::new(&["AGENT", "HEARD", "COMMANDS DONE", "REFUSED", "OURS DONE", "REFUSED", "LOST"]);
    let mut restarts = Table::new(&["AGENT", "RSIP", "ENDPOINTS", "METHOD", "REASON", "STATE", "REPLY", "SENT"]);
    let mut any = false;
    for row in rows {
        table.row([
            row.name.clone(),
            if row.addresses.is_empty() { "none".into() } else { row.addresses.join(" ") },
            row.notify.join(" "),
            profile(row),
            row.duplicates.clone(),
            if row.ranges { "yes".into() } else { "no".into() },
            row.unanswered.to_string(),
            row.copies_max.to_string(),
            format!("{} ms", row.oldest_ms),
            row.response_ms.map(|ms| format!("{ms} ms")).unwrap_or_default(),
            row.loss_ppm.map(|ppm| format!("{}.{:02} %", ppm / 10_000, ppm % 10_000 / 100)).unwrap_or_default(),
            row.rate.map(|rate| format!("{rate}/s")).unwrap_or_default(),
        ]);
        let heard = row.heard_ms.map_or("never".into(), |ms| format!("{} s ago", ms / 1000));
        let counts = [row.commands_done, row.commands_refused, row.own_done, row.own_refused, row.own_lost];
        let [done, refused, own_done, own_refused, own_lost] = counts.map(|count| count.to_string());
        traffic.row([row.name.clone(), heard, done, refused, own_done, own_refused, own_lost]);
        for restart in &row.restarts {
            any = true;
            restarts.row([
                row.name.clone() + &restart.port.map(|port| format!(":{port}")).unwrap_or_default(),
                restart.name.clone(),
                restart.endpoints.to_string(),
                restart.method.clone(),
                restart.reason.to_string(),
                restart.state.clone(),
                restart.reply.map(number).unwrap_or_default(),
                when(restart),
            ]);
        }
    }
    if any { format!("{table}\n{traffic}\n{restarts}\n") } else { format!("{table}\n{traffic}") }
}

/// The profile, and what is not as the RFC has it.
fn profile(row: &AgentRow) -> String {
    let InteropRow { version, piggyback, provisional, descriptions, unknown_options } = &row.interop;
    let marks = [
        (version != "mgcp" && *version != row.profile).then(|| format!("version {version}")),
        (!piggyback).then(|| "no piggyback".to_owned()),
        (provisional != "confirmed").then(|| format!("provisional {provisional}")),
        (descriptions != "full").then(|| format!("{descriptions} descriptions")),
        (unknown_options != "refuse").then(|| format!("{unknown_options} unknown options")),
    ];
    let marks: Vec<_> = marks.into_iter().flatten().collect();
    if marks.is_empty() { row.profile.clone() } else { format!("{}: {}", row.profile, marks.join(", ")) }
}

fn transactions(view: &Transactions) -> String {
    let mut table = Table::new(&["CORE", "RUNNING", "WAITING", "REMEMBERED", "MOST", "LIMIT", "BYTES", "BYTES LIMIT", "OLDEST"]);
    for row in &view.cores {
        table.row([
            row.core.to_string(),
            row.running.to_string(),
            row.waiting.to_string(),
            row.entries.to_string(),
            row.entries_max.to_string(),
            row.entries_limit.to_string(),
            row.bytes.to_string(),
            row.bytes_limit.to_string(),
            row.oldest_ms.map(|ms| format!("{ms} ms")).unwrap_or_default(),
        ]);
    }
    let mut own = Table::new(&["CORE", "ID", "COMMAND", "AGENT", "TO", "COPIES", "AGE", "PROVISIONAL"]);
    for row in &view.own.rows {
        own.row([
            row.core.to_string(),
            row.id.to_string(),
            row.command.clone(),
            row.agent.clone(),
            row.to.clone(),
            row.copies.to_string(),
            row.age_ms.map(|ms| format!("{ms} ms")).unwrap_or_default(),
            if row.provisional { "yes".into() } else { "no".into() },
        ]);
    }
    format!(
        "commands of agents\n{table}\ncommands of the gateway that wait for a response\n{}",
        list_text(&view.own, "command", &own.to_string())
    )
}

/// Those at zero are left out: there are many, and JSON has them.
fn counters(view: &Counters) -> String {
    let mut table = Table::new(&["COUNTER", "TOTAL", "BY CORE", "WHAT"]);
    let by_core = |row: &CounterRow| row.by_core.iter().map(u64::to_string).collect::<Vec<_>>().join(" ");
    let counted = |rows: &[CounterRow]| rows.iter().filter(|row| row.total > 0).cloned().collect::<Vec<_>>();
    for row in counted(&view.counters) {
        table.row([row.name.clone(), row.total.to_string(), by_core(&row), row.help.clone()]);
    }
    for row in counted(&view.responses) {
        table.row([format!("responses {}", row.name), row.total.to_string(), by_core(&row), "Responses sent with this code.".into()]);
    }
    let zero = view.counters.iter().filter(|row| row.total == 0).count();
    format!("{table}{zero} more at zero\n")
}

fn reload(view: &Reload) -> String {
    let mut text = match (view.changes.is_empty(), view.done) {
        (true, _) => "nothing has changed\n".to_owned(),
        (false, true) => "changed\n".to_owned(),
        (false, false) if view.is_refused() => "would be refused as a whole, for something needs a restart\n".to_owned(),
        (false, false) => "would change\n".to_owned(),
    };
    let word = |value: &str| if value.is_empty() { "none".to_owned() } else { value.to_owned() };
    for change in &view.changes {
        let mark = if change.needs_restart { " (needs a restart)" } else { "" };
        let _ = writeln!(text, "  {}: {} -> {}{mark}", change.key, word(&change.old), word(&change.new));
    }
    for note in &view.notes {
        let _ = writeln!(text, "  {note}");
    }
    text
}

fn restart(row: &RestartRow) -> String {
    let reply = row.reply.map(|code| format!(", answered {code}")).unwrap_or_default();
    let reason = if row.reason == 0 { String::new() } else { format!(", reason {}", row.reason) };
    format!("{} of {}{reason}: {}{reply}, {}", row.method, row.name, row.state, when(row))
}

/// When it was or will be sent.
fn when(row: &RestartRow) -> String {
    match (row.due_ms, row.sent_s) {
        (Some(ms), _) => format!("in {ms} ms"),
        (None, Some(seconds)) => format!("{} ago", age(seconds)),
        (None, None) => String::new(),
    }
}

fn mode(row: &ConnectionRow) -> String {
    with(&row.mode, row.pending.then_some("pending"))
}

fn encoding(row: &ConnectionRow) -> String {
    row.encodings.first().map(|first| format!("{first} {} ms", row.period_ms)).unwrap_or_default()
}

pub fn with(word: &str, more: Option<&str>) -> String {
    more.map_or(word.to_owned(), |more| format!("{word} ({more})"))
}

fn number<N: ToString>(number: N) -> String {
    number.to_string()
}

/// The two largest units of a duration: `3d 4h`, `12s`.
fn age(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, minutes) => format!("{minutes}m {}s", seconds % 60),
        (0, hours, minutes) => format!("{hours}h {minutes}m"),
        (days, hours, _) => format!("{days}d {hours}h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(response: &Response) -> String {
        super::text(response, false)
    }
    use tollgate::host::control::protocol::{Failure, FailureKind, GatewayView};
    use tollgate::host::control::view::{ChangeRow, EventsRow, HistoryRow};

    fn respond(body: Body) -> Response {
        let gateway =
            GatewayView { domain: "tgw.example.net".into(), version: "0.1.0".into(), simulated: true, mixed: false, uptime_s: 93_784 };
        Response { gateway, silent_cores: Vec::new(), body }
    }

    fn busy() -> EndpointRow {
        let connection = ConnectionRow {
            endpoint: "ds/ds3-1/ds1-5/17".into(),
            connection: "0000BEEF".into(),
            call: "A1B2".into(),
            mode: "sendrecv".into(),
            local: "127.0.0.1:16384".into(),
            remote: "10.0.0.9:4000".into(),
            encodings: vec!["PCMU".into(), "PCMA".into()],
            period_ms: 20,
            pending: false,
            age_s: 75,
            packets_sent: 3750,
            octets_sent: 600_000,
            packets_received: 3749,
            octets_received: 599_840,
            packets_lost: 1,
            jitter_ms: 2,
            latency_ms: 30,
            late: 2,
            concealed_octets: 480,
            slips: 1,
            protected: true,
            replayed: 3,
            unauthentic: 4,
        };
        let restart = RestartRow {
            name: "*".into(),
            endpoints: 672,
            method: "restart".into(),
            reason: 0,
            state: "told".into(),
            port: None,
            reply: Some(200),
            due_ms: None,
            sent_s: Some(7200),
        };
        EndpointRow {
            name: "ds/ds3-1/ds1-5/17".into(),
            index: 112,
            card: Some("sim".into()),
            core: 1,
            administrative: "blocked".into(),
            operational: "down".into(),
            failure: Some("los".into()),
            in_service: false,
            refusal: Some(501),
            method: "forced".into(),
            reason: 905,
            announcement: "told".into(),
            restart: Some(restart),
            entity: "ca@[127.0.0.1]:2727".into(),
            request: "1A".into(),
            law: "mu".into(),
            line: Some("awaits-wink".into()),
            line_left_ms: Some(2_100),
            events: Some(EventsRow {
                audit: [("R".to_owned(), "MS/ans(N)".to_owned()), ("S".to_owned(), "MS/sup(ad(5551))".to_owned())].into(),
                state: "quarantined".into(),
                quarantined: 2,
                unanswered: 1,
            }),
            connections: vec![connection],
        }
    }

    #[test]
    fn a_list_has_a_line_for_each_channel() {
        // Field bug O46: which connection holds a DS0.
        let text = text(&respond(Body::Endpoints(List::new(vec![busy()]))));
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "tgw.example.net up 1d 2h, simulated cards (no voice), tollgate 0.1.0");
        let cells: Vec<_> = lines[2].split_whitespace().collect();
        let call = ["A1B2", "0000BEEF", "sendrecv", "10.0.0.9:4000", "1m", "15s", "3750", "3749"];
        assert_eq!(cells, [&["ds/ds3-1/ds1-5/17", "blocked", "los", "out", "told", "awaits-wink"][..], &call].concat());
        assert_eq!(lines[3], "1 endpoint");
    }

    #[test]
    fn the_page_of_an_endpoint_has_everything() {
        let text = text(&respond(Body::Endpoint(Box::new(busy()))));
        for line in [
            "endpoint        ds/ds3-1/ds1-5/17 (number 112, on core 1)",
            "administrative  blocked",
            "operational     down (los)",
            "service         out of service (commands are refused with 501)",
            "last RSIP       restart of *: told, answered 200, 2h 0m ago",
            "notified entity ca@[127.0.0.1]:2727",
            "request         1A",
            "line            awaits-wink (3 s at most)",
            "events          quarantined (2 in quarantine, 1 Notify unanswered)",
            "R               MS/ans(N)",
            "  connection    0000BEEF",
            "  remote        10.0.0.9:4000",
            "  encodings     PCMU PCMA, 20 ms",
            "  received      3749 packets, 599840 octets",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn a_reload_says_what_is_and_what_would_be() {
        let change = ChangeRow { key: "cores.both".into(), old: "1".into(), new: String::new(), needs_restart: true };
        let view = Reload { done: false, changes: vec![change], notes: vec!["mind".into()] };
        let text = text(&respond(Body::Reload(view)));
        assert_eq!(text, "would be refused as a whole, for something needs a restart\n  cores.both: 1 -> none (needs a restart)\n  mind\n");
        assert_eq!(reload(&Reload { done: true, changes: Vec::new(), notes: Vec::new() }), "nothing has changed\n");
    }

    #[test]
    fn times_are_those_of_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00"),
            (951_782_399, "2000-02-28T23:59:59"),
            (951_782_400, "2000-02-29T00:00:00"),
            (1_709_251_199, "2024-02-29T23:59:59"),
            (1_735_689_600, "2025-01-01T00:00:00"),
            (4_107_542_400, "2100-03-01T00:00:00"),
        ] {
            assert_eq!(utc(seconds * 1_000_000), text);
        }
    }

    #[test]
    fn empty_answers_are_plain() {
        assert!(text(&respond(Body::Alarms(List::new(Vec::new())))).ends_with("\nno alarms\n"));
        assert!(text(&respond(Body::Connections(List::new(Vec::new())))).ends_with("0 connections\n"));
        let silent = CoreRow {
            core: "1".into(),
            role: "both".into(),
            cpu: 1,
            node: 0,
            state: "silent".into(),
            steering: "-".into(),
            beat_age_ms: 900,
            turns: 5,
            load: None,
            times: Vec::new(),
        };
        assert!(text(&respond(Body::Cores(List::new(vec![silent])))).contains("silent          -            -"));
        let failure = Failure::new(FailureKind::Busy, "later");
        assert_eq!(text(&respond(Body::Error(failure))), "later\n");
    }

    #[test]
    fn counters_at_zero_are_counted_only() {
        let row = |name: &str, total: u64| CounterRow { name: name.into(), help: "Things.".into(), total, by_core: vec![total, 0] };
        let view = Counters { cores: vec![0, 1], counters: vec![row("a", 0), row("b", 12)], responses: vec![row("200", 3)] };
        let text = counters(&view);
        assert_eq!(text.lines().count(), 4);
        assert!(text.contains("b                 12     12 0  Things.") && text.ends_with("1 more at zero\n"), "{text}");
    }

    #[test]
    fn transactions_have_both_directions() {
        let row = HistoryRow {
            core: 0,
            running: 1,
            waiting: 1,
            entries: 7,
            entries_max: 9,
            entries_limit: 600_000,
            bytes: 1000,
            bytes_limit: 2000,
            oldest_ms: Some(30),
        };
        let text = transactions(&Transactions { cores: vec![row], own: List::new(Vec::new()) });
        assert!(text.contains("600000") && text.contains("30 ms") && text.ends_with("0 commands\n"), "{text}");
    }
}
