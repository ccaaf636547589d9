"""Publish counts about people without exposing them: a streaming dataflow engine in the wPINQ style."""
