"""One file a suite: which modules it has, how a test process loads one of them."""
