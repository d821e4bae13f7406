//! `tollgate probe`: what this machine has, and what it lacks, of what the tuning file's cards need. Today that is the kernel's driver (DAHDI):
//! its state and configuration are read, and nothing is taken or changed, so it may be asked while a gateway runs.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;

use super::card;
use super::card::dahdi::{Channels, Device, Kernel, find, status};
use crate::config::Config;
use crate::proto::dahdi::abi::{self, SPANS_MAX, SpanInfo};

/// Looks, and tells of it. The exit code is 0 when all is there that the file needs.
///
/// # Errors
/// When nothing can be written.
pub fn run(config: &Config, out: &mut dyn Write) -> Result<ExitCode> {
    let needs = config.spans.iter().any(|span| span.dahdi.is_some());
    let missing = match Kernel::new(0) {
        Ok(mut kernel) => of_driver(config, &mut kernel, out)?,
        Err(problem) => {
            writeln!(out, "dahdi: {problem}")?;
            needs
        }
    };
    if !needs {
        writeln!(out, "no span of the file is on a card of the driver (card = \"dahdi\", dahdi_span = N)")?;
    }
    Ok(if missing { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Whether the driver lacks anything that the file needs.
fn of_driver(config: &Config, device: &mut dyn Device, out: &mut dyn Write) -> Result<bool> {
    let mut octets = [0; abi::GETVERSION.octets()];
    match device.control(abi::GETVERSION, &mut octets) {
        Ok(()) => writeln!(out, "dahdi: version {}", abi::text(&octets, 0, 80))?,
        Err(error) => writeln!(out, "dahdi: of no known version ({error})")?,
    }
    for number in 1..=SPANS_MAX {
        let Ok(octets) = status(device, number) else { continue };
        let SpanInfo { alarms, configured, channels, line, .. } = SpanInfo::read(&octets);
        let [name, about] = [SpanInfo::NAME, SpanInfo::DESCRIPTION].map(|(at, length)| abi::text(&octets, at, length));
        let framing = match (line & abi::line::ESF != 0, line & abi::line::D4 != 0) {
            (true, _) => ", esf",
            (_, true) => ", d4",
            _ => "",
        };
        let alarms = abi::alarm_words(alarms);
        writeln!(out, "span {number}: {name} ({about}), {configured} of {channels} channels configured{framing}, alarms {alarms}")?;
    }
    let all = Channels::of(device);
    let mut missing = false;
    for span in &config.spans {
        for wanted in (0..span.lines().count()).filter_map(|place| card::wanted(span, place)) {
            match find(device, &all, &wanted) {
                Ok(_) => writeln!(out, "{}: span {} is as it must be", wanted.name, wanted.number)?,
                Err(problems) => {
                    missing = true;
                    problems.iter().try_for_each(|problem| writeln!(out, "missing: {problem}"))?;
                }
            }
        }
    }
    Ok(missing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::EMBEDDED;
    use crate::host::card::dahdi::fake::Fake;

    fn told(config: &Config, fake: &Fake) -> (bool, String) {
        let mut out = Vec::new();
        let missing = of_driver(config, &mut fake.device(), &mut out).unwrap();
        (missing, String::from_utf8(out).unwrap())
    }

    #[test]
    fn what_the_driver_has_and_what_it_lacks_is_told_and_nothing_is_taken() {
        let table = "[[span]]\nkind = \"t1\"\nunit = \"1-2\"\ncard = \"dahdi\"\ndahdi_span = 1\nsignalling = \"mf-wink\"\n";
        let text = EMBEDDED.replacen("media_ports = \"16384-32767\"", "media_ports = \"14000-16383\"", 1);
        let config = Config::parse(&format!("{text}\n{table}"), "f").unwrap();
        let fake = Fake::new(2, 24, abi::SIG_CAS);
        fake.world().spans[1].alarms = abi::alarm::RED;
        for channel in [24, 25, 26, 30] {
            fake.world().channels[channel].signalling = 0x40;
        }
        let (missing, said) = told(&config, &fake);
        assert!(missing);
        for line in [
            "dahdi: version 3.2.0\n",
            "span 1: WCT1/0 (), 24 of 24 channels configured, esf, alarms none\n",
            "span 2: WCT1/0 (), 24 of 24 channels configured, esf, alarms red\n",
            "ds/ds1-1: span 1 is as it must be\n",
            "missing: ds/ds1-2 (span 2, WCT1/0): channels 25-27,31 are e&m in the driver; /etc/dahdi/system.conf must say cas=25-27,31:0000",
        ] {
            assert!(said.contains(line), "{line}\n{said}");
        }
        assert_eq!(fake.world().count(abi::SPECIFY), 0);
        assert!(fake.world().channels.iter().all(|channel| !channel.is_open));
    }
}
