"""What users decide beforehand: how the mind behaves, what is kept, where bytes may lie."""
