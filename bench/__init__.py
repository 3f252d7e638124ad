"""Figures beside their floors: `python -m bench NAME`.

`harness.py` says how something is measured, `__main__.py` is the command, every other module is one bench and holds
`BENCH`. A figure is a ratio to a floor that runs in the same process in the same minute, so that it means the same on
another machine.
"""
