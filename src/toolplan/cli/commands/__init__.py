"""The commands: what each takes, and what it has done by whom. `app.py` lists them.

Library modules are imported inside the commands, so that `toolplan --help` stays quick.
"""
