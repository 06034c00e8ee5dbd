"""Pure decisions of jobs: what `explain` prints and what the runner executes."""
