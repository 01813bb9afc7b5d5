"""The pages of the server; `layout` says how to add one."""
