"""What sites allow: the origins in memory, local rules, verdicts, and the gate. No I/O."""
