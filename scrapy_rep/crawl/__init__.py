"""The crawl: the middleware that every request passes, and the policies that it asks."""
