"""The preflight: what stands in the way of checkpoints being safe, and what to do about it.

One file a subject. Each turns what was found out into ``Finding``s; only those about the store ask
it themselves, by the verbs that every store has. Gathering facts about this machine is the edge's
business, putting everything in order the command's.
"""
