"""The formats of providers' APIs."""
