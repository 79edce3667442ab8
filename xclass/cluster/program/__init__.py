"""Runs on a cluster that a program starts, without the command."""
