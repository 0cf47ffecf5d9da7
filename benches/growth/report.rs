//! The figures as a table, as data and as a picture.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::common::pin::Cores;
use super::common::plot::{Panel, panels};
use super::common::statistics::Spread;
use super::common::{disk, say};
use super::figures::{Axis, Point, Turn};
use super::plan::Plan;

/// Writes `growth.md`, `growth.json` and `growth.svg`.
pub fn write(plan: &Plan, axes: &[Axis], cores: Cores, mut facts: Vec<(&'static str, String)>) {
    facts.push((
        "run",
        format!("{}, {} rounds of {} requests ({} for rows)", plan.name, plan.rounds, plan.requests, plan.creates),
    ));
    facts.push(("cores", cores.describe().to_owned()));
    facts.push(("disk", disk::filesystem(&plan.out)));
    for (name, text) in [
        ("growth.md", table(axes, &facts)),
        ("growth.json", format!("{:#}\n", data(axes, &facts))),
        ("growth.svg", picture(axes)),
    ] {
        let path = plan.out.join(name);
        std::fs::write(&path, text).unwrap();
        say(&format!("wrote {}", path.display()));
    }
}

fn table(axes: &[Axis], facts: &[(&str, String)]) -> String {
    let mut text = String::from("# What grows\n\n");
    for (name, fact) in facts {
        let _ = writeln!(text, "- {name}: {fact}");
    }
    text.push_str(
        "\nServer CPU a request at 64 connections (but for the last table), in microseconds; its ratio to the smallest size \
         of the same round; latencies of the requests in milliseconds, and how far their 99th hundredth is from the middle. \
         Medians, with ranges in brackets. \"Everything else\" is withdrawals that come to their results, their callbacks, \
         and pages of the history; its CPU counts, a create being what a deposit or a withdrawal begins with.\n",
    );
    for axis in axes {
        let _ = writeln!(text, "\n## {}\n", capitalized(axis.title));
        let _ = writeln!(text, "CPU of a {}.{}\n", axis.request, goals(axis));
        text.push_str(
            "| size | CPU us | to the smallest | p50 ms | p99 ms | p99 / p50 | ready after s | memory MiB | |\n",
        );
        text.push_str("|---|---|---|---|---|---|---|---|---|\n");
        axis.points.iter().for_each(|point| text.push_str(&row(axis, point)));
    }
    text
}

fn row(axis: &Axis, point: &Point) -> String {
    let millis = |of: fn(&Turn) -> f64| point.latency(|turn| of(turn) / 1000.0).text(2);
    let (cpu, ratio) = (point.cpu().text(1), axis.cpu_ratio(point).text(2));
    let (p50, p99, tail) = (millis(|turn| turn.p50), millis(|turn| turn.p99), point.tail().text(1));
    let (ready, memory) = (point.ready.as_secs_f64(), point.memory >> 20);
    let (size, note) = (point.size, &point.note);
    format!("| {size} | {cpu} | {ratio} | {p50} | {p99} | {tail} | {ready:.2} | {memory} | {note} |\n")
}

fn goals(axis: &Axis) -> String {
    let cpu = axis.cpu_goal.map(|goal| format!(" Goal: at most {goal} times the smallest size's."));
    let tail = axis.tail_goal.map(|goal| format!(" Goal: p99 at most {goal} times p50."));
    cpu.into_iter().chain(tail).collect()
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn data(axes: &[Axis], facts: &[(&str, String)]) -> Value {
    let turn = |turn: &Turn| json!({ "cpu_us": turn.cpu, "p50_us": turn.p50, "p99_us": turn.p99 });
    let point = |point: &Point| {
        json!({
            "size": point.size, "ready_s": point.ready.as_secs_f64(), "memory_bytes": point.memory, "note": point.note,
            "turns": point.turns.iter().map(turn).collect::<Vec<_>>(),
        })
    };
    let grown = |axis: &Axis| {
        json!({
            "name": axis.name, "title": axis.title, "request": axis.request,
            "cpu_goal": axis.cpu_goal, "tail_goal": axis.tail_goal,
            "points": axis.points.iter().map(point).collect::<Vec<_>>(),
        })
    };
    let facts: serde_json::Map<_, _> =
        facts.iter().map(|(name, fact)| ((*name).to_owned(), Value::from(fact.as_str()))).collect();
    json!({ "measured": facts, "axes": axes.iter().map(grown).collect::<Vec<_>>() })
}

fn picture(axes: &[Axis]) -> String {
    let mut all = Vec::new();
    for axis in axes {
        let of = |figure: &dyn Fn(&Point) -> Spread| {
            let point = |point: &Point| {
                let Spread { median, least, most } = figure(point);
                (point.size as f64, median, (least, most))
            };
            axis.points.iter().map(point).collect::<Vec<_>>()
        };
        let (name, x_name) = (axis.request, axis.title.to_owned());
        all.push(Panel {
            title: format!("CPU of a {name}, to the smallest size"),
            x_name: x_name.clone(),
            points: of(&|point| axis.cpu_ratio(point)),
            goal: axis.cpu_goal,
        });
        if let Some(goal) = axis.tail_goal {
            all.push(Panel {
                title: format!("p99 to p50 of a {name}"),
                x_name,
                points: of(&Point::tail),
                goal: Some(goal),
            });
        }
    }
    panels(
        "What grows with use does not grow with size",
        "server CPU of a request to that of the smallest size, and how far the slowest hundredth is: medians and ranges",
        &all,
    )
}
