//! Named counters, sharded per thread, with snapshots.
