//! Conditions on requests: patterns of paths and header fields, networks of clients, certificates of clients, names of
//! virtual hosts, the readings of a path, and the shape that stands for a route. Pure: no I/O, no clock, no allocation
//! for a request.

mod certificate;
mod host;
mod index;
mod network;
mod pattern;
mod readings;
mod shape;

pub use certificate::CertificatePattern;
pub use host::{HostCondition, HostPattern, HostTable, MAX_HOST, host_name};
pub use index::{Candidates, RuleIndex, first_segment};
pub use network::Network;
pub use pattern::{BadPattern, HeaderPattern, PathPattern};
pub use readings::{Ambiguity, decide};
pub use shape::{Shape, Widened, shape_hasher};
