"""The spiders: demo, site and census."""
