//! Test tools: virtual clock, in-memory connection pair, scripted handler, wire scripts.
