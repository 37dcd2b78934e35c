# The waiting tasks that no live object can wake; Python code calls it.
