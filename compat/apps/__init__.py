"""Real applications at work, one file each: checks as in behaviours/, with the packages they need."""
