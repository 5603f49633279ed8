"""The directives of pages: the spider middleware, and the links of a page."""
