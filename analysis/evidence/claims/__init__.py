"""The statements of the two texts, each with its test.

Importing this package registers them all.
"""
