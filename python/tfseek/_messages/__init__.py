"""Mutable messages with the manners of protobuf's Python classes, without protobuf. ``tfseek.train`` defines the messages."""
