"""`python -m toolplan` is the command line."""

from toolplan.cli import main

if __name__ == "__main__":
    main()
