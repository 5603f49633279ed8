"""What pages say about themselves: the spider middleware, and the links of a page."""
