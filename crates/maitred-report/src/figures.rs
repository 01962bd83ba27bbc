//! Counts, means and percentiles. Exact: all values are there.

use super::read::{Log, Request, SPANS};

/// The figures of many values, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Figures {
    pub(super) count: usize,
    pub(super) min: u64,
    pub(super) mean: f64,
    pub(super) deviation: f64,
    pub(super) median: u64,
    pub(super) p90: u64,
    pub(super) p99: u64,
    pub(super) max: u64,
}

impl Figures {
    pub(super) fn of(mut values: Vec<u64>) -> Self {
        values.sort_unstable();
        let (Some(min), Some(max)) = (values.first(), values.last()) else { return Self::default() };
        let count = values.len() as f64;
        let mean = values.iter().map(|value| *value as f64).sum::<f64>() / count;
        let squares = values.iter().map(|value| (*value as f64 - mean).powi(2)).sum::<f64>();
        // The smallest value that so many per cent do not exceed.
        let percentile = |per_cent: usize| values[(values.len() * per_cent).div_ceil(100).max(1) - 1];
        Self {
            count: values.len(),
            min: *min,
            mean,
            deviation: (squares / count).sqrt(),
            median: percentile(50),
            p90: percentile(90),
            p99: percentile(99),
            max: *max,
        }
    }
}

/// The figures of each span, and of the whole time behind them.
pub(super) fn of_spans(requests: &[Request]) -> Vec<(&'static str, Figures)> {
    let of = |value: &dyn Fn(&Request) -> u64| Figures::of(requests.iter().map(value).collect());
    let spans = SPANS.iter().enumerate();
    let mut all: Vec<_> = spans.map(|(index, name)| (*name, of(&|request| request.spans[index]))).collect();
    all.push(("total", of(&Request::total)));
    all
}

pub(super) struct Route {
    pub(super) route: u32,
    pub(super) figures: Figures,
    /// The mean of each span, in microseconds.
    pub(super) spans: [f64; SPANS.len()],
    /// The route's part of the time of all requests, from 0 to 1.
    pub(super) share: f64,
}

pub(super) fn of_routes(log: &Log) -> Vec<Route> {
    let mut totals: Vec<Vec<u64>> = vec![Vec::new(); log.routes.len()];
    let mut spans = vec![[0.0; SPANS.len()]; log.routes.len()];
    for request in &log.requests {
        totals[request.route as usize].push(request.total());
        let sums = spans[request.route as usize].iter_mut();
        sums.zip(request.spans).for_each(|(sum, span)| *sum += span as f64);
    }
    let sum = |values: &[u64]| values.iter().map(|value| *value as f64).sum::<f64>();
    let all = totals.iter().map(|values| sum(values)).sum::<f64>().max(1.0);
    let mut routes: Vec<Route> = (0..)
        .zip(totals)
        .zip(spans)
        .map(|((route, values), sums)| Route {
            route,
            spans: sums.map(|sum| sum / values.len().max(1) as f64),
            share: sum(&values) / all,
            figures: Figures::of(values),
        })
        .collect();
    routes.sort_by(|one, other| other.share.total_cmp(&one.share).then(one.route.cmp(&other.route)));
    routes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_exact() {
        let figures = Figures::of((1..=100).rev().collect());
        assert_eq!((figures.count, figures.min, figures.max), (100, 1, 100));
        assert_eq!((figures.median, figures.p90, figures.p99), (50, 90, 99));
        assert!((figures.mean - 50.5).abs() < 1e-9 && (figures.deviation - 28.866_070).abs() < 1e-6);
        let one = Figures::of(vec![7]);
        assert_eq!((one.min, one.median, one.p99, one.max), (7, 7, 7, 7));
        assert_eq!(Figures::of(Vec::new()), Figures::default());
    }
}
