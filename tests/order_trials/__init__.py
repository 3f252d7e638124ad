"""Random tools on a shared store, random plans, and the comparison of their runs with the written order."""
