"""Commands for whoever runs Holdfast: server, worker, keys, jobs, backups, benchmarks."""
