"""The command-line tools. A crawl imports none of these modules."""
