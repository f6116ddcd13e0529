//! Plots as SVG, written by hand: lines over time, with the fault's time shaded.

use std::fmt::Write as _;

/// Size of a plot.
const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 190.0;
const LEFT: f64 = 46.0;
const RIGHT: f64 = 8.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 22.0;
/// Points further apart, in seconds, are not joined.
const GAP: f64 = 1.1;

/// Told apart by people who see few colours, too (Okabe and Ito).
pub(super) const COLOURS: [&str; 6] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];

/// How a scale is divided.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Scale {
    /// From 0 to this, or to the largest value if that is larger.
    Linear(f64),
    /// By powers of ten, between these.
    Log(f64, f64),
}

/// One line: points of time in seconds and value.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) name: String,
    pub(super) points: Vec<(f64, f64)>,
    pub(super) dashed: bool,
}

/// One plot.
#[derive(Clone, Debug)]
pub(super) struct Plot {
    pub(super) title: String,
    pub(super) scale: Scale,
    /// How long the run is, and when the fault was, in seconds.
    pub(super) length: f64,
    pub(super) fault: (f64, f64),
    pub(super) lines: Vec<Line>,
}

impl Plot {
    fn x(&self, seconds: f64) -> f64 {
        LEFT + (WIDTH - LEFT - RIGHT) * (seconds / self.length.max(0.001)).clamp(0.0, 1.0)
    }

    fn top(&self) -> f64 {
        let Scale::Linear(least) = self.scale else {
            return 0.0;
        };
        let values = self.lines.iter().flat_map(|l| &l.points).map(|p| p.1);
        values.fold(least, f64::max)
    }

    fn y(&self, value: f64, top: f64) -> f64 {
        let part = match self.scale {
            Scale::Linear(_) => value / top.max(f64::MIN_POSITIVE),
            Scale::Log(low, high) => (value.max(low) / low).log10() / (high / low).log10(),
        };
        TOP + (HEIGHT - TOP - BOTTOM) * (1.0 - part.clamp(0.0, 1.0))
    }

    fn ticks(&self, top: f64) -> Vec<f64> {
        match self.scale {
            Scale::Linear(_) => (0..=4).map(|n| top * f64::from(n) / 4.0).collect(),
            Scale::Log(low, high) => std::iter::successors(Some(low), |v| Some(v * 10.0))
                .take_while(|v| *v <= high * 1.001)
                .collect(),
        }
    }

    /// The plot as an SVG element. Writing to a String cannot fail.
    pub(super) fn render(&self) -> String {
        let mut out = format!(
            "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\"><title>{}</title>",
            escape(&self.title)
        );
        let top = self.top();
        let (from, to) = (self.x(self.fault.0), self.x(self.fault.1));
        let _ = write!(
            out,
            "<rect class=\"fault\" x=\"{from:.1}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{:.1}\"/>",
            to - from,
            HEIGHT - TOP - BOTTOM
        );
        for value in self.ticks(top) {
            let y = self.y(value, top);
            let _ = write!(
                out,
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                WIDTH - RIGHT,
                LEFT - 4.0,
                y + 3.5,
                label(value)
            );
        }
        let step = if self.length > 60.0 { 20.0 } else { 5.0 };
        let moments = std::iter::successors(Some(0.0), |s| Some(s + step));
        for seconds in moments.take_while(|s| *s <= self.length) {
            let _ = write!(
                out,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{seconds:.0} s</text>",
                self.x(seconds).min(WIDTH - 14.0),
                HEIGHT - 6.0
            );
        }
        for (line, colour) in self.lines.iter().zip(COLOURS.iter().cycle()) {
            let dash = if line.dashed {
                " stroke-dasharray=\"4 3\""
            } else {
                ""
            };
            // Where nothing was measured for a while there is no line.
            for part in line.points.chunk_by(|a, b| b.0 - a.0 < GAP) {
                let points: Vec<String> = part
                    .iter()
                    .map(|(at, value)| format!("{:.1},{:.1}", self.x(*at), self.y(*value, top)))
                    .collect();
                let _ = write!(
                    out,
                    "<polyline points=\"{}\" stroke=\"{colour}\"{dash}><title>{}</title></polyline>",
                    points.join(" "),
                    escape(&line.name)
                );
            }
        }
        out.push_str("</svg>");
        out
    }
}

/// A number without a tail of zeros.
fn label(value: f64) -> String {
    let text = if value >= 10.0 || value.fract() == 0.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.2}")
    };
    if value >= 1000.0 && value % 1000.0 == 0.0 {
        format!("{:.0}k", value / 1000.0)
    } else {
        text
    }
}

/// Text for HTML.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_lie_within_the_plot_whatever_they_are() {
        let plot = Plot {
            title: "a < b".into(),
            scale: Scale::Log(0.1, 100_000.0),
            length: 10.0,
            fault: (2.0, 5.0),
            lines: vec![Line {
                name: "x".into(),
                points: vec![(0.0, 0.0), (5.0, 1e9), (99.0, 10.0)],
                dashed: false,
            }],
        };
        let svg = plot.render();
        assert_eq!(
            svg.matches("<polyline").count(),
            3,
            "points far apart are not joined"
        );
        assert!(svg.contains("a &lt; b") && !svg.contains("NaN") && !svg.contains("inf"));
        let linear = Plot {
            scale: Scale::Linear(0.0),
            lines: Vec::new(),
            ..plot
        };
        assert!(!linear.render().contains("NaN"));
    }
}
