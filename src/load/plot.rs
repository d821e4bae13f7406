//! Pictures of what happened second by second, as SVG: of a run of the load (`--plot`), and of the scenarios of overload control.

use std::fmt::Write as _;
use std::time::Duration;

/// Points of a line at most; of longer runs each is the mean of several seconds.
const POINTS: usize = 640;

/// Some lines over the same time, drawn to the scale of the greatest value.
pub struct Panel<'a> {
    /// What the lines are.
    pub title: &'a str,
    /// Colour and values, one a second.
    pub lines: Vec<(&'a str, Vec<f64>)>,
}

/// The picture.
pub fn picture(title: &str, panels: &[Panel<'_>]) -> String {
    let height = 20 + 150 * panels.len();
    let mut svg = format!("<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 700 {height}' font-family='sans-serif' font-size='11'>");
    let _ = write!(svg, "<text x='50' y='14' font-size='13'>{}</text>", escaped(title));
    for (place, panel) in panels.iter().enumerate() {
        draw(&mut svg, 40.0 + 150.0 * place as f64, panel);
    }
    svg + "</svg>\n"
}

fn draw(svg: &mut String, top: f64, panel: &Panel<'_>) {
    const HEIGHT: f64 = 110.0;
    let lines: Vec<(&str, Vec<f64>)> = panel.lines.iter().map(|(colour, values)| (*colour, thinned(values))).collect();
    let most = lines.iter().flat_map(|(_, values)| values).copied().fold(1.0, f64::max);
    let title = escaped(panel.title);
    let _ = write!(svg, "<text x='50' y='{}'>{title}</text><text x='4' y='{}'>{most:.0}</text>", top - 4.0, top + 10.0);
    let _ = write!(svg, "<path d='M50 {top}V{0}H690' stroke='#999' fill='none'/>", top + HEIGHT);
    for (colour, values) in &lines {
        let step = 640.0 / values.len().max(2) as f64;
        let point = |(n, value): (usize, &f64)| format!("{:.0},{:.1}", 50.0 + step * n as f64, top + HEIGHT * (1.0 - value / most));
        let points = values.iter().enumerate().map(point).collect::<Vec<_>>().join(" ");
        let _ = write!(svg, "<polyline points='{points}' stroke='{colour}' fill='none'/>");
    }
}

/// No more values than there is room for.
fn thinned(values: &[f64]) -> Vec<f64> {
    let each = values.len().div_ceil(POINTS).max(1);
    values.chunks(each).map(|some| some.iter().sum::<f64>() / some.len() as f64).collect()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// A second of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Second {
    /// Calls asked for, those that were held back with them.
    pub asked: u64,
    /// Calls sent to the gateway.
    pub sent: u64,
    /// Calls that were set up.
    pub set_up: u64,
    /// Notifications of overload, or refusals with 409 and 101.
    pub told: u64,
    /// The 99th percentile of their set-up times.
    pub p99: Duration,
}

/// The picture of a run.
pub fn run(title: &str, seconds: &[Second]) -> String {
    let series = |of: fn(&Second) -> f64| seconds.iter().map(of).collect::<Vec<f64>>();
    let calls = vec![
        ("#bbb", series(|second| second.asked as f64)),
        ("#06c", series(|second| second.sent as f64)),
        ("#3a3", series(|second| second.set_up as f64)),
    ];
    let panels = [
        Panel { title: "calls a second: asked for (grey), sent to the gateway (blue), set up (green)", lines: calls },
        Panel { title: "notifications of overload a second", lines: vec![("#c60", series(|second| second.told as f64))] },
        Panel { title: "p99 of set-up in ms", lines: vec![("#a0a", series(|second| 1e3 * second.p99.as_secs_f64()))] },
    ];
    picture(title, &panels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_week_has_no_more_points_than_a_picture() {
        let seconds = vec![Second { asked: 7, sent: 5, set_up: 4, told: 1, p99: Duration::from_millis(60) }; 604_800];
        let svg = run("1 < 2 & 3", &seconds);
        assert!(
            svg.starts_with("<svg ") && svg.ends_with("</svg>\n") && svg.contains("1 &lt; 2 &amp; 3") && svg.len() < 60_000,
            "{}",
            svg.len()
        );
        assert_eq!((svg.matches("<polyline").count(), svg.matches(",").count() < 5 * POINTS + 20), (5, true));
        assert!(run("nothing", &[]).contains("points=''"));
    }
}
