"""A pretended metadata service: every cloud's door on one loopback port, with time and faults.

For tests, drills and trying things out: ``ckptsyncd-fake-metadata``. It is strict where the real
ones are: headers, tokens, rates, hanging requests.
"""
