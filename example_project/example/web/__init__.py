"""A small web on loopback, a process of its own: `python -m example.web demo`.

`sites` says what a site answers, `demo` and `folder` are the sites, `server` serves them and
records every request, `process` is what a spider starts and stops the web with.
"""
