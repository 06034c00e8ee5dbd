"""The queue of jobs: records, leases, events, the ledger of failed rows, environments."""
