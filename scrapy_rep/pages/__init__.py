"""The directives of pages, the links of a page, and which URLs are one page."""
