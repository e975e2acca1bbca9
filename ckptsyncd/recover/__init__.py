"""Reading back: what the store holds, whether it is whole, and how it comes to a new machine.

``catalog`` reads the manifests, ``choose`` picks one, ``plan`` says what is needed of it, ``fetch``
brings the bytes into a staging directory, ``place`` puts them under their names, ``restore`` is the
whole way with its walk back, ``verify`` compares the store with the manifests.
"""
