"""The benches, one module each: `TITLE` and `run(options, folder, report)`."""
