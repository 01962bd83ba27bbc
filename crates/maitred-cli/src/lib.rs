//! The maitred command: options, configuration files, check, run.
