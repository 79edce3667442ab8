"""Serve a learner: answer lines of VW text that clients send to a port."""
