"""Azure Blob Storage.

``options`` what a user sets, ``credentials`` who we are, ``faults`` what an answer means, ``wire``
the SDK, ``blobs`` what is asked of it, ``probe`` what a server really does, ``store`` the
destination itself. Only ``options`` may be imported where the SDK might be missing.
"""
