"""Figures beside their floors: `python -m bench NAME`.

`README.md` lists the benches and what each of them needs. `harness.py` says how something is measured, `plays.py` how
a public task set is played, `data.py` where data is; `__main__.py` is the command. A module with `BENCH` is one bench,
the others hold a part of one. A figure is a ratio to a floor that runs in the same process in the same minute, so that
it means the same on another machine.
"""
