"""What somebody may see at a glance: counts, jobs and late views of what they may see."""
