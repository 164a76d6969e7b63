"""`rustgrad.utils.data.datapipes.utils`: files and functions of pipes, decoders of files, snapshots."""
