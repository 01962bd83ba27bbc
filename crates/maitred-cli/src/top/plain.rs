//! The view as plain text: a block for each look, for files, pipes and terminals that cannot move a cursor.

use super::data::View;
use super::lines::{self, LETTERS, Order};
use super::sentence::sentence;
use super::shown::{count, time};

/// How wide lines of the last minutes are.
const WIDTH: usize = 80;

/// Routes and requests that are shown.
const MOST: usize = 10;

/// The whole block, with a blank line behind it.
pub(super) fn block(view: &View, order: Order) -> String {
    let mut all = vec![lines::title(view), view.listeners.clone()];
    all.extend(sentence(view));
    all.extend([lines::requests(view), lines::times(view), lines::machine(view), lines::threads(view)]);
    all.extend(lines::pools(view));
    if let Some(spans) = &view.spans {
        all.push(format!("spans: {}", lines::legend(spans)));
        let bar = lines::bar(spans, WIDTH - 2);
        let drawn: String =
            LETTERS.iter().zip(bar).map(|(letter, columns)| letter.to_string().repeat(columns)).collect();
        all.push(format!("[{drawn}]"));
    }
    all.push(lines::line("requests/s", (&view.requests_line, view.lines_start), count, WIDTH));
    all.push(lines::line("p99", (&view.p99_line, view.lines_start), time, WIDTH));
    all.push(lines::line("queue", (&view.queue_line, view.lines_start), count, WIDTH));
    all.push(lines::routes_title(view, order));
    all.extend(lines::ordered(view, order).into_iter().take(MOST).map(|route| lines::route(route, view)));
    let (title, running) = lines::running(view);
    all.push(title);
    all.extend(running.into_iter().take(MOST));
    let mut text = all.iter().map(|line| line.trim_end()).collect::<Vec<_>>().join("\n");
    text.push_str("\n\n");
    text
}

#[cfg(test)]
mod tests {
    use super::super::data::{Memory, tests::answers};
    use super::*;

    #[test]
    fn a_block_has_everything_and_no_escapes() {
        let block = block(&Memory::default().view(&answers()), Order::Time);
        for part in [
            "maitred 0.1.0",
            "https://[::1]:8443",
            "Stuck in",
            "requests/s 40",
            "spans: queue 20 %",
            "/search",
            "2 requests run",
        ] {
            assert!(block.contains(part), "{part}: {block}");
        }
        assert!(!block.contains('\u{1b}') && block.ends_with("\n\n"));
    }
}
