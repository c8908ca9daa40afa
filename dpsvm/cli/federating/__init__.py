"""The subcommands of ``dpsvm federation``."""
