"""What the robots exclusion protocol says, without any I/O, clock or framework."""
