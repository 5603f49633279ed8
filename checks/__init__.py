"""Checks that take longer than tests, one module for each."""
