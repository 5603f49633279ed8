"""One robots.txt: its redirects and retries, one download of it, and its body."""
