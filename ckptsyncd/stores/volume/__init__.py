"""A mounted volume, or any directory, as a store.

``tree`` opens names safely, ``faults`` says what an errno means, ``probe`` what the file system
can do, ``copying`` moves bytes in and out, ``store`` is the destination itself.
"""
