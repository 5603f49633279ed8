"""The downloader middleware, which decides about each request, and the cache of policies."""
