"""What is written down to last: the remote format's documents and names, the ledger's rows."""
