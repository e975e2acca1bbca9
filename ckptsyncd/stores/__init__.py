"""Destinations: one file or folder each; ``open`` makes the one that a URL names.

A store knows one SDK or one system interface and translates its errors into the six kinds of
``errors``. What all of them check before they touch anything stands once, in ``checks``.
"""
