"""What is measured or tried outside of the tests, each by a command of its own."""
