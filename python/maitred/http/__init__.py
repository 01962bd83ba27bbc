"""Calls to other servers over HTTP."""
