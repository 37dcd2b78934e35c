# Its functions are methods of Loop.
