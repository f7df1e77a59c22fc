"""`python -m gpustump` is the command `gpustump`."""

import sys

from gpustump.cli import main

if __name__ == "__main__":
    sys.exit(main())
