"""`python -m napkin`."""

from napkin.cli import main

if __name__ == "__main__":
    main()
