"""A page in the browser to fit a table under a law: started by ``sumgp app``, for one person on one machine."""
