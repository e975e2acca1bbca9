"""S3 and everything that speaks like it, told apart by trying and never by name.

``options`` what a user sets, ``faults`` what an answer means, ``sending`` how bytes go out,
``wire`` the SDK, ``express`` the short way beside it (``signing``: its signature), ``probe`` what a
server really does, ``store`` the destination itself. Only ``options`` may be imported where the SDK
might be missing.
"""
