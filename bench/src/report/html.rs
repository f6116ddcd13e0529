//! One page with everything in it: styles, plots, tables; no script and no other file.

use std::fmt::Write as _;
use std::time::Duration;

use super::Report;
use super::svg::{COLOURS, Line, Plot, Scale, escape};
use super::table::phases;
use crate::scenario::Run;
use crate::scenario::observe::Sample;
use crate::scenario::record::{SLICE, Slice, Window};

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:1780px;margin:2em auto;padding:0 1em;color:#222}\
h1{font-size:1.5em}h2{font-size:1.1em;margin:1.5em 0 .3em}.row{display:grid;gap:1em;\
grid-template-columns:repeat(auto-fit,minmax(320px,1fr))}figure{margin:0}figcaption{font-size:.9em}\
svg{width:100%;height:auto;font:10px system-ui,sans-serif}svg text{fill:#555}.grid{stroke:#ddd}.fault{fill:#fbe9e0}\
polyline{fill:none;stroke-width:1.6}table{border-collapse:collapse;font-size:.9em}td,th{padding:.2em .7em;\
border-bottom:1px solid #ddd;text-align:right}td:first-child,th:first-child,.l{text-align:left}\
.key span{margin-right:1.2em;white-space:nowrap}.key i{display:inline-block;width:1.6em;height:.25em;\
vertical-align:middle;margin-right:.4em}.kept{color:#00694d}.broken{color:#b00020;font-weight:bold}";

/// The page. Writing to a String cannot fail.
pub(super) fn render(report: &Report) -> String {
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><title>{name}</title><style>{STYLE}</style>\n<h1>{name}</h1>\n<p>{story}</p>\n\
         <p>{} shards, {:.0} requests a second, each meant to be sent at a moment of its own. Good is an answer within \
         1 s of that moment. Shaded: the fault.</p>\n",
        report.shards,
        report.rate,
        name = escape(report.name),
        story = escape(&report.story),
    );
    promises(&mut out, report);
    row(
        &mut out,
        report,
        "Latency of answers, ms: the median, and dashed the 99th percentile",
        latency,
        true,
    );
    row(
        &mut out,
        report,
        "Good answers, % of requests by the moment they were meant to be sent",
        goodput,
        true,
    );
    row(
        &mut out,
        report,
        "Errors, ms until the client has one: the median",
        refusals,
        true,
    );
    row(&mut out, report, "Breakers that are not closed", breakers, false);
    row(
        &mut out,
        report,
        "Connections to tablets, all pools together",
        pools,
        false,
    );
    if report
        .runs
        .iter()
        .any(|r| r.seen.samples.iter().any(|s| s.buffered > 0.0))
    {
        row(&mut out, report, "Requests in reparent buffers", buffers, false);
    }
    figures(&mut out, report);
    out
}

fn promises(out: &mut String, report: &Report) {
    out.push_str("<table><tr><th>promise</th><th class=\"l\">measured</th><th></th></tr>\n");
    for p in &report.promises {
        let mark = if p.kept { "kept" } else { "broken" };
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td class=\"l\">{}</td><td class=\"{mark}\">{mark}</td></tr>",
            escape(&p.text),
            escape(&p.measured)
        );
    }
    out.push_str("</table>\n");
}

/// One kind of plot for each run, side by side, under one key.
fn row(out: &mut String, report: &Report, title: &str, plot: fn(&Run) -> (Scale, Vec<Line>), by_kind: bool) {
    let _ = writeln!(out, "<h2>{}</h2>", escape(title));
    let plots: Vec<(String, Scale, Vec<Line>)> = report
        .runs
        .iter()
        .map(|run| {
            let (scale, lines) = plot(run);
            (run.variant.to_string(), scale, lines)
        })
        .collect();
    let names: Vec<String> = match (by_kind, report.runs.first(), plots.first()) {
        (true, Some(run), _) => run.record.kinds.iter().map(|k| (*k).to_owned()).collect(),
        (false, _, Some((.., lines))) => lines.iter().map(|l| l.name.clone()).collect(),
        _ => Vec::new(),
    };
    out.push_str("<p class=\"key\">");
    for (name, colour) in names.iter().zip(COLOURS.iter().cycle()) {
        let _ = write!(
            out,
            "<span><i style=\"background:{colour}\"></i>{}</span>",
            escape(name)
        );
    }
    out.push_str("</p>\n<div class=\"row\">\n");
    // One scale for all of a row, so that they can be compared.
    let largest = plots
        .iter()
        .flat_map(|(.., lines)| lines)
        .flat_map(|l| &l.points)
        .map(|p| p.1);
    let largest = largest.fold(1.0, f64::max);
    for ((title, scale, lines), run) in plots.into_iter().zip(&report.runs) {
        let fault = run.phases.fault();
        let plot = Plot {
            scale: match scale {
                Scale::Linear(least) => Scale::Linear(least.max(largest)),
                Scale::Log(..) => scale,
            },
            title: title.clone(),
            length: run.phases.after().to.as_secs_f64(),
            fault: (fault.from.as_secs_f64(), fault.to.as_secs_f64()),
            lines,
        };
        let _ = writeln!(
            out,
            "<figure>{}<figcaption>{}</figcaption></figure>",
            plot.render(),
            escape(&title)
        );
    }
    out.push_str("</div>\n");
}

/// A value of each slice, by kind; slices without one are left out.
fn by_kind(run: &Run, dashed: bool, value: impl Fn(&Slice) -> Option<f64>) -> Vec<Line> {
    let whole = Window {
        from: Duration::ZERO,
        to: run.phases.after().to,
    };
    let kinds = run.record.kinds.iter().enumerate();
    let line = |(kind, name): (usize, &&str)| {
        let slices = run.record.parts(kind, whole).iter().zip(0u32..);
        let points =
            slices.filter_map(|(slice, n)| Some(((SLICE * n + SLICE / 2).as_secs_f64(), value(slice)?)));
        Line {
            name: (*name).to_owned(),
            points: points.collect(),
            dashed,
        }
    };
    kinds.map(line).collect()
}

const MILLISECONDS: Scale = Scale::Log(0.1, 100_000.0);

fn latency(run: &Run) -> (Scale, Vec<Line>) {
    let mut lines = by_kind(run, false, |s| s.answered_ms(0.5));
    // The colours begin again only where they run out, so the dashed lines are brought to the same place.
    let blank = Line {
        name: String::new(),
        points: Vec::new(),
        dashed: false,
    };
    while !lines.len().is_multiple_of(COLOURS.len()) {
        lines.push(blank.clone());
    }
    lines.extend(by_kind(run, true, |s| s.answered_ms(0.99)));
    (MILLISECONDS, lines)
}

fn goodput(run: &Run) -> (Scale, Vec<Line>) {
    (
        Scale::Linear(100.0),
        by_kind(run, false, |s| (s.sent > 0).then(|| s.goodput() * 100.0)),
    )
}

fn refusals(run: &Run) -> (Scale, Vec<Line>) {
    (MILLISECONDS, by_kind(run, false, |s| s.refused_ms(0.5)))
}

/// A name, and what is read under it.
type Reading = (&'static str, fn(&Sample) -> f64);

fn sampled(run: &Run, values: &[Reading]) -> (Scale, Vec<Line>) {
    let line = |(name, value): &Reading| Line {
        name: (*name).to_owned(),
        points: run
            .seen
            .samples
            .iter()
            .map(|s| (s.at.as_secs_f64(), value(s)))
            .collect(),
        dashed: false,
    };
    (Scale::Linear(1.0), values.iter().map(line).collect())
}

fn breakers(run: &Run) -> (Scale, Vec<Line>) {
    sampled(
        run,
        &[
            ("open", |s| s.open),
            ("half open", |s| s.half_open),
            ("of single kinds of query", |s| s.queries_cut),
        ],
    )
}

fn pools(run: &Run) -> (Scale, Vec<Line>) {
    sampled(
        run,
        &[
            ("lent", |s| s.busy),
            ("requests that wait for one", |s| s.waiting),
        ],
    )
}

fn buffers(run: &Run) -> (Scale, Vec<Line>) {
    sampled(run, &[("buffered", |s| s.buffered)])
}

fn figures(out: &mut String, report: &Report) {
    out.push_str(
        "<h2>Figures</h2>\n<table><tr><th>configuration</th><th class=\"l\">requests</th><th class=\"l\">phase</th>\
         <th>sent</th><th>good</th><th>p50 ms</th><th>p99 ms</th><th>errors p50 ms</th><th>longest ms</th>\
         <th class=\"l\">failed</th></tr>\n",
    );
    for run in &report.runs {
        for (kind, name) in run.record.kinds.iter().enumerate() {
            for (phase, window) in phases(run) {
                let slice = run.record.over(kind, window);
                let ms = |v: Option<f64>| v.map_or_else(|| "-".into(), |v| format!("{v:.1}"));
                let failed: Vec<String> = slice
                    .failed
                    .iter()
                    .map(|(code, n)| format!("{code} x {n}"))
                    .collect();
                let _ = writeln!(
                    out,
                    "<tr><td>{}</td><td class=\"l\">{}</td><td class=\"l\">{phase}</td><td>{}</td><td>{:.1} %</td>\
                     <td>{}</td><td>{}</td><td>{}</td><td>{}</td><td class=\"l\">{}</td></tr>",
                    run.variant,
                    escape(name),
                    slice.sent,
                    slice.goodput() * 100.0,
                    ms(slice.answered_ms(0.5)),
                    ms(slice.answered_ms(0.99)),
                    ms(slice.refused_ms(0.5)),
                    slice.worst.as_millis(),
                    escape(&failed.join(", "))
                );
            }
        }
    }
    out.push_str("</table>\n");
}
