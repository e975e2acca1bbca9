"""Azure Blob Storage.

``options`` what a user sets, ``credentials`` who we are, ``faults`` what an answer means, ``wire``
the SDK, ``express`` the short way beside it (``signing``: with a key), ``blobs`` what is asked of
them, ``probe`` what a server really does, ``store`` the destination itself. Only ``options`` may be
imported where the SDK might be missing.
"""
