"""What Molted's page on coordination documents, row by row: one table that is tested and printed as docs/coordination.md."""
