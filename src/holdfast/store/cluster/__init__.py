"""A PostgreSQL database spread over the nodes of a Citus cluster."""
