"""Write the contents of a report as an HTML page with figures."""
