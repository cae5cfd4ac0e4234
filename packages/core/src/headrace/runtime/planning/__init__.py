"""Planning: from the partitions of a step to the plan of one process."""
