//! The whole view: on a screen, and as plain text for files, pipes and terminals that cannot move a cursor.
//!
//! ```text
//! title, listeners, what is wrong     3 lines      requests, times, machine, threads, pools     4 to 5 lines
//! spans: bar, legend                  2 lines      the last minutes                             3 lines
//! routes                              what is left     requests that run                        a third of that
//! keys                                1 line
//! ```
//! Promises: with 80 × 24 everything is there; with less the lower parts are cut. No text of the server or of its clients controls the terminal.

use super::data::{SPANS, View};
use super::lines::{self, BY_TIME};
use super::shown::time;

/// How wide plain text is, and how many routes and requests it has.
const WIDTH: usize = 80;
const MOST: usize = 10;

const BOLD: &str = "1";
const DIM: &str = "2";
const REVERSED: &str = "7";
const RED: &str = "31";
const YELLOW: &str = "33";

/// Of the spans in the bar: the background, below black letters.
const COLORS: [&str; SPANS.len()] = ["30;44", "30;43", "30;41", "30;45", "30;42", "30;103", "30;46"];

/// What is shown beside the view.
#[derive(Clone, Debug, Default)]
pub(super) struct Shown {
    /// The column by which routes are in order.
    pub(super) order: usize,
    pub(super) is_paused: bool,
    pub(super) is_colored: bool,
    /// Seconds from one look to the next.
    pub(super) interval: f64,
    /// Why there is no new view.
    pub(super) problem: Option<String>,
}

/// A block of plain text, with a blank line behind it.
pub(super) fn plain(view: &View) -> String {
    let mut all = vec![lines::title(view), lines::listeners(view)];
    all.extend(lines::sentence(view));
    all.extend(lines::present(view));
    if let Some(spans) = view.spans() {
        all.push(format!("spans: {}", lines::legend(&spans)));
        all.push(format!("[{}]", lines::bar(&spans, WIDTH - 2).concat()));
    }
    all.extend(lines::minutes(view, WIDTH));
    all.extend(lines::routes(view, BY_TIME, MOST));
    all.extend(lines::running(view, MOST));
    let mut text = String::new();
    for line in all {
        text.push_str(clean(&line, usize::MAX).trim_end());
        text.push('\n');
    }
    text.push('\n');
    text
}

/// The lines of a screen, with escape sequences for their looks.
pub(super) fn screen(view: &View, shown: &Shown, (width, height): (usize, usize)) -> Vec<String> {
    let raw = |line: &String| clean(line, width);
    let color = |look: &str, text: &str| if shown.is_colored { styled(look, text) } else { text.to_owned() };
    let mut all = vec![styled(BOLD, &raw(&lines::title(view))), raw(&lines::listeners(view))];
    all.push(match (&shown.problem, lines::sentence(view)) {
        (Some(problem), _) => color(RED, &raw(problem)),
        (None, Some(text)) => color(YELLOW, &raw(&text)),
        (None, None) => String::new(),
    });
    all.extend(lines::present(view).iter().map(raw));
    match view.spans() {
        Some(spans) => {
            let bar = lines::bar(&spans, width);
            all.push(COLORS.iter().zip(&bar).map(|(own, part)| color(own, part)).collect());
            all.push(raw(&lines::legend(&spans)));
        }
        None => all.extend(["no requests in the last seconds".to_owned(), String::new()]),
    }
    all.extend(lines::minutes(view, width).iter().map(raw));
    // The table of routes gets two thirds of the lines that are left, and those that the table of requests does not need.
    let room = height.saturating_sub(all.len() + 1);
    let running = lines::running(view, (room / 3).max(3) - 1);
    let routes = lines::routes(view, shown.order, room.saturating_sub(1 + running.len()));
    let below = room.saturating_sub(running.len()).saturating_sub(routes.len());
    for (table, below) in [(routes, below), (running, 0)] {
        all.push(styled(REVERSED, &format!("{:<width$}", raw(&table[0]))));
        all.extend(table[1..].iter().map(raw));
        all.extend(std::iter::repeat_n(String::new(), below));
    }
    all.resize(height.saturating_sub(1), String::new());
    all.push(styled(DIM, &raw(&keys(shown))));
    all
}

fn keys(shown: &Shown) -> String {
    let pause = if shown.is_paused { "p go on" } else { "p pause" };
    let interval = time(shown.interval);
    format!("q quit  {pause}  routes by t time, r requests, m mean, 9 p99, n name  +/- {interval}")
}

/// As much as there is room for, without anything that tells a terminal what to do.
fn clean(line: &str, width: usize) -> String {
    line.chars().take(width).map(|each| if each.is_control() { '?' } else { each }).collect()
}

/// Looks are numbers of "select graphic rendition" (ECMA-48 §8.3.117).
fn styled(look: &str, text: &str) -> String {
    format!("\u{1b}[{look}m{text}\u{1b}[m")
}

#[cfg(test)]
mod tests {
    use super::super::data::{Memory, tests::answers};
    use super::*;

    /// Without escape sequences.
    fn bare(line: &str) -> String {
        let parts = line.split('\u{1b}').enumerate();
        parts.map(|(at, part)| if at == 0 { part } else { part.split_once('m').expect("a look").1 }).collect()
    }

    fn drawn(size: (usize, usize), view: &View, shown: &Shown) -> Vec<String> {
        let lines: Vec<String> = screen(view, shown, size).iter().map(|line| bare(line)).collect();
        assert_eq!(lines.len(), size.1);
        assert!(lines.iter().all(|line| line.chars().count() <= size.0), "{size:?}: {lines:?}");
        lines
    }

    #[test]
    fn everything_is_on_a_screen_of_80_by_24() {
        let view = Memory::default().view(answers());
        let shown = Shown { interval: 2.0, order: BY_TIME, ..Shown::default() };
        let screen = drawn((80, 24), &view, &shown);
        let text = screen.join("\n");
        for part in [
            "maitred 0.1.0",
            "Stuck in",
            "requests/s 40",
            "p99 900 ms",
            "0.5 wait for the interpreter",
            "rrrr",
            "queue 20 %",
            "time▼",
            "/search",
            "2 requests run",
            "GET /search",
            "GET /a?[31m",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(screen[20].starts_with("2 requests run"), "{text}");
        assert!(screen[23].starts_with("q quit  p pause") && screen[23].contains("+/- 2.0 s"), "{text}");
    }

    #[test]
    fn any_size_is_drawn() {
        let view = Memory::default().view(answers());
        let problem = Some("the server does not\u{1b}answer".to_owned());
        let shown = Shown { problem, is_colored: true, ..Shown::default() };
        for size in [(1, 1), (20, 5), (80, 13), (80, 16), (80, 17), (200, 60)] {
            drawn(size, &view, &shown);
            drawn(size, &View::default(), &shown);
        }
        assert_eq!(drawn((80, 24), &view, &shown)[2], "the server does not?answer");
    }

    #[test]
    fn colors_are_left_out_where_they_are_not_wanted() {
        let view = Memory::default().view(answers());
        let bar = |is_colored| screen(&view, &Shown { is_colored, ..Shown::default() }, (5, 24))[7].clone();
        assert_eq!(bar(false), "qrrrr");
        assert!(bar(true).contains("\u{1b}[30;42mrrrr\u{1b}[m"), "{}", bar(true));
    }

    #[test]
    fn a_block_has_everything_and_no_escapes() {
        let block = plain(&Memory::default().view(answers()));
        for part in [
            "maitred 0.1.0",
            "https://[::1]:8443",
            "Stuck in",
            "requests/s 40",
            "spans: queue 20 %",
            "\n[qqq",
            "/search",
            "2 requests run",
        ] {
            assert!(block.contains(part), "{part}: {block}");
        }
        assert!(!block.contains('\u{1b}') && block.ends_with("\n\n"));
    }
}
