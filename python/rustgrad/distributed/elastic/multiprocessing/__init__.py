"""`rustgrad.distributed.elastic.multiprocessing`: names that libraries import."""
