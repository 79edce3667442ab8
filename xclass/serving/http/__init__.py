"""Answer HTTP requests of a server: who may ask, what a request may hold, its answers, metrics and the page."""
