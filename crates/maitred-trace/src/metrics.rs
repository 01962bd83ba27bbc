//! Metrics: the figures of maitred-stats as sums, gauges and histograms.
//!
//! Promises: all are cumulative from a start that the caller gives. The buckets of a histogram add up to its count.
//!
//! Leaves out: when they are read.

use maitred_stats::{Distribution, exposition};

use crate::encoding::{Attribute, Format, Limits, Value, attributes, item};
use crate::writer::{Field, Message, Writer};

/// The upper bounds that the conventions give for the seconds of a request.
pub const SECONDS: &[f64] =
    &[0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0];

/// Upper bounds for the bytes of bodies.
pub const BYTES: &[f64] =
    &[0.0, 1024.0, 8192.0, 65536.0, 524_288.0, 4_194_304.0, 33_554_432.0, 268_435_456.0];

/// Buckets that an exponential histogram has at most, as SDKs have them.
const MAX_BUCKETS: i32 = 160;

/// The finest scale: 8 buckets for each power of two, 9 % each. The steps of a [`Distribution`] are 3 %, so that they lie in one.
const FINEST: i32 = 3;

/// The width of the first step of a [`Distribution`], whose values count as zero here.
const FIRST_STEP: u64 = 64;

/// A metric with its points.
#[derive(Clone, Copy, Debug)]
pub struct Metric<'a> {
    /// `http.server.request.duration`.
    pub name: &'a str,
    /// One sentence.
    pub description: &'a str,
    /// In UCUM: `s`, `By`, `{request}`; may be empty.
    pub unit: &'a str,
    /// Kind and values.
    pub data: Data<'a>,
}

/// The kind of a metric, and its points: each has other attributes.
#[derive(Clone, Copy, Debug)]
pub enum Data<'a> {
    /// Goes up and down.
    Gauge(&'a [Point<'a>]),
    /// A sum of what has happened, or, if it is not monotonic, of what is there.
    Sum {
        /// It only goes up.
        monotonic: bool,
        /// The values.
        points: &'a [Point<'a>],
    },
    /// How values are spread.
    Histogram {
        /// The unit of the metric in those of the distributions: 1e-9 for seconds of nanoseconds.
        scale: f64,
        /// How they are divided.
        buckets: Buckets<'a>,
        /// The values.
        points: &'a [(&'a [Attribute<'a>], &'a Distribution)],
    },
}

/// A value with its attributes.
#[derive(Clone, Copy, Debug)]
pub struct Point<'a> {
    /// Facts.
    pub attributes: &'a [Attribute<'a>],
    /// The value.
    pub value: Number,
}

/// A value of a sum or a gauge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A whole number.
    Integer(i64),
    /// Any number.
    Float(f64),
}

/// How the values of a histogram are divided.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Buckets<'a> {
    /// By these upper bounds, ascending, in the unit of the metric.
    Explicit(&'a [f64]),
    /// By powers of a base (`base2_exponential_bucket_histogram`).
    Exponential,
}

/// The time that cumulative values cover, in nanoseconds since the epoch.
#[derive(Clone, Copy, Debug)]
pub struct Period {
    /// The values have started at zero.
    pub start: u64,
    /// The values were read.
    pub end: u64,
}

impl Number {
    /// A count.
    #[must_use]
    pub fn count(value: u64) -> Self {
        Self::Integer(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl Metric<'_> {
    /// Appends the metric to `out`, as an item for an exporter of this format.
    pub fn encode(&self, format: Format, period: Period, out: &mut Vec<u8>) {
        item(&Timed(self, period), format, out);
    }
}

/// Makes an item of each metric of ours: `maitred_pool_waited_seconds_total` becomes the sum `maitred.pool_waited` with the
/// unit `s`. `each` gets the items.
pub fn encode_exposed(
    metrics: &[exposition::Metric<'_>],
    buckets: Buckets<'_>,
    format: Format,
    period: Period,
    mut each: impl FnMut(&[u8]),
) {
    let mut out = Vec::new();
    for same in metrics.chunk_by(|left, right| left.name == right.name) {
        let Some(first) = same.first() else { continue };
        out.clear();
        encode_same(first, same, buckets, format, period, &mut out);
        each(&out);
    }
}

fn encode_same(
    first: &exposition::Metric<'_>,
    same: &[exposition::Metric<'_>],
    buckets: Buckets<'_>,
    format: Format,
    period: Period,
    out: &mut Vec<u8>,
) {
    use exposition::Value as Exposed;

    let labels: Vec<Vec<Attribute<'_>>> = same
        .iter()
        .map(|metric| metric.labels.iter().map(|(key, text)| (*key, Value::Text(text))).collect())
        .collect();
    let points: Vec<Point<'_>> = same
        .iter()
        .zip(&labels)
        .filter_map(|(metric, attributes)| {
            let value = match metric.value {
                Exposed::Counter(value) => Number::count(value),
                Exposed::Gauge(value) => Number::Integer(value),
                Exposed::SecondsTotal(nanos) | Exposed::Seconds(nanos) => Number::Float(nanos as f64 / 1e9),
                Exposed::Histogram(_) | Exposed::Summary(_) | Exposed::Numbers(_) => return None,
            };
            Some(Point { attributes, value })
        })
        .collect();
    let spread: Vec<(&[Attribute<'_>], &Distribution)> = same
        .iter()
        .zip(&labels)
        .filter_map(|(metric, attributes)| match metric.value {
            Exposed::Histogram(of) | Exposed::Summary(of) | Exposed::Numbers(of) => {
                Some((attributes.as_slice(), of))
            }
            _ => None,
        })
        .collect();
    let data = match first.value {
        Exposed::Counter(_) | Exposed::SecondsTotal(_) => Data::Sum { monotonic: true, points: &points },
        Exposed::Gauge(_) | Exposed::Seconds(_) => Data::Gauge(&points),
        Exposed::Histogram(_) | Exposed::Summary(_) => {
            Data::Histogram { scale: 1e-9, buckets, points: &spread }
        }
        // Values without a unit have no bounds of ours.
        Exposed::Numbers(_) => {
            Data::Histogram { scale: 1e-3, buckets: Buckets::Exponential, points: &spread }
        }
    };
    let base = first.name.strip_suffix("_total").unwrap_or(first.name);
    let (base, unit) = if let Some(base) = base.strip_suffix("_seconds") {
        (base, "s")
    } else if let Some(base) = base.strip_suffix("_bytes") {
        (base, "By")
    } else {
        (base, "")
    };
    let name = base.strip_prefix("maitred_").map(|rest| format!("maitred.{rest}"));
    let metric = Metric { name: name.as_deref().unwrap_or(base), description: first.help, unit, data };
    metric.encode(format, period, out);
}

struct Timed<'a>(&'a Metric<'a>, Period);

const POINTS: Field = Field(1, "dataPoints");

impl Message for Timed<'_> {
    fn write<W: Writer>(&self, writer: &mut W) {
        let Self(metric, period) = *self;
        writer.text(Field(1, "name"), metric.name.as_bytes());
        for (field, text) in [(Field(2, "description"), metric.description), (Field(3, "unit"), metric.unit)]
        {
            if !text.is_empty() {
                writer.text(field, text.as_bytes());
            }
        }
        match metric.data {
            Data::Gauge(points) => writer.message(Field(5, "gauge"), |writer| {
                writer.messages(POINTS, points.iter(), |writer, point| number(writer, point, period));
            }),
            Data::Sum { monotonic, points } => writer.message(Field(7, "sum"), |writer| {
                writer.messages(POINTS, points.iter(), |writer, point| number(writer, point, period));
                cumulative(writer);
                writer.bool(Field(3, "isMonotonic"), monotonic);
            }),
            Data::Histogram { scale, buckets: Buckets::Explicit(bounds), points } => {
                writer.message(Field(9, "histogram"), |writer| {
                    writer.messages(POINTS, points.iter(), |writer, (facts, of)| {
                        explicit(writer, facts, of, (scale, bounds), period);
                    });
                    cumulative(writer);
                });
            }
            Data::Histogram { scale, buckets: Buckets::Exponential, points } => {
                writer.message(Field(10, "exponentialHistogram"), |writer| {
                    writer.messages(POINTS, points.iter(), |writer, (facts, of)| {
                        exponential(writer, facts, of, scale, period);
                    });
                    cumulative(writer);
                });
            }
        }
    }
}

fn cumulative(writer: &mut impl Writer) {
    writer.small(Field(2, "aggregationTemporality"), 2);
}

fn times(writer: &mut impl Writer, period: Period) {
    writer.fixed64(Field(2, "startTimeUnixNano"), period.start);
    writer.fixed64(Field(3, "timeUnixNano"), period.end);
}

fn number(writer: &mut impl Writer, point: &Point<'_>, period: Period) {
    times(writer, period);
    match point.value {
        Number::Float(value) => writer.double(Field(4, "asDouble"), value),
        Number::Integer(value) => writer.fixed_integer(Field(6, "asInt"), value),
    }
    attributes(writer, 7, point.attributes, &Limits::default(), false);
}

fn explicit(
    writer: &mut impl Writer,
    facts: &[Attribute<'_>],
    of: &Distribution,
    (scale, bounds): (f64, &[f64]),
    period: Period,
) {
    let mut counts = Vec::with_capacity(bounds.len() + 1);
    let mut below = 0;
    for bound in bounds {
        let up_to = of.count_up_to((bound / scale).round() as u64).min(of.count());
        counts.push(up_to - below);
        below = up_to;
    }
    // Values whose place is not known are here, too.
    counts.push(of.count() - below);
    times(writer, period);
    writer.fixed64(Field(4, "count"), of.count());
    writer.double(Field(5, "sum"), of.sum() as f64 * scale);
    writer.fixed64s(Field(6, "bucketCounts"), &counts);
    writer.doubles(Field(7, "explicitBounds"), bounds);
    attributes(writer, 9, facts, &Limits::default(), false);
    extremes(writer, [11, 12], of, scale);
}

fn exponential(
    writer: &mut impl Writer,
    facts: &[Attribute<'_>],
    of: &Distribution,
    scale: f64,
    period: Period,
) {
    let (mut zeros, mut steps) = (0, Vec::new());
    of.each(|first, count| match first {
        0 => zeros += count,
        _ => steps.push((middle(first) as f64 * scale, count)),
    });
    let unplaced = of.count() - (zeros + steps.iter().map(|(_, count)| count).sum::<u64>()).min(of.count());
    if unplaced > 0 {
        steps.push((of.max().max(1) as f64 * scale, unplaced));
    }
    // The bucket of a value: base^index < value <= base^(index + 1), base = 2^(2^-fineness).
    let index = |value: f64, fineness: i32| (value.log2() * f64::from(fineness).exp2()).ceil() as i32 - 1;
    let (least, most) = (steps.first().map_or(1.0, |step| step.0), steps.last().map_or(1.0, |step| step.0));
    let mut fineness = FINEST;
    while index(most, fineness) - index(least, fineness) >= MAX_BUCKETS {
        fineness -= 1;
    }
    let offset = index(least, fineness);
    let mut counts = Vec::new();
    for (value, count) in steps {
        let place = (index(value, fineness) - offset).max(0) as usize;
        counts.resize(counts.len().max(place + 1), 0);
        if let Some(sum) = counts.get_mut(place) {
            *sum += count;
        }
    }
    attributes(writer, 1, facts, &Limits::default(), false);
    times(writer, period);
    writer.fixed64(Field(4, "count"), of.count());
    writer.double(Field(5, "sum"), of.sum() as f64 * scale);
    writer.signed(Field(6, "scale"), fineness);
    writer.fixed64(Field(7, "zeroCount"), zeros);
    writer.message(Field(8, "positive"), |writer| {
        writer.signed(Field(1, "offset"), offset);
        writer.varints(Field(2, "bucketCounts"), &counts);
    });
    extremes(writer, [12, 13], of, scale);
    writer.double(Field(14, "zeroThreshold"), FIRST_STEP as f64 * scale);
}

/// The middle of the step that begins here.
fn middle(first: u64) -> u64 {
    first + (first / 32).checked_ilog2().map_or(0, |power| 1 << power).max(FIRST_STEP) / 2
}

fn extremes(writer: &mut impl Writer, numbers: [u32; 2], of: &Distribution, scale: f64) {
    if of.count() > 0 {
        writer.double(Field(numbers[0], "min"), of.min() as f64 * scale);
        writer.double(Field(numbers[1], "max"), of.max() as f64 * scale);
    }
}
