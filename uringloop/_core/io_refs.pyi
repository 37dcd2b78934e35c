class IoRefs(int):
    closed: bool
