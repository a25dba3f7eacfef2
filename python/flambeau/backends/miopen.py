"""AMD's MIOpen: its switch is accepted, there are no such devices."""

from ._flags import block as _block
from ._flags import setter as _setter

immediate = False
flags = _block(globals(), "immediate")
set_flags = _setter(globals(), "immediate")
