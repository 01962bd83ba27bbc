//! Tests of the two ends together.

mod appendix_c;
