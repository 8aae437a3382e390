"""Tests of the MCP door."""
