"""``python -m dpsvm`` is the command ``dpsvm``."""

from dpsvm.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
