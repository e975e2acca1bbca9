"""Everything a user may decide: flags before environment before file, one frozen ``Settings``."""

from ckptsyncd.settings.load import Loaded, load, load_places
from ckptsyncd.settings.places import LEDGER, found_sockets, found_state_dirs, make_private
from ckptsyncd.settings.reload import RELOADABLE, Reload, reloaded
from ckptsyncd.settings.table import BY_NAME, DEFINITIONS, GROUPS, Definition, Settings

__all__ = [
    "BY_NAME",
    "DEFINITIONS",
    "GROUPS",
    "LEDGER",
    "RELOADABLE",
    "Definition",
    "Loaded",
    "Reload",
    "Settings",
    "found_sockets",
    "found_state_dirs",
    "load",
    "load_places",
    "make_private",
    "reloaded",
]
