"""Google Cloud Storage and what speaks its JSON API, told apart by trying.

``options`` what a user sets, ``faults`` what an answer means, ``wire`` the SDK's credentials and
connections, ``express`` the short way beside them, ``objects`` whole objects, ``parts`` and
``sessions`` the two ways to send a large one, ``probe`` what a server really does, ``store`` the
destination itself. Only ``options`` may be imported where the SDK might be missing.

A large object grows under a name of its own, ``.ckptsyncd/uploads/<nonce>/<key>``, is compared and
labelled there, and is then moved to its key under a condition: neither a multipart upload nor a
session could be told at its end that the key must be free, and both show an object unchecked.
"""
