//! The view on a terminal.
//!
//! ```text
//! title, listeners, what is wrong     3 lines      requests, times, machine, threads, pools     4 to 5 lines
//! spans: bar, legend                  2 lines      the last minutes                             3 lines
//! routes                              what is left     requests that run                        a third of that
//! keys                                1 line
//! ```
//! Promises: with 80 × 24 everything is there; with less the lower parts are cut.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::data::View;
use super::lines::{self, LETTERS, Order};
use super::sentence::sentence;
use super::shown::{count, time};

/// Of the spans in the bar.
const COLORS: [Color; LETTERS.len()] =
    [Color::Blue, Color::Yellow, Color::Red, Color::Magenta, Color::Green, Color::LightYellow, Color::Cyan];

/// What is shown beside the view.
#[derive(Clone, Debug, Default)]
pub(super) struct Shown {
    pub(super) order: Order,
    pub(super) is_paused: bool,
    /// Seconds from one look to the next.
    pub(super) interval: f64,
    /// Why there is no new view.
    pub(super) problem: Option<String>,
}

/// Draws everything.
pub(super) fn draw(frame: &mut Frame<'_>, view: &View, shown: &Shown) {
    let width = usize::from(frame.area().width);
    let upper = upper(view, shown, width);
    let height = u16::try_from(upper.len()).unwrap_or(u16::MAX);
    let parts = [Constraint::Length(height), Constraint::Min(0), Constraint::Length(1)];
    let [top, middle, bottom] = Layout::vertical(parts).areas(frame.area());
    frame.render_widget(Paragraph::new(upper), top);
    lists(frame, middle, view, shown.order);
    frame.render_widget(keys(shown), bottom);
}

fn upper(view: &View, shown: &Shown, width: usize) -> Vec<Line<'static>> {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let mut all = vec![Line::styled(lines::title(view), bold), Line::raw(view.listeners.clone())];
    match (&shown.problem, sentence(view)) {
        (Some(problem), _) => all.push(Line::styled(problem.clone(), Style::new().fg(Color::Red))),
        (None, Some(text)) => all.push(Line::styled(text, Style::new().fg(Color::Yellow))),
        (None, None) => all.push(Line::default()),
    }
    all.extend(
        [lines::requests(view), lines::times(view), lines::machine(view), lines::threads(view)]
            .map(Line::raw),
    );
    all.extend(lines::pools(view).map(Line::raw));
    match &view.spans {
        Some(spans) => all.extend([bar(spans, width), Line::raw(lines::legend(spans))]),
        None => all.extend([Line::raw("no requests in the last seconds"), Line::default()]),
    }
    all.push(Line::raw(lines::line("requests/s", (&view.requests_line, view.lines_start), count, width)));
    all.push(Line::raw(lines::line("p99", (&view.p99_line, view.lines_start), time, width)));
    all.push(Line::raw(lines::line("queue", (&view.queue_line, view.lines_start), count, width)));
    all
}

fn bar(spans: &[f64; LETTERS.len()], width: usize) -> Line<'static> {
    let parts = lines::bar(spans, width).into_iter().zip(LETTERS).zip(COLORS);
    let part = |((columns, letter), color): ((usize, char), Color)| {
        Span::styled(letter.to_string().repeat(columns), Style::new().bg(color).fg(Color::Black))
    };
    parts.map(part).collect::<Vec<_>>().into()
}

fn lists(frame: &mut Frame<'_>, area: Rect, view: &View, order: Order) {
    let (title, requests) = lines::running(view);
    // The table of routes gets two thirds of the lines, and those that the table of requests does not need.
    let room = usize::from(area.height);
    let running = requests.len().min((room / 3).max(3).saturating_sub(1));
    let heading = Style::new().add_modifier(Modifier::REVERSED);
    let filled =
        |text: String| Line::styled(format!("{text:<width$}", width = usize::from(area.width)), heading);
    let routes = lines::ordered(view, order);
    let shown = room.saturating_sub(2 + running);
    let mut all = vec![filled(lines::routes_title(view, order))];
    all.extend(routes.iter().take(shown).map(|route| Line::raw(lines::route(route, view))));
    all.resize(1 + shown, Line::default());
    all.push(filled(title));
    all.extend(requests.into_iter().take(running).map(Line::raw));
    frame.render_widget(Paragraph::new(all), area);
}

fn keys(shown: &Shown) -> Line<'static> {
    let pause = if shown.is_paused { "p go on" } else { "p pause" };
    let text = format!(
        "q quit  {pause}  routes by t time, r requests, m mean, 9 p99, n name  +/- {}",
        time(shown.interval)
    );
    Line::styled(text, Style::new().add_modifier(Modifier::DIM))
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::super::data::{Memory, tests::answers};
    use super::*;

    fn drawn(width: u16, height: u16, view: &View, shown: &Shown) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
        terminal.draw(|frame| draw(frame, view, shown)).expect("drawn");
        let buffer = terminal.backend().buffer().clone();
        let line =
            |row: u16| (0..width).map(|column| buffer[(column, row)].symbol().to_owned()).collect::<String>();
        (0..height).map(line).collect()
    }

    #[test]
    fn everything_is_on_a_screen_of_80_by_24() {
        let view = Memory::default().view(&answers());
        let shown = Shown { interval: 2.0, ..Shown::default() };
        let screen = drawn(80, 24, &view, &shown);
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
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(screen[23].starts_with("q quit  p pause"), "{}", screen[23]);
        assert!(screen[23].contains("+/- 2.0 s"), "{}", screen[23]);
    }

    #[test]
    fn any_size_is_drawn() {
        let view = Memory::default().view(&answers());
        let shown = Shown { problem: Some("the server does not answer".to_owned()), ..Shown::default() };
        for (width, height) in [(1, 1), (20, 5), (80, 16), (80, 17), (200, 60)] {
            drawn(width, height, &view, &shown);
            drawn(width, height, &View::default(), &shown);
        }
        assert!(drawn(80, 24, &view, &shown)[2].starts_with("the server does not answer"));
    }
}
