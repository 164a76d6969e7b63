"""`rustgrad.distributed.elastic`: names that libraries import; nothing starts workers again here."""
