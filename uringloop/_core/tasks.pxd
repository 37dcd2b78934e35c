# Nothing: no other module calls it, it adds itself to Loop.
